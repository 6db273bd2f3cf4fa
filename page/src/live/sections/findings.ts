// The findings, newest first: what was blocked, by whom, for how long, what helps, and the stack. Those
// of one culprit stand together: a function that blocks schedulers does so again and again.
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

/** Findings of one culprit on one node; first the one to show: one that lasts, or the newest. */
interface Group<T> {
  key: string;
  all: T[];
}

/** Groups in the order of their newest. Of whom nothing is known, nothing says that it is the same. */
export function groupsOf<
  T extends { node: { node: string }; known: { finding: Known["finding"] } },
>(items: readonly T[]): Group<T>[] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const { id, detector, culprit } = item.known.finding;
    const who = culprit.kind === null ? `#${id}` : `${culprit.kind} ${culprit.name}`;
    const key = `${item.node.node}\n${detector}\n${who}`;
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return [...groups].map(([key, all]) => {
    const on = all.find(({ known }) => known.finding.ongoing);
    return { key, all: on ? [on, ...all.filter((item) => item !== on)] : all };
  });
}

/** How often, for how long in all, and at most; "" of one. */
function sumText(findings: readonly Known["finding"][]): string {
  const times = findings.map((f) => f.duration_ms).filter((t) => t !== null);
  if (findings.length < 2) return "";
  const often = `${findings.length} times`;
  if (times.length === 0) return often;
  const all = times.reduce((sum, t) => sum + t, 0);
  return `${often}, for ${ms(all)} in all, ${ms(Math.max(...times))} at most`;
}

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

function card(first: Group<Item>): Row<Group<Item>> {
  const [severity, detector, where] = [h("span", {}), h("span", {}), h("span", {})];
  const [sentence, when, culprit, remedy] = [
    h("p", { class: "sentence" }),
    h("p", { class: "when" }),
    h("p", {}, "Culprit: ", h("code", {})),
    h("p", { class: "remedy" }),
  ];
  const [often, others] = [h("summary", {}), h("ol", { class: "others" })];
  const repeated = h("details", {}, often, others);
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
    repeated,
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
  const update = ({ all }: Group<Item>) => {
    const item = all[0];
    if (!item) return;
    const { finding } = item.known;
    if (finding !== drawn) draw(item);
    text(when, timeText(item));
    const { tone } = wordOf(SEVERITIES, finding.severity);
    classes(element, `finding ${tone}${finding.ongoing ? " ongoing" : ""}`);
    element.dataset.count = String(all.length);
    text(often, sumText(all.map(({ known }) => known.finding)));
    show(repeated, all.length > 1);
    keyed(
      others,
      all,
      (one) => String(idOf(one)),
      () => {
        const line = h("li", {});
        return {
          element: line,
          update: (one) =>
            text(line, `${subjectText(one.known.finding.subject)}: ${timeText(one)}`),
        };
      },
    );
  };
  update(first);
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
    const groups = groupsOf(newest(shown));
    const older = groups.length - FIRST;
    show(none, groups.length === 0);
    show(more, older > 0);
    more.setAttribute("aria-expanded", String(all));
    text(more, all ? `Only the newest ${FIRST}` : `${older} older`);
    keyed(
      cards,
      all ? groups : groups.slice(0, FIRST),
      ({ key, all: [first] }) => `${key}\n${first?.node.view?.started}\n${shown.several}`,
      card,
    );
  };
  return { element, update };
}
