// The tables of the page whose cells change and whose rows come and go.
import { h } from "../../dom.ts";
import { texts } from "../../table.ts";
import { classes, keyed, type Row, text } from "../keyed.ts";

export interface Line {
  key: string;
  cells: readonly string[];
  /** A class of the row, and one of one of its cells. */
  row?: string;
  tone?: { cell: number; tone: string };
}

interface Changing {
  element: HTMLElement;
  /** The last column says whose a line is, where that can be more than one node. */
  update: (lines: readonly Line[], several?: boolean) => void;
}

function line(first: Line): Row<Line> {
  const cells = first.cells.map((_, i) =>
    i === 0 ? h("th", { scope: "row", class: "text" }) : h("td", { class: "text" }),
  );
  const element = h("tr", {}, cells);
  const update = (item: Line) => {
    cells.forEach((cell, i) => {
      text(cell, item.cells[i] ?? "");
      classes(cell, i === item.tone?.cell ? `text outcome ${item.tone.tone}` : "text");
    });
    classes(element, item.row ?? "");
  };
  return { element, update };
}

/** A table of texts, scrollable sideways by itself. */
export function changing(label: string, heads: readonly string[]): Changing {
  const body = h("tbody", {});
  const element = texts(label, heads, body);
  const update = (lines: readonly Line[], several = true) => {
    classes(element, several ? "scroll" : "scroll one-node");
    keyed(body, lines, ({ key }) => key, line);
  };
  return { element, update };
}
