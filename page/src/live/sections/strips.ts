// A strip for each scheduler: the last minutes, a second a column, the darker the busier; where it
// was blocked, hatched. The strip stands in a table that says how the scheduler is now.
import { h } from "../../dom.ts";
import { percent } from "../../format.ts";
import { classes, keyed, type Row, shown as show, text } from "../keyed.ts";
import type { Kind, Scheduler } from "../model.ts";
import type { LiveSection, Shown } from "../section.ts";
import { COLUMNS, type Column, isLive, lasted, type NodeState } from "../store.ts";
import { KINDS, ms, schedulerOf } from "../words.ts";

const WINDOW_US = COLUMNS * 1e6;
const HEIGHT = 16;
/** A block of 10 ms in three minutes would not be seen. */
const LEAST_WIDTH = 3;

interface Block {
  /** Microseconds, the node's clock. */
  from: number;
  to: number;
  error: boolean;
}

interface Strip {
  node: NodeState;
  scheduler: Scheduler;
  index: number;
  blocks: Block[];
  /** The right end of the strip, microseconds of the node's clock. */
  end: number;
  live: boolean;
}

interface Colours {
  busy: string;
  blocked: string;
  paper: string;
  line: string;
}

/** What the style sheet says, resolved for light or dark. */
function colours(probe: HTMLElement): Colours {
  const of = (name: string): string => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  return { busy: of("--strip"), blocked: of("--limit"), paper: of("--paper"), line: of("--line") };
}

/** When which scheduler was blocked, from the node's findings. */
export function blocksOf(node: NodeState, live: boolean, now: number): Map<string, Block[]> {
  const blocks = new Map<string, Block[]>();
  for (const known of node.findings.values()) {
    const { subject, since, severity, detector } = known.finding;
    const name = schedulerOf(subject);
    const time = lasted(known, live, now);
    if (name === null || time === null || detector !== "scheduler_blocked") continue;
    const block = { from: since, to: since + time * 1e3, error: severity === "error" };
    blocks.set(name, [...(blocks.get(name) ?? []), block]);
  }
  return blocks;
}

function hatch(g: CanvasRenderingContext2D, x: number, width: number, colour: string): void {
  g.save();
  g.beginPath();
  g.rect(x, 0, width, HEIGHT);
  g.clip();
  g.strokeStyle = colour;
  g.lineWidth = 1;
  for (let at = x - HEIGHT; at < x + width; at += 5) {
    g.beginPath();
    g.moveTo(at, HEIGHT);
    g.lineTo(at + HEIGHT, 0);
    g.stroke();
  }
  g.restore();
}

function draw(canvas: HTMLCanvasElement, strip: Strip, colour: Colours): void {
  const width = canvas.clientWidth;
  const scale = devicePixelRatio || 1;
  if (width === 0) return;
  // Setting the size clears it.
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(HEIGHT * scale);
  const g = canvas.getContext("2d");
  if (!g) return;
  g.scale(scale, scale);
  const x = (at: number): number => width * (1 - (strip.end - at) / WINDOW_US);
  for (const { at, busy } of strip.node.columns) {
    const part = busy[strip.index];
    const [from, to] = [Math.floor(x(at - 1e6)), Math.floor(x(at))];
    if (to <= 0) continue;
    if (part === null || part === undefined) {
      g.fillStyle = colour.line;
      g.fillRect(from, HEIGHT / 2, to - from, 1);
      continue;
    }
    // Idle is not the same as not known.
    g.globalAlpha = 0.06 + (0.94 * part) / 100;
    g.fillStyle = colour.busy;
    g.fillRect(from, 0, Math.max(1, to - from), HEIGHT);
    g.globalAlpha = 1;
  }
  for (const { from, to, error } of strip.blocks) {
    const left = Math.max(0, Math.min(x(from), width - LEAST_WIDTH));
    const wide = Math.max(LEAST_WIDTH, x(to) - left);
    if (x(to) < 0) continue;
    g.fillStyle = colour.blocked;
    g.fillRect(left, error ? 0 : HEIGHT / 2, wide, HEIGHT);
    if (wide > LEAST_WIDTH && error) hatch(g, left, wide, colour.paper);
  }
}

const known = (columns: readonly Column[], index: number): number[] =>
  columns.map((c) => c.busy[index]).filter((b): b is number => typeof b === "number");

/** The strip in words. */
function summary({ node, scheduler, index, blocks }: Strip): string {
  const busy = known(node.columns, index);
  const mean = busy.reduce((a, b) => a + b, 0) / busy.length;
  const load =
    busy.length > 0 ? `busy ${percent(mean / 100)} of ${busy.length} s` : "load not known";
  const longest = Math.max(0, ...blocks.map((block) => block.to - block.from));
  const blocked =
    blocks.length === 0
      ? "never blocked"
      : `blocked ${blocks.length}x, ${ms(longest / 1e3)} at most`;
  const name = `${KINDS[scheduler.kind]} ${scheduler.number}`;
  return `${name}: ${load}, ${blocked}`;
}

