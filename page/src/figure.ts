// A figure: title, what to see, legend, plot, and the same numbers as a table. The plot is drawn for
// the width that there is, again when that changes.
import { type Child, h, uniqueId } from "./dom.ts";
import { type Table, table } from "./table.ts";

export interface LegendItem {
  text: string;
  /** A CSS colour. */
  colour: string;
  /** Only its outline. */
  hollow?: boolean;
  shape: "square" | "circle" | "diamond" | "bar" | "cross" | "line" | "dashed" | "band";
}

export interface Figure {
  title: string;
  /** What is shown, and what to see in it. */
  about?: Child;
  legend?: readonly LegendItem[];
  /** Draws for a width in CSS pixels; absent where the table is all. */
  draw?: (width: number) => Element;
  table: Table;
  /** In place of plot and table: a table that is its own picture. */
  body?: HTMLElement;
}

const LEAST_WIDTH = 260;

/** The element of a figure. */
export function figure(content: Figure): HTMLElement {
  const id = uniqueId("figure");
  const head = [
    h("h4", { id }, content.title),
    content.about ? h("p", { class: "about" }, content.about) : null,
    content.legend && content.legend.length > 0 ? legend(content.legend) : null,
  ];
  if (content.body) return h("figure", { "aria-labelledby": id }, head, content.body);
  const numbers = table(content.table, `${content.title}: the numbers`);
  if (!content.draw) return h("figure", { "aria-labelledby": id }, head, numbers);
  const plot = h("div", { class: "plot" });
  redrawn(plot, content.draw, content.title);
  const details = h("details", {}, h("summary", {}, "The numbers"), numbers);
  return h("figure", { "aria-labelledby": id }, head, plot, details);
}

function legend(items: readonly LegendItem[]): HTMLElement {
  return h(
    "ul",
    { class: "legend" },
    items.map((item) =>
      h(
        "li",
        {},
        h("span", {
          class: `key ${item.shape}${item.hollow ? " hollow" : ""}`,
          style: `--key: ${item.colour}`,
        }),
        item.text,
      ),
    ),
  );
}

function redrawn(plot: HTMLElement, draw: (width: number) => Element, title: string): void {
  let drawn = 0;
  new ResizeObserver(() => {
    // Folded away: there is time until a reader looks.
    if (plot.clientWidth === 0) return;
    const width = Math.max(LEAST_WIDTH, Math.floor(plot.clientWidth));
    if (width === drawn) return;
    drawn = width;
    const picture = draw(width);
    // What Plot calls the parts ("rect") helps no reader, and is not allowed inside of a picture.
    for (const part of picture.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", title);
    plot.replaceChildren(picture);
  }).observe(plot);
}
