// The live page: takes the events of the server into the store, and brings the sections up to date.
import "../style.css";
import "./live.css";
import { append, need } from "../dom.ts";
import { theme } from "../theme.ts";
import { Connection, type Link } from "./connection.ts";
import { classes, shown as show, text } from "./keyed.ts";
import { type Events, SCHEMA_VERSION } from "./model.ts";
import type { Shown } from "./section.ts";
import { detectors } from "./sections/detectors.ts";
import { findings } from "./sections/findings.ts";
import { overview } from "./sections/overview.ts";
import { pools } from "./sections/pools.ts";
import { heat } from "./sections/strips.ts";
import { top } from "./sections/top.ts";
import { watch } from "./sections/watch.ts";
import { Store } from "./store.ts";
import { clock, SEVERITIES, wordOf } from "./words.ts";

/** Times that count, and what has become stale. */
const TICK_MS = 250;
/** A reader that speaks is not interrupted more often. */
const NEWS_MS = 3000;

const store = new Store();
let link: Link = { state: "connecting" };
/** What keeps the page from being shown at all. */
let broken: string | null = null;
let waiting = false;
let selected: string | null = decodeURIComponent(location.hash.slice(1)) || null;

function select(node: string | null): void {
  selected = node;
  history.replaceState(
    null,
    "",
    node === null ? location.pathname : `#${encodeURIComponent(node)}`,
  );
  update();
}

const chosen = (): string | null =>
  selected !== null && store.nodes.has(selected) ? selected : null;
const first = overview(chosen, select);
const sections = [heat(), findings(), detectors(), top(), pools(), watch()];

function linkText(): string {
  if (broken !== null) return `\u2715 ${broken}`;
  if (link.state === "connecting") return "Connecting.";
  if (link.state === "live") return "\u25cf Live";
  return `\u2715 Connection lost at ${clock(link.since * 1e3)}: ${link.why}. What is shown is from before. Trying again.`;
}

function update(): void {
  const now = performance.now();
  const connected = link.state === "live" && broken === null;
  const all = [...store.nodes.values()].sort((a, b) => (a.node < b.node ? -1 : 1));
  const shown: Shown = { nodes: all, several: all.length > 1, connected, now };
  first.update(shown);
  const name = chosen();
  const some = name === null ? all : all.filter((node) => node.node === name);
  for (const section of sections)
    section.update({ ...shown, nodes: some, several: some.length > 1 });
  show(need("rest"), all.length > 0);
  const connection = need("connection");
  text(connection, linkText());
  classes(connection, `connection ${connected ? "live" : "lost"}`);
  document.body.classList.toggle("lost", !connected);
  const ongoing = all.flatMap((n) => [...n.findings.values()]).filter((f) => f.finding.ongoing);
  const count = ongoing.length > 0 ? `${ongoing.length} ongoing - ` : "";
  document.title = `${connected ? count : "not connected - "}fairnif watch`;
}

/** Many events at once are one drawing. */
function soon(): void {
  if (waiting) return;
  waiting = true;
  // Not an animation frame: a page in the background has none, and its title should be right.
  setTimeout(() => {
    waiting = false;
    update();
  }, 0);
}

/** For those who do not see the page; the last of several. */
function news(): void {
  const last = store.take().at(-1);
  if (!last || link.state !== "live") return;
  const { word } = wordOf(SEVERITIES, last.finding.severity);
  need("news").textContent = `${word} on ${last.node}: ${last.finding.sentence}`;
}

theme(need("theme"), update);
const rest = document.createElement("div");
rest.id = "rest";
append(rest, [sections.map(({ element }) => element)]);
append(need("page"), [first.element, rest]);
update();
setInterval(update, TICK_MS);
setInterval(news, NEWS_MS);
new Connection({
  event: <K extends keyof Events>(name: K, data: Events[K]) => {
    if (name === "state") {
      const { schema_version } = data as Events["state"];
      broken =
        schema_version === SCHEMA_VERSION
          ? null
          : `This page reads version ${SCHEMA_VERSION} of the data, and the server sends ${schema_version}: load it again.`;
    }
    if (broken === null) store.apply(name, data, performance.now());
    soon();
  },
  link: (now) => {
    link = now;
    soon();
  },
});
