// At a glance: is it well-behaved, and what should I do?
import { type Child, h } from "../dom.ts";
import { percent } from "../format.ts";
import { type Check, PROPERTIES, result, type Source } from "../model.ts";
import type { Section } from "../section.ts";
import { greatest } from "../stats.ts";

const ANSWERS = {
  0: { word: "Well-behaved", status: "pass", mark: "\u2713" },
  1: { word: "Not well-behaved", status: "fail", mark: "\u2717" },
  3: { word: "Unsure", status: "unsure", mark: "?" },
} as const;

export const checkGlance: Section = {
  title: "At a glance",
  show: (sources) => sources.map(answer),
};

function answer(source: Source): Child {
  const check = result<Check>(source);
  const { word, status, mark } = ANSWERS[check.exit] ?? ANSWERS[3];
  return h(
    "div",
    { class: `answer ${status}` },
    source.name && h("p", { class: "source" }, source.name),
    h("p", { class: "word" }, h("span", { class: "mark", "aria-hidden": "true" }, mark), word),
    h("p", { class: "expression" }, h("code", {}, check.expression)),
    because(check),
    source.report.baseline?.exit === 1 && h("p", {}, "Worse than the baseline: see below."),
    advice(check),
    noise(check),
  );
}

function because(check: Check): Child {
  const verdicts = check.subjects[0]?.verdicts ?? [];
  const named = (status: string): string =>
    verdicts
      .filter((v) => v.status === status)
      .map((v) => PROPERTIES[v.property] ?? v.property)
      .join(", ");
  const parts = [
    [named("fail"), "Findings: "],
    [named("warn"), "Warnings: "],
    [named("unsure"), "Could not be said: "],
    [named("waived"), "Waived: "],
  ].filter(([names]) => names !== "");
  return parts.map(([names, what]) => h("p", {}, `${what}${names}.`));
}

function advice(check: Check): Child {
  return check.subjects
    .filter((s) => s.advice.length > 0)
    .map((s, i) => [
      h(
        "h3",
        {},
        i === 0 && s.role === "subject"
          ? "What to do"
          : ["What to do with ", h("code", {}, s.expression)],
      ),
      h(
        "ul",
        {},
        s.advice.map((a) => h("li", {}, a)),
      ),
    ]);
}

/** As in the terminal: more than this part of a processor used by others is worth saying. */
function noise(check: Check): Child {
  const most = greatest(check.subjects.flatMap((s) => s.sizes.flatMap((z) => z.others ?? [])));
  return (
    most !== null &&
    most > 0.2 &&
    h(
      "p",
      { class: "note" },
      `Other programs used up to ${percent(most)} of a processor meanwhile. Doubt the figures rather than the verdicts.`,
    )
  );
}
