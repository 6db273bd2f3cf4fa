// The nodes: how each is, and the choice of which to look at.
import { h } from "../../dom.ts";
import { percent } from "../../format.ts";
import { texts } from "../../table.ts";
import { classes, keyed, type Row, shown as show, text } from "../keyed.ts";
import type { LiveSection, Shown } from "../section.ts";
import { isLive, type NodeState } from "../store.ts";
import { clock, ms, statusOf } from "../words.ts";

const HEADS = [
  "Node",
  "Status",
  "Since",
  "Busy",
  "Blocked now",
  "Run queue",
  "Ongoing",
  "Last heard",
];

interface Line {
  node: NodeState;
  shown: Shown;
  selected: boolean;
  /** With one node there is nothing to choose. */
  choice: boolean;
}

const sum = (numbers: Iterable<number | null | undefined>): number => {
  let total = 0;
  for (const n of numbers) total += n ?? 0;
  return total;
};

/** Of the normal schedulers now, as text. */
function figures({ view, findings }: NodeState, live: boolean): string[] {
  if (!view || !live) return ["-", "-", "-", "-"];
  const normal = view.schedulers.filter((s) => s.kind === "normal" && s.state !== "offline");
  const busy = normal.map((s) => s.busy).filter((b) => b !== null);
  const blocked = normal.filter((s) => (s.blocked_ms ?? 0) > 0);
  const longest = Math.max(0, ...blocked.map((s) => s.blocked_ms ?? 0));
  const ongoing = [...findings.values()].filter((f) => f.finding.ongoing).length;
  return [
    // Where nothing says how busy they are: not a number, which is "-".
    percent(sum(busy) / busy.length),
    blocked.length > 0 ? `${blocked.length} of ${normal.length}, ${ms(longest)}` : "none",
    String(view.queues.normal ?? "-"),
    ongoing > 0 ? String(ongoing) : "none",
  ];
}

function line(item: Line, select: (node: string | null) => void): Row<Line> {
  const name = item.node.node;
  const button = h("button", { type: "button" }, name);
  button.addEventListener("click", () => select(name));
  const plain = h("span", {}, name);
  const cells = HEADS.slice(1).map(() => h("td", { class: "text" }));
  const element = h("tr", {}, h("th", { scope: "row", class: "text" }, button, plain), cells);
  const update = ({ node, shown, selected, choice }: Line) => {
    show(button, choice);
    show(plain, !choice);
    button.setAttribute("aria-pressed", String(selected));
    const live = isLive(node, shown.connected, shown.now);
    const { mark, word, tone } = statusOf(node, live, shown.connected);
    const heard = live ? "now" : clock(node.view?.at ?? null);
    const because = node.reason && node.status !== "up" ? `: ${node.reason}` : "";
    const said = [
      `${mark} ${word}${because}`,
      clock(node.since ?? node.view?.started ?? null),
      ...figures(node, live),
      heard,
    ];
    cells.forEach((cell, i) => {
      text(cell, said[i] ?? "");
    });
    classes(cells[0] as Element, `text outcome ${tone}`);
    classes(element, live ? "" : "stale");
  };
  return { element, update };
}

/** Of each node whose processors other programs take, that they do; "" where there is none. */
export const crowdedText = ({ nodes, several, connected, now }: Shown): string =>
  nodes
    .filter((node) => node.view?.crowded && isLive(node, connected, now))
    .map(({ node, view }) => `\u25b2 ${several ? `${node}: ` : ""}${view?.crowded}`)
    .join(" ");

export function overview(
  selected: () => string | null,
  select: (node: string | null) => void,
): LiveSection {
  const body = h("tbody", {});
  const all = h("button", { type: "button" }, "All nodes");
  all.addEventListener("click", () => select(null));
  const none = h("p", { class: "note" }, "No node has been heard of yet.");
  const crowded = h("p", { class: "crowded outcome warn" });
  const region = texts("Nodes", HEADS, body, "nodes");
  const element = h(
    "section",
    { "aria-label": "Nodes" },
    h("h1", {}, "Nodes"),
    crowded,
    all,
    none,
    region,
  );
  const update = (shown: Shown) => {
    show(none, shown.nodes.length === 0);
    show(region, shown.nodes.length > 0);
    text(crowded, crowdedText(shown));
    show(crowded, crowded.textContent !== "");
    show(all, shown.several);
    all.setAttribute("aria-pressed", String(selected() === null));
    const lines = shown.nodes.map((node) => ({
      node,
      shown,
      selected: selected() === node.node,
      choice: shown.several,
    }));
    keyed(
      body,
      lines,
      (l) => l.node.node,
      (l) => line(l, select),
    );
  };
  return { element, update };
}
