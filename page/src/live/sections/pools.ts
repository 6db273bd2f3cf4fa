// The dirty pools and the run queues: how full, how many wait, how long.
import { h } from "../../dom.ts";
import type { LiveSection, Shown } from "../section.ts";
import { isLive, type NodeState } from "../store.ts";
import { KINDS, ms } from "../words.ts";
import { changing, type Line } from "./tables.ts";

const dash = (value: number | null | undefined): string =>
  value === null || value === undefined ? "-" : String(value);

function linesOf(node: NodeState, live: boolean): Line[] {
  const { view } = node;
  if (!view) return [];
  const row = live ? "" : "stale";
  return (["dirty_cpu", "dirty_io"] as const).flatMap((kind) => {
    const pool = view.pools[kind];
    if (!pool) return [];
    const full = pool.busy >= pool.size && (pool.queue ?? 0) > 0;
    const busy = `${pool.busy} of ${pool.size}${full ? ", \u25b2 full" : ""}`;
    return [
      {
        key: `${node.node} ${kind}`,
        cells: [KINDS[kind], busy, dash(pool.queue), ms(pool.wait_ms), node.node],
        row,
        ...(full ? { tone: { cell: 1, tone: "warn" } } : {}),
      },
    ];
  });
}

export function pools(): LiveSection {
  const table = changing("Dirty pools", ["Pool", "Busy", "Waiting", "Wait", "Node"]);
  const element = h("section", {}, h("h2", {}, "Dirty pools"), table.element);
  const update = ({ nodes, several, connected, now }: Shown) =>
    table.update(
      nodes.flatMap((node) => linesOf(node, isLive(node, connected, now))),
      several,
    );
  return { element, update };
}
