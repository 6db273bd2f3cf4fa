// The native functions that take the schedulers' time, as bars; of several nodes their sums.
import { h } from "../../dom.ts";
import { duration, percent } from "../../format.ts";
import { headed } from "../../table.ts";
import { classes, keyed, type Row, shown as show, text } from "../keyed.ts";
import type { LiveSection, Shown } from "../section.ts";

const MOST = 15;

interface Bar {
  label: string;
  /** Of the busy samples of the nodes, 0 to 1; and ns in a second. */
  share: number;
  ns: number | null;
  nodes: number;
  /** Of the longest bar. */
  length: number;
}

export function bars({ nodes }: Pick<Shown, "nodes">): Bar[] {
  const watched = nodes.filter((node) => node.view);
  const sums = new Map<string, Omit<Bar, "length">>();
  for (const { view } of watched)
    for (const { label, share, ns_per_s } of view?.top ?? []) {
      const sum = sums.get(label) ?? { label, share: 0, ns: null, nodes: 0 };
      sum.share += share / watched.length;
      if (ns_per_s !== null) sum.ns = (sum.ns ?? 0) + ns_per_s;
      sum.nodes += 1;
      sums.set(label, sum);
    }
  const sorted = [...sums.values()].sort((a, b) => b.share - a.share).slice(0, MOST);
  const most = Math.max(1e-9, ...sorted.map((bar) => bar.share));
  return sorted.map((bar) => ({ ...bar, length: bar.share / most }));
}

function row(first: Bar): Row<Bar> {
  const bar = h("span", { class: "bar" });
  const head = h("th", { scope: "row", class: "text" }, h("code", {}, first.label), bar);
  const cells = [0, 1, 2].map(() => h("td", { class: "number" }));
  const element = h("tr", {}, head, cells);
  const update = (item: Bar) => {
    bar.style.width = `${(item.length * 100).toFixed(1)}%`;
    const texts = [percent(item.share), duration(item.ns), String(item.nodes)];
    cells.forEach((cell, i) => {
      text(cell, texts[i] ?? "");
    });
  };
  return { element, update };
}

export function top(): LiveSection {
  const body = h("tbody", {});
  const numbers = ["Of busy samples", "In a second", "Nodes"].map((title) => ({ title }));
  const columns = [{ title: "Function", text: true }, ...numbers];
  const table = headed("Native functions", columns, body, "bars");
  const none = h("p", { class: "note" }, "No native function has been met in a sample yet.");
  const element = h("section", {}, h("h2", {}, "Native functions"), none, table);
  const update = (shown: Shown) => {
    const items = bars(shown);
    show(none, items.length === 0);
    show(table, items.length > 0);
    classes(table, shown.several ? "scroll" : "scroll one-node");
    keyed(body, items, ({ label }) => label, row);
  };
  return { element, update };
}
