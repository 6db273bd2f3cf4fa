// The watch itself: what it cannot see, and what it costs.
import { h } from "../../dom.ts";
import { count, percent } from "../../format.ts";
import { keyed, type Row, shown as show, text } from "../keyed.ts";
import type { LiveSection, Shown } from "../section.ts";
import type { NodeState } from "../store.ts";
import { changing } from "./tables.ts";

/** What a node has a limited number of. */
const USED = [
  ["processes", "process_limit"],
  ["ports", "port_limit"],
  ["atoms", "atom_limit"],
  ["ets_tables", "ets_limit"],
] as const;

function about({ view, cost }: NodeState): string {
  if (!view) return "not heard yet";
  const native = view.native ? "with its native part" : "Erlang only";
  const used = USED.filter(([what, limit]) => view.memory[what] && view.memory[limit]).map(
    ([what, limit]) =>
      `${count(view.memory[what])} of ${count(view.memory[limit])} ${what.replace("_", " ")}`,
  );
  return [
    `OTP ${view.otp}, fairnif_watch ${view.version}, ${native}.`,
    cost === null ? null : `Its thread takes ${percent(cost / 1e9)} of one core.`,
    used.length === 0 ? null : `In use: ${used.join(", ")}.`,
  ]
    .filter((part) => part !== null)
    .join(" ");
}

function part(first: { node: NodeState; several: boolean }): Row<typeof first> {
  const title = h("h3", {}, first.node.node);
  const line = h("p", {});
  const blind = h("ul", { class: "blind" });
  const all = h("p", { class: "note" }, "It sees all that it can look for.");
  const counters = changing(`Counters of ${first.node.node}`, ["Counter", "Count"]);
  const details = h("details", {}, h("summary", {}, "Counters"), counters.element);
  const element = h("div", {}, title, line, blind, all, details);
  const update = ({ node, several }: typeof first) => {
    const { view } = node;
    show(title, several);
    text(line, about(node));
    const sentences = view?.blind ?? [];
    show(all, view !== null && sentences.length === 0);
    keyed(
      blind,
      sentences,
      (sentence) => sentence,
      (sentence) => ({ element: h("li", {}, sentence), update: () => {} }),
    );
    show(blind, sentences.length > 0);
    const lines = Object.entries(view?.counters ?? {}).map(([key, value]) => ({
      key,
      cells: [key, count(value)],
    }));
    counters.update(lines);
    show(details, lines.length > 0);
  };
  return { element, update };
}

export function watch(): LiveSection {
  const parts = h("div", {});
  const element = h("section", {}, h("h2", {}, "The watch: blind spots and cost"), parts);
  const update = ({ nodes, several }: Shown) =>
    keyed(
      parts,
      nodes.map((node) => ({ node, several })),
      ({ node }) => node.node,
      part,
    );
  return { element, update };
}
