// Whatever else is in a result, so that an experiment which the page does not know is shown, too:
// numbers and texts as a list, rows as tables, long lists of numbers as their summary.
import { type Child, h } from "../dom.ts";
import { figure } from "../figure.ts";
import { number } from "../format.ts";
import { result, type Source } from "../model.ts";
import type { Section } from "../section.ts";
import { extent, quantile, unique } from "../stats.ts";

type Fields = Record<string, unknown>;

const isFields = (v: unknown): v is Fields =>
  typeof v === "object" && v !== null && !Array.isArray(v);
const isNumbers = (v: unknown): v is number[] =>
  Array.isArray(v) && v.length > 0 && v.every((x) => typeof x === "number");
const isRows = (v: unknown): v is Fields[] => Array.isArray(v) && v.length > 0 && v.every(isFields);

/** Lists up to so long are written out. */
const SHORT = 8;

/** A value as text in one cell. */
export function plain(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  if (typeof value === "number") return number(value);
  if (typeof value === "string" || typeof value === "boolean") return String(value);
  if (isNumbers(value) && value.length > SHORT) {
    const [low, high] = extent(value) ?? [null, null];
    return `${value.length} values: ${number(low)} to ${number(high)}, median ${number(quantile(value, 0.5))}`;
  }
  if (Array.isArray(value))
    return value.length > SHORT ? `${value.length} values` : value.map(plain).join(", ") || "-";
  const fields = Object.entries(value as Fields).map(([k, v]) => `${k}: ${plain(v)}`);
  return fields.join(", ") || "-";
}

/** Objects in a row become columns of their own, one level deep: light.p99_us. */
function flat(row: Fields): Fields {
  const out: Fields = {};
  for (const [key, value] of Object.entries(row)) {
    if (isFields(value)) for (const [k, v] of Object.entries(value)) out[`${key}.${k}`] = v;
    else out[key] = value;
  }
  return out;
}

/** A table of rows of any kind. */
function rowsTable(title: string, rows: readonly Fields[]): HTMLElement {
  const flattened = rows.map(flat);
  const keys = unique(flattened.flatMap((r) => Object.keys(r))).filter(
    (k) => !flattened.every((r) => isRows(r[k])),
  );
  const text = (key: string) => flattened.some((r) => typeof r[key] === "string");
  return figure({
    title,
    table: {
      columns: keys.map((key) => ({ title: key.replaceAll("_", " "), text: text(key) })),
      rows: flattened.map((r) => keys.map((k) => plain(r[k]))),
    },
  });
}

/** All of a value: its plain fields in one table, each list of rows in another. */
function anything(title: string, value: unknown): Child {
  if (isRows(value)) return rowsTable(title, value);
  if (!isFields(value)) return figure(list(title, [["value", value]]));
  const fields = Object.entries(value);
  const rows = fields.filter(([, v]) => isRows(v));
  const others = fields.filter(([, v]) => !isRows(v));
  return [
    others.length > 0 && figure(list(title, others)),
    rows.map(([key, v]) => rowsTable(key.replaceAll("_", " "), v as Fields[])),
  ];
}

const list = (title: string, fields: [string, unknown][]) => ({
  title,
  table: {
    columns: [
      { title: "figure", text: true },
      { title: "value", text: true },
    ],
    rows: fields.map(([k, v]) => [k.replaceAll("_", " "), plain(v)]),
  },
});

const show = (sources: readonly Source[]): Child[] =>
  sources.map((source) => {
    const { schema_version: _, context: __, ...rest } = source.report;
    return anything(source.name || "Result", result(source) ?? rest);
  });

/** Of a report that the page has no plots for. */
export const everything: Section = { title: "All figures", show };

/** Beside the plots: folded, since most of it has been shown. */
export const folded: Section = {
  title: "All figures",
  show: (sources) =>
    h("details", {}, h("summary", {}, "Everything that was measured"), show(sources)),
};
