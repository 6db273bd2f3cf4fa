// What is known of the nodes, from the events of the stream. Knows no element of the page.
//
// The page's clock and a node's may differ: how old something is, is what passed here since it came.
import type { Events, Finding, NodeStatus, View, WholeNode } from "./model.ts";

/** As the server keeps: seconds of a strip, findings of a node. */
export const COLUMNS = 180;
export const MOST_FINDINGS = 100;
/** A view comes every second. */
const STALE_MS = 3500;

export interface Column {
  /** Microseconds, the node's clock. */
  at: number;
  /** Percent of each scheduler, as in the view; null: not known. */
  busy: (number | null)[];
}

export interface Known {
  finding: Finding;
  /** When it came, milliseconds of this page. */
  came: number;
}

export interface NodeState extends NodeStatus {
  view: View | null;
  /** When the view came, milliseconds of this page. */
  came: number;
  /** By id. */
  findings: Map<number, Known>;
  columns: Column[];
  /** CPU time of the watch itself, ns in the last second; null: not known yet. */
  cost: number | null;
}

const percent = (busy: number | null): number | null =>
  busy === null ? null : Math.max(0, Math.min(100, Math.round(busy * 100)));

const columnOf = (view: View): Column => ({
  at: view.at,
  busy: view.schedulers.map((s) =>
    s.state === "offline" || s.state === "unknown" ? null : percent(s.busy),
  ),
});

/** Of two views of the same run. */
function costOf(before: View | null, after: View): number | null {
  const [first, last] = [before?.counters.watch_cpu_ns, after.counters.watch_cpu_ns];
  if (!before || first === undefined || last === undefined || after.at <= before.at) return null;
  return ((last - first) / (after.at - before.at)) * 1e6;
}

function trim(findings: Map<number, Known>): void {
  while (findings.size > MOST_FINDINGS) findings.delete(Math.min(...findings.keys()));
}

export class Store {
  readonly nodes = new Map<string, NodeState>();
  /** Findings that this page has not seen before, since they were last taken. */
  private fresh: { node: string; finding: Finding }[] = [];

  /** Applies an event that came at `now`, milliseconds of this page. */
  apply<K extends keyof Events>(name: K, data: Events[K], now: number): void {
    const by: { [E in keyof Events]: (data: Events[E]) => void } = {
      state: ({ nodes }) => {
        const names = new Set(nodes.map((n) => n.node));
        for (const name of this.nodes.keys()) if (!names.has(name)) this.nodes.delete(name);
        for (const node of nodes) this.whole(node, now);
      },
      node: (node) => this.whole(node, now),
      status: (status) => {
        const node = this.nodes.get(status.node);
        if (node) Object.assign(node, status);
      },
      view: ({ node, view }) => this.view(node, view, now),
      finding: ({ node, finding }) => this.finding(node, finding, now),
      gone: ({ node }) => this.nodes.delete(node),
    };
    by[name](data);
  }

  /** The new findings, once. */
  take(): { node: string; finding: Finding }[] {
    const taken = this.fresh;
    this.fresh = [];
    return taken;
  }

  private whole(node: WholeNode, now: number): void {
    const { history, findings, ...rest } = node;
    const old = this.nodes.get(node.node);
    this.nodes.set(node.node, {
      ...rest,
      came: node.view && old?.view?.at === node.view.at ? old.came : now,
      findings: new Map(findings.map((finding) => [finding.id, { finding, came: now }])),
      columns: history.at.map((at, i) => ({ at, busy: history.busy[i] ?? [] })),
      cost: null,
    });
  }

  private view(name: string, view: View, now: number): void {
    const node = this.nodes.get(name);
    if (!node) return;
    node.cost = costOf(node.view, view) ?? node.cost;
    node.view = view;
    node.came = now;
    if (node.status === "unknown") node.status = "up";
    node.columns.push(columnOf(view));
    node.columns.splice(0, node.columns.length - COLUMNS);
  }

  private finding(name: string, finding: Finding, now: number): void {
    const node = this.nodes.get(name);
    if (!node) return;
    if (!node.findings.has(finding.id)) this.fresh.push({ node: name, finding });
    node.findings.set(finding.id, { finding, came: now });
    trim(node.findings);
  }
}

/** Is what is shown of the node what is so now? */
export const isLive = (node: NodeState, connected: boolean, now: number): boolean =>
  connected && node.status === "up" && node.view !== null && now - node.came < STALE_MS;

/** Milliseconds that it lasted, or has lasted by now; an ended one's do not grow. */
export function lasted({ finding, came }: Known, live: boolean, now: number): number | null {
  const { duration_ms, ongoing, since, at } = finding;
  const known = duration_ms ?? (ongoing ? Math.max(0, at - since) / 1e3 : null);
  if (known === null) return null;
  return ongoing && live ? known + Math.max(0, now - came) : known;
}
