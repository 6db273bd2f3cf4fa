// Tables of numbers, for reading and for screen readers; long ones are cut, and say so.
import { append, type Child, h } from "./dom.ts";

export interface Column {
  title: string;
  /** Numbers stand to the right, text to the left. */
  text?: boolean;
}

export interface Table {
  columns: readonly Column[];
  rows: readonly (readonly Child[])[];
}

/** More rows than anybody reads would only make the page slow. */
const MOST_ROWS = 300;

const side = (column: Column | undefined): string => (column?.text ? "text" : "number");

/** A body under its heads, scrollable sideways by itself. */
export const headed = (
  label: string,
  columns: readonly Column[],
  body: HTMLElement,
  name?: string,
): HTMLElement =>
  h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h("table", { class: name }, h("thead", {}, h("tr", {}, columns.map(head))), body),
  );

const head = (column: Column): Child =>
  h("th", { scope: "col", class: side(column) }, column.title);

/** A table of texts, whose body others fill. */
export const texts = (
  label: string,
  heads: readonly string[],
  body: HTMLElement,
  name?: string,
): HTMLElement =>
  headed(
    label,
    heads.map((title) => ({ title, text: true })),
    body,
    name,
  );

/** The table, scrollable sideways by itself. Its first column heads the rows. */
export function table(content: Table, label: string): HTMLElement {
  const { columns, rows } = content;
  const body = rows.slice(0, MOST_ROWS).map((row) =>
    h(
      "tr",
      {},
      row.map((cell, i) =>
        i === 0
          ? h("th", { scope: "row", class: side(columns[i]) }, cell)
          : h("td", { class: side(columns[i]) }, cell),
      ),
    ),
  );
  const region = headed(label, columns, h("tbody", {}, body));
  const cut = `The first ${MOST_ROWS} of ${rows.length.toLocaleString("en-US")} rows; the JSON has all.`;
  append(region, [rows.length > MOST_ROWS && h("p", { class: "note" }, cut)]);
  return region;
}
