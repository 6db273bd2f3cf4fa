// Draws the figures of any experiment, from what experiments.ts says of each.
import { dots } from "../charts/dots.ts";
import { histogram } from "../charts/histogram.ts";
import { lines } from "../charts/lines.ts";
import { strips } from "../charts/strips.ts";
import { type Child, h } from "../dom.ts";
import { type Figure, figure } from "../figure.ts";
import { bytes, count, duration, type Format, number, percent, times } from "../format.ts";
import { heat, heatLegend } from "../heat.ts";
import { result, type Source } from "../model.ts";
import type { Section } from "../section.ts";
import { greatest, quantile, unique } from "../stats.ts";

export type Fields = Record<string, unknown>;
export type Row = Fields & { series: string };

/**
 * What is read of a row: "light.p99_us|us". Through lists it reads all of them, or of their numbers
 * "#least", "#median", "#most" or "#mean"; the part after the bar is the unit.
 */
type Path = string;
/** Text with paths in braces; a part in brackets is left out where a path of it has nothing. */
type Template = string;

interface Common {
  title: Template;
  about?: Template;
  /** Which list of the result, or list of lists: default "rows". */
  of?: string | ((result: Fields) => Fields[]);
  where?: (row: Row) => boolean;
  /** A figure for each of these. */
  each?: Template;
  rules?: { at: number; text: string }[] | ((result: Fields) => { at: number; text: string }[]);
}

interface Axis {
  label: string;
  unit: string;
  log?: boolean;
  least?: readonly [number, number];
}

/** A title, what stands below it, and what of the rows that were published. */
type Column = readonly [title: string, cell: Template, published?: Template];

export type Part =
  | (Common & {
      plot: "dots";
      heading: string;
      label: Template;
      points: Record<string, Path>;
      apart?: string[];
      x: Axis;
      range?: (row: Row) => readonly [number, number] | undefined;
      /** The first that there is. */
      note?: Path[];
      more?: Column[];
    })
  | (Common & { plot: "histogram"; heading: string; label: Template; samples: Path; x: Axis })
  | (Common & {
      plot: "lines";
      label: Template;
      /** A list in the row, and of its members x and y. */
      points: Path;
      x: Axis & { of: Path };
      y: Axis & { of: Path };
      height?: number;
    })
  | (Common & {
      plot: "strips";
      /** Of a point, a list with a value for each strip; in the label @ is its index, {n} its number. */
      strips: { of: Path; label: Template }[];
      points: Path;
      time: Path;
      end: Path;
      value: Axis;
      full?: number;
    })
  | (Common & {
      plot: "heat";
      corner: string;
      row: Template;
      column: Template;
      cell: (row: Row) => { heat: number | null; text: string };
      legend: string[];
    })
  | (Common & { plot: "table"; columns: Column[]; published?: (result: Fields) => Fields[] })
  | (Common & { plot: "folded"; heading: string; parts: Part[] });

// -- what is read of a row -----------------------------------------------------------------------

const numbers = (v: unknown): number[] =>
  (Array.isArray(v) ? v.flat() : [v]).filter((x): x is number => typeof x === "number");

const OF_LIST: Record<string, (values: number[]) => number | null> = {
  least: (v) => quantile(v, 0),
  median: (v) => quantile(v, 0.5),
  most: (v) => greatest(v),
  mean: (v) => (v.length > 0 ? v.reduce((a, b) => a + b, 0) / v.length : null),
};

const UNITS: Record<string, readonly [Format, number]> = {
  ns: [duration, 1],
  us: [duration, 1e3],
  ms: [duration, 1e6],
  s: [duration, 1e9],
  bytes: [bytes, 1],
  count: [count, 1],
  number: [number, 1],
  percent: [percent, 1],
  of_100: [percent, 0.01],
  times: [times, 1],
};
const unit = (name = "number"): readonly [Format, number] => UNITS[name] ?? [number, 1];