function nowText({ scheduler, live }: Strip): string {
  if (!live) return "not known";
  const { state, busy, blocked_ms, run_queue, running, waiting } = scheduler;
  const parts = [
    state === "offline" ? "offline" : busy === null ? "load not known" : `busy ${percent(busy)}`,
    blocked_ms ? `blocked for ${ms(blocked_ms)}` : null,
    run_queue ? `queue ${run_queue}` : null,
    running ? `in ${running}` : null,
    (waiting ?? 0) >= 0.1 ? `waits for a processor ${percent(waiting ?? 0)}` : null,
  ];
  return parts.filter((part) => part !== null).join(", ");
}

const LABELS: Record<Kind, string> = { normal: "", dirty_cpu: "CPU ", dirty_io: "I/O " };

function row(first: Strip, colour: () => Colours): Row<Strip> {
  const { kind, number } = first.scheduler;
  const canvas = h("canvas", { role: "img", height: HEIGHT });
  const now = h("td", { class: "text now" });
  const element = h(
    "tr",
    {},
    h("th", { scope: "row", class: "text" }, `${LABELS[kind]}${number}`),
    h("td", { class: "strip" }, canvas),
    now,
  );
  const update = (strip: Strip) => {
    draw(canvas, strip, colour());
    canvas.setAttribute("aria-label", summary(strip));
    text(now, nowText(strip));
    classes(element, `${strip.live ? "" : "stale"}${strip.scheduler.blocked_ms ? " blocked" : ""}`);
  };
  return { element, update };
}

/** Dirty schedulers are many, and mostly idle. */
const idle = ({ scheduler, node, index, blocks }: Strip): boolean =>
  scheduler.kind !== "normal" &&
  blocks.length === 0 &&
  known(node.columns, index).every((busy) => busy < 1);

function stripsOf(node: NodeState, shown: Shown): Strip[] {
  const { view } = node;
  if (!view) return [];
  const live = isLive(node, shown.connected, shown.now);
  const blocks = blocksOf(node, live, shown.now);
  const end = view.at + (live ? (shown.now - node.came) * 1e3 : 0);
  return view.schedulers.map((scheduler, index) => ({
    node,
    scheduler,
    index,
    blocks: blocks.get(`${scheduler.kind} ${scheduler.number}`) ?? [],
    end,
    live,
  }));
}

function strips(label: string): { table: HTMLElement; body: HTMLElement } {
  const body = h("tbody", {});
  const heads = ["Scheduler", "Last 3 minutes", "Now"].map((head) =>
    h("th", { scope: "col", class: "text" }, head),
  );
  const table = h(
    "table",
    { class: "strips", "aria-label": label },
    h("thead", {}, h("tr", {}, heads)),
    body,
  );
  return { table, body };
}

interface Part {
  node: NodeState;
  shown: Shown;
}

function nodePart({ node }: Part, colour: () => Colours): Row<Part> {
  const title = h("h3", {});
  const main = strips(`Schedulers of ${node.node}`);
  const rest = strips(`Idle dirty schedulers of ${node.node}`);
  const summary = h("summary", {});
  const folded = h("details", {}, summary, rest.table);
  const element = h("div", {}, title, main.table, folded);
  const keyOf = ({ scheduler }: Strip) => `${scheduler.kind} ${scheduler.number}`;
  const make = (strip: Strip) => row(strip, colour);
  const update = ({ node, shown }: Part) => {
    text(title, node.node);
    show(title, shown.several);
    const all = stripsOf(node, shown);
    const quiet = all.filter(idle);
    keyed(
      main.body,
      all.filter((strip) => !quiet.includes(strip)),
      keyOf,
      make,
    );
    keyed(rest.body, quiet, keyOf, make);
    text(summary, `${quiet.length} idle dirty schedulers`);
    show(folded, quiet.length > 0);
  };
  return { element, update };
}

const LEGEND: [string, string][] = [
  ["idle", "key strip-idle"],
  ["half busy", "key strip-half"],
  ["busy", "key strip-busy"],
  ["blocked, a warning: the lower half", "key strip-warning"],
  ["blocked, an error: hatched", "key strip-blocked"],
  ["offline or not known: a line, or nothing", "key strip-unknown"],
];

export function heat(): LiveSection {
  const probe = h("span", { hidden: true });
  const parts = h("div", {});
  const legend = h(
    "ul",
    { class: "legend" },
    LEGEND.map(([name, key]) => h("li", {}, h("span", { class: key }), name)),
  );
  const element = h("section", {}, h("h2", {}, "Schedulers"), legend, parts, probe);
  let colour: Colours | null = null;
  const update = (shown: Shown) => {
    colour = colours(probe);
    const current = () => colour ?? colours(probe);
    keyed(
      parts,
      shown.nodes.map((node) => ({ node, shown })),
      ({ node }) => node.node,
      (part) => nodePart(part, current),
    );
  };
  return { element, update };
}
