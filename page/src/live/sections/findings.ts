// The findings, newest first: what was held, by whom, for how long, what helps, and the stack.
import { h } from "../../dom.ts";
import { duration } from "../../format.ts";
import { classes, keyed, type Row, shown as show, text } from "../keyed.ts";
import type { LiveSection, Shown } from "../section.ts";
import { isLive, type Known, lasted, type NodeState } from "../store.ts";
import { clock, frameText, ms, SEVERITIES, subjectText, wordOf } from "../words.ts";

/** More than anybody reads; and what stands there unasked. */
const MOST = 100;
const FIRST = 8;

interface Item {
  node: NodeState;
  known: Known;
  shown: Shown;
}

/** Of all these nodes; a node's clock orders its own, and clocks of a cluster are near enough. */
function newest(shown: Shown): Item[] {
  return shown.nodes
    .flatMap((node) => [...node.findings.values()].map((known) => ({ node, known, shown })))
    .sort((a, b) => b.known.finding.since - a.known.finding.since || idOf(b) - idOf(a))
    .slice(0, MOST);
}

const idOf = ({ known }: Item): number => known.finding.id;

function timeText({ node, known, shown }: Item): string {
  const live = isLive(node, shown.connected, shown.now);
  const time = lasted(known, live, shown.now);
  const since = `since ${clock(known.finding.since)}`;
  if (known.finding.ongoing)
    return live ? `going on for ${ms(time)}, ${since}` : `was going on after ${ms(time)}, ${since}`;
  return `${time === null ? "over" : `lasted ${ms(time)}`}, ${since}`;
}

const SIMPLE = ["number", "string", "boolean"];

/** Who it was, beyond the name that the sentence has. */
function facts({ culprit, evidence }: Known["finding"]): [string, string][] {
  const all: [string, string | null][] = [
    ["culprit", culprit.kind === null ? null : `${culprit.name} (${culprit.kind})`],
    ["process", [culprit.pid, culprit.registered].filter((x) => x !== null).join(" ") || null],
    ["in", culprit.current_function],
    ["library", culprit.library],
    ["loaded by", culprit.module],
    ["system call", culprit.syscall],
  ];
  const measured = Object.entries(evidence)
    .filter(([key, value]) => key !== "process" && SIMPLE.includes(typeof value))
    .map(([key, value]): [string, string] => {
      const name = key.replace(/_ns$/, "").replaceAll("_", " ");
      return [name, key.endsWith("_ns") ? duration(Number(value)) : String(value)];
    });
  return [...all.filter((fact): fact is [string, string] => fact[1] !== null), ...measured];
}

function card(first: Item): Row<Item> {
  const [severity, detector, where] = [h("span", {}), h("span", {}), h("span", {})];
  const [sentence, when, culprit, remedy] = [
    h("p", { class: "sentence" }),
    h("p", { class: "when" }),
    h("p", {}, "Culprit: ", h("code", {})),
    h("p", { class: "remedy" }),
  ];
  const frames = h("ol", { class: "frames" });
  const stack = h("details", {}, h("summary", {}, "Native stack"), frames);
  const list = h("dl", { class: "facts" });
  const details = h("details", {}, h("summary", {}, "Who and what"), list);
  const element = h(
    "li",
    {},
    h("h3", {}, severity, " ", where, " ", detector),
    sentence,
    when,
    culprit,
    remedy,
    stack,
    details,
  );
  let drawn: Known["finding"] | null = null;
  const draw = ({ node, known: { finding }, shown }: Item) => {
    const { mark, word } = wordOf(SEVERITIES, finding.severity);
    text(severity, `${mark} ${word}`);
    text(detector, `(${finding.detector})`);
    const subject = subjectText(finding.subject);
    text(where, shown.several ? `${subject} of ${node.node}` : subject);
    text(sentence, finding.sentence);
    text(culprit.lastElementChild as Element, finding.culprit.name);
    show(culprit, finding.culprit.kind !== null);
    text(remedy, `Remedy: ${finding.remedy ?? ""}`);
    show(remedy, finding.remedy !== null);
    keyed(
      frames,
      finding.stack.map((frame, i) => `${i}\n${frameText(frame)}`),
      (frame) => frame,
      (frame) => ({
        element: h("li", {}, h("code", {}, frame.split("\n").slice(1).join("\n"))),
        update: () => {},
      }),
    );
    show(stack, finding.stack.length > 0);
    list.replaceChildren(
      ...facts(finding).flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]),
    );
    drawn = finding;
  };
  const update = (item: Item) => {
    const { finding } = item.known;
    if (finding !== drawn) draw(item);
    text(when, timeText(item));
    const { tone } = wordOf(SEVERITIES, finding.severity);
    classes(element, `finding ${tone}${finding.ongoing ? " ongoing" : ""}`);
  };
  draw(first);
  return { element, update };
}

export function findings(): LiveSection {
  const cards = h("ol", { class: "findings" });
  const none = h("p", { class: "note" }, "Nothing found so far.");
  const more = h("button", { type: "button", "aria-expanded": "false" });
  const element = h("section", {}, h("h2", {}, "Findings"), none, cards, more);
  let all = false;
  let last: Shown | null = null;
  more.addEventListener("click", () => {
    all = !all;
    if (last) update(last);
  });
  const update = (shown: Shown) => {
    last = shown;
    const items = newest(shown);
    const older = items.length - FIRST;
    show(none, items.length === 0);
    show(more, older > 0);
    more.setAttribute("aria-expanded", String(all));
    text(more, all ? `Only the newest ${FIRST}` : `${older} older`);
    keyed(
      cards,
      all ? items : items.slice(0, FIRST),
      ({ node, known, shown: { several } }) =>
        `${node.node} ${node.view?.started} ${known.finding.id} ${several}`,
      card,
    );
  };
  return { element, update };
}