/** What a row has there, in the unit in which it is drawn. */
export function read(row: unknown, path: Path): unknown {
  const [, keys = "", of, name] = /^([^#|]*)(?:#(\w+))?(?:\|(\w+))?$/.exec(path) ?? [];
  let found = row;
  for (const key of keys === "" ? [] : keys.split("."))
    found =
      Array.isArray(found) && !/^\d+$/.test(key)
        ? found.flatMap((one: Fields) => one[key] ?? [])
        : (found as Fields | null | undefined)?.[key];
  const scaled = (v: unknown): unknown =>
    typeof v === "number" ? v * unit(name)[1] : name && Array.isArray(v) ? v.map(scaled) : v;
  return scaled(of ? OF_LIST[of]?.(numbers(found)) : found);
}

const lengthOf = (v: unknown): number => (Array.isArray(v) ? v.length : 0);

const value = (row: unknown, path: Path): number | null => numbers(read(row, path))[0] ?? null;

const ANSWERS: Record<string, string> = { true: "yes", false: "no", unsure: "can't say" };

function text(row: unknown, path: Path): string {
  const one = (v: unknown): string =>
    typeof v === "number"
      ? unit(path.split("|")[1])[0](v)
      : (ANSWERS[String(v)] ?? (v === null || v === undefined || v === "" ? "-" : String(v)));
  const found = read(row, path);
  return Array.isArray(found) ? found.map((v) => one(v)).join(", ") : one(found);
}

const there = (row: unknown, path: Path): boolean => !["-", ""].includes(text(row, path));

export const fill = (template: Template, row: unknown): string =>
  template
    .replace(/\[([^\]]*)\]/g, (_, part: string) =>
      [...part.matchAll(/\{([^}]*)\}/g)].every(([, path = ""]) => there(row, path)) ? part : "",
    )
    .replace(/\{([^}]*)\}/g, (_, path: string) => text(row, path));

function rows(sources: readonly Source[], of: Common["of"] = "rows"): Row[] {
  const list = (all: Fields): Fields[] =>
    typeof of === "function"
      ? of(all)
      : of
          .split(".")
          .reduce<Fields[]>(
            (parents, key) =>
              parents.flatMap((parent) =>
                ((parent[key] ?? []) as Fields[]).map((child, i) =>
                  parent === all ? child : { ...parent, ...child, n: i + 1 },
                ),
              ),
            [all],
          );
  return sources.flatMap((s) => list(result<Fields>(s)).map((row) => ({ ...row, series: s.name })));
}

// -- figures -------------------------------------------------------------------------------------

const axis = ({ label, unit: name, ...more }: Axis) => ({ label, format: unit(name)[0], ...more });

