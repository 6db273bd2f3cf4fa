// An experiment at a glance: what it is, what to see in it, and whether all of it was measured.
import { type Child, h } from "../dom.ts";
import type { Source } from "../model.ts";
import type { Section } from "../section.ts";

/** Lines of the terminal's tables, with either kind of frame. */
const FRAME = /^[\u2500-\u257f+|]/m;
const TO_SEE = /^What to see:/;

/** The paragraphs of what the terminal showed, tables apart. */
export function paragraphs(text: string): string[] {
  return text.split(/\n\s*\n/).flatMap((part) => {
    const lines = part.split("\n").filter((line) => line.trim() !== "" && !FRAME.test(line));
    return lines.length > 0 ? [lines.join("\n")] : [];
  });
}

/** The part that says what to see. */
export function conclusion({ report }: Source): string[] {
  const all = paragraphs(report.text ?? "");
  const seen = all.findIndex((p) => TO_SEE.test(p));
  return seen >= 0 ? all.slice(seen) : [];
}

/** With what is to be concluded: from the terminal's text, if nothing else is given. */
export const experimentGlance = (conclude: (source: Source) => string[] = conclusion): Section => ({
  title: "At a glance",
  show: (sources) => sources.map((source) => answer(source, conclude(source))),
});

function answer({ name, report }: Source, concluded: string[]): Child {
  const { ok } = (report.result ?? {}) as { ok?: boolean };
  return h(
    "div",
    { class: `answer ${ok === false ? "fail" : "plain"}` },
    name && h("p", { class: "source" }, name),
    h("p", { class: "word" }, report.experiment ?? report.kind ?? "Report"),
    report.description && h("p", {}, report.description),
    ok === false && h("p", {}, "Something that was to be measured failed: the figures say what."),
    concluded.map(paragraph),
  );
}

/** Lists of the terminal keep their lines, prose does not. */
const paragraph = (text: string): Child =>
  text.includes("\n ")
    ? h("pre", { tabindex: 0, "aria-label": "What to see" }, text)
    : h("p", { class: "conclusion" }, text.replaceAll("\n", " "));

/** All that the terminal showed; unfolded where the page has no figures. */
export const terminal = (open = false): Section => ({
  title: "In the terminal",
  show: (sources) => {
    const shown = sources.filter((s) => s.report.text);
    if (shown.length === 0) return null;
    return shown.map(({ name, report }) =>
      h(
        "details",
        { open },
        h("summary", {}, name ? `What the terminal showed: ${name}` : "What the terminal showed"),
        h("pre", { tabindex: 0, role: "region", "aria-label": "Terminal" }, report.text),
      ),
    );
  },
});
