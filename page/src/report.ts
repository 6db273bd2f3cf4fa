// Which sections a report has, by its kind, and how they are put on the page. Adding a section to a
// kind, or a kind, means adding to this table; an experiment, to that of experiments.ts.
import { append, h, uniqueId } from "./dom.ts";
import { EXPERIMENTS } from "./experiments.ts";
import type { Report, Source } from "./model.ts";
import type { Section } from "./section.ts";
import { checkBaseline } from "./sections/check_baseline.ts";
import { checkDelay } from "./sections/check_delay.ts";
import { checkFigures } from "./sections/check_figures.ts";
import { checkGlance } from "./sections/check_glance.ts";
import { checkKills } from "./sections/check_kills.ts";
import { checkSizes } from "./sections/check_sizes.ts";
import { checkSlices } from "./sections/check_slices.ts";
import { checkVerdicts } from "./sections/check_verdicts.ts";
import { drawn } from "./sections/experiment.ts";
import { experimentGlance, terminal } from "./sections/experiment_glance.ts";
import { machine } from "./sections/machine.ts";

const UNKNOWN: Section[] = [experimentGlance(), terminal(true), machine];

const KINDS: Record<string, Section[]> = {
  check: [
    checkGlance,
    checkBaseline,
    checkVerdicts,
    checkSlices,
    checkSizes,
    checkDelay,
    checkKills,
    checkFigures,
    machine,
  ],
  ...Object.fromEntries(
    Object.entries(EXPERIMENTS).map(([name, { title, parts, conclude }]) => [
      name,
      [experimentGlance(conclude), drawn(title, parts), terminal(), machine],
    ]),
  ),
};

/** check, or the name of an experiment. */
export const kindOf = (report: Report): string =>
  report.command ?? report.experiment ?? report.kind ?? "report";

/** The sections of a kind; one that is not known has what any has. */
export const sectionsOf = (kind: string): Section[] =>
  Object.hasOwn(KINDS, kind) ? (KINDS[kind] ?? UNKNOWN) : UNKNOWN;

/** Two reports of one kind are compared, of two kinds shown one after the other. */
export function grouped(sources: readonly Source[]): { kind: string; sources: Source[] }[] {
  const groups: { kind: string; sources: Source[] }[] = [];
  for (const source of sources) {
    const kind = kindOf(source.report);
    const group = groups.find((g) => g.kind === kind);
    if (group) group.sources.push(source);
    else groups.push({ kind, sources: [source] });
  }
  return groups;
}

/** The element of a section; null where there is nothing for it. What it can't show it says. */
export function section(content: Section, sources: readonly Source[]): HTMLElement | null {
  const id = uniqueId("section");
  const element = h("section", { "aria-labelledby": id }, h("h2", { id }, content.title));
  try {
    const shown = content.show(sources);
    if (shown === null) return null;
    append(element, [shown]);
  } catch (error) {
    // A report of another version, or one written by hand: the other sections stay.
    append(element, [
      h("p", { class: "broken", role: "alert" }, `This part can't be shown: ${String(error)}`),
    ]);
  }
  return element;
}