function draw(part: Exclude<Part, { plot: "folded" }>, all: Row[], results: Fields[]): Figure {
  const first = all[0] ?? {};
  const several = unique(all.map((r) => r.series)).length > 1;
  const { rules = [] } = part;
  const base = {
    title: fill(part.title, first),
    about: part.about && fill(part.about, first),
    rules: typeof rules === "function" ? rules(results[0] ?? {}) : rules,
  };
  const named = (template: Template) => (row: Row) => ({
    label: fill(template, row),
    series: row.series,
  });
  const prefixed = (row: Row, template: Template): string =>
    `${row.series && several ? `${row.series}: ` : ""}${fill(template, row)}`;
  const columns = (of: readonly Column[]) =>
    of.map(([title, cell]) => ({ title, text: !cell.includes("|") }));
  switch (part.plot) {
    case "dots": {
      const label = named(part.label);
      const { heading, points, apart = [], range, note = [], more = [] } = part;
      const plot = dots({
        ...base,
        heading,
        apart,
        rangeTitle: "published",
        x: axis(part.x),
        rows: all.map((r) => ({
          ...label(r),
          points: Object.fromEntries(
            Object.entries(points).map(([k, path]) => [k, value(r, path)]),
          ),
          range: range?.(r),
          note: note.filter((path) => there(r, path)).map((path) => text(r, path))[0],
        })),
      });
      return {
        ...plot,
        table: {
          columns: [...plot.table.columns, ...columns(more)],
          rows: plot.table.rows.map((cells, i) => [
            ...cells,
            ...more.map(([, cell]) => fill(cell, all[i])),
          ]),
        },
      };
    }
    case "histogram": {
      const label = named(part.label);
      const groups = all.map((r) => ({ ...label(r), samples: numbers(read(r, part.samples)) }));
      return histogram({
        ...base,
        heading: part.heading,
        groups: groups.filter((g) => g.samples.length > 0),
        x: axis(part.x),
      });
    }
    case "lines": {
      const label = named(part.label);
      const { x, y, height } = part;
      return lines({
        ...base,
        lines: all.map((r) => ({
          ...label(r),
          points: ((read(r, part.points) ?? []) as Fields[]).map((p) => ({
            x: value(p, x.of) ?? 0,
            y: value(p, y.of),
          })),
        })),
        x: axis(x),
        y: axis(y),
        ...(height ? { height } : {}),
      });
    }
    case "strips": {
      const points = (read(first, part.points) ?? []) as Fields[];
      const ends = [...points.slice(1).map((p) => value(p, part.time)), value(first, part.end)];
      const cells = part.strips.flatMap(({ of, label }) =>
        Array.from({ length: greatest(points.map((p) => lengthOf(read(p, of)))) ?? 0 }, (_, i) => ({
          label: fill(label.replaceAll("@", String(i)), { ...first, n: i + 1 }),
          cells: points.map((p, k) => ({
            x: value(p, part.time) ?? 0,
            to: ends[k] ?? 0,
            value: value(p, `${of}.${i}`),
          })),
        })),
      );
      return strips({
        ...base,
        strips: cells,
        x: { label: "time", format: duration },
        value: axis(part.value),
        full: part.full ?? greatest(cells.flatMap((s) => s.cells.map((c) => c.value))) ?? 1,
      });
    }
    case "heat": {
      const cells = all.map((r) => ({
        row: prefixed(r, part.row),
        column: fill(part.column, r),
        ...part.cell(r),
      }));
      return {
        title: base.title,
        about: base.about,
        legend: heatLegend(part.legend),
        body: heat(cells, part.corner, base.title),
        table: { columns: [], rows: [] },
      };
    }
    case "table": {
      const others = part.published?.(results[0] ?? {}) ?? [];
      return {
        ...base,
        table: {
          columns: columns(part.columns),
          rows: [
            ...all.map((r) =>
              part.columns.map(([, cell], i) => (i === 0 ? prefixed(r, cell) : fill(cell, r))),
            ),
            ...others.map((r) => part.columns.map(([, , cell = "-"]) => fill(cell, r))),
          ],
        },
      };
    }
  }
}

function figures(part: Part, given: Row[], results: Fields[]): Child[] {
  const { where = () => true, each = "" } = part;
  const all = given.filter(where);
  if (part.plot === "folded")
    return [
      h("h3", {}, part.heading),
      all.map((row) =>
        h(
          "details",
          { class: "run" },
          h("summary", {}, `${row.series ? `${row.series}: ` : ""}${fill(part.title, row)}`),
          part.parts.map((p) => figures(p, [row], results)),
        ),
      ),
    ];
  return unique(all.map((r) => fill(each, r))).map((one, i) => {
    const own = all.filter((r) => fill(each, r) === one);
    const content = draw(part, own, results);
    // What holds for all of them is said once.
    return figure(i === 0 ? content : { ...content, about: null });
  });
}

/** The section with these figures. */
export const drawn = (title: string, parts: readonly Part[]): Section => ({
  title,
  show: (sources) =>
    parts.map((part) =>
      figures(
        part,
        rows(sources, part.of),
        sources.map((s) => result<Fields>(s)),
      ),
    ),
});
