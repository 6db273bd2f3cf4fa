// A table whose cells are coloured by their number: the heat map and its numbers in one.
import { type Child, h } from "./dom.ts";
import type { LegendItem } from "./figure.ts";
import { unique } from "./stats.ts";
import { headed } from "./table.ts";

export interface HeatCell {
  row: string;
  column: string;
  /** Index of the colour; null is no colour. */
  heat: number | null;
  text: string;
}

/** Upper ends of the classes of durations, nanoseconds; over the last one is the hottest. */
export const HEAT_NS = [1e6, 1e7, 1e8, 1e9, 1e10];

/** The class of a value: 0 is the coolest. */
export function heatOf(value: number, ends: readonly number[] = HEAT_NS): number {
  const index = ends.findIndex((end) => value < end);
  return index < 0 ? ends.length : index;
}

export function heatLegend(texts: readonly string[]): LegendItem[] {
  return texts.map((text, i) => ({ text, colour: `var(--h${i})`, shape: "square" }));
}

export function heat(cells: readonly HeatCell[], corner: string, label: string): HTMLElement {
  const rows = unique(cells.map((c) => c.row));
  const columns = unique(cells.map((c) => c.column));
  const at = new Map(cells.map((c) => [`${c.row}\n${c.column}`, c]));
  const cell = (row: string, column: string): Child => {
    const c = at.get(`${row}\n${column}`);
    if (c?.heat == null) return h("td", { class: "number" }, c?.text);
    return h("td", { class: "number heat", style: `background: var(--h${c.heat})` }, c.text);
  };
  const heads = [{ title: corner, text: true }, ...columns.map((title) => ({ title }))];
  const body = rows.map((row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", class: "text" }, row),
      columns.map((column) => cell(row, column)),
    ),
  );
  return headed(label, heads, h("tbody", {}, body), "heatmap");
}
