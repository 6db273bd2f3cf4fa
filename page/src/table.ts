// Tables of numbers, for reading and for screen readers; long ones are cut, and say so.
import { type Child, h } from "./dom.ts";

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
export const MOST_ROWS = 300;

const side = (column: Column | undefined): string => (column?.text ? "text" : "number");

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
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((c) => h("th", { scope: "col", class: side(c) }, c.title)),
        ),
      ),
      h("tbody", {}, body),
    ),
    rows.length > MOST_ROWS &&
      h(
        "p",
        { class: "note" },
        `The first ${MOST_ROWS} of ${rows.length.toLocaleString("en-US")} rows; the JSON has all.`,
      ),
  );
}
