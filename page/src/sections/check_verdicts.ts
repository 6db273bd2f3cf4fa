// A card for each property: the verdict, its sentence, the limit and where it is from.
import { type Child, h } from "../dom.ts";
import { figure } from "../figure.ts";
import { bytes, duration, number, percent } from "../format.ts";
import {
  type Named,
  PROPERTIES,
  type Status,
  subjects,
  type Threshold,
  type Verdict,
} from "../model.ts";
import type { Section } from "../section.ts";

const STATUS: Record<Status, { word: string; mark: string }> = {
  pass: { word: "ok", mark: "\u2713" },
  warn: { word: "warn", mark: "!" },
  fail: { word: "FAIL", mark: "\u2717" },
  unsure: { word: "unsure", mark: "?" },
  waived: { word: "waived", mark: "~" },
};

export const checkVerdicts: Section = {
  title: "Verdicts",
  show: (sources) => {
    const all = subjects(sources);
    return [
      all.length > 1 && figure(sideBySide(all)),
      all.map((named) => [
        all.length > 1 && h("h3", {}, h("code", {}, named.label)),
        h(
          "div",
          { class: "cards" },
          named.subject.verdicts.map((v) => card(v, named)),
        ),
      ]),
    ];
  },
};

/** Several subjects: a column each. */
const sideBySide = (all: readonly Named[]) => ({
  title: "Side by side",
  table: {
    columns: [
      { title: "property", text: true },
      ...all.map((n) => ({ title: n.label, text: true })),
    ],
    rows: Object.entries(PROPERTIES).map(([property, title]) => [
      title,
      ...all.map((n) => {
        const status = n.subject.verdicts.find((v) => v.property === property)?.status;
        if (!status) return "-";
        const { word, mark } = STATUS[status] ?? STATUS.unsure;
        return h("span", { class: `status ${status}` }, `${mark} ${word}`);
      }),
    ]),
  },
});

function card(verdict: Verdict, { subject, check }: Named): Child {
  const { word, mark } = STATUS[verdict.status] ?? STATUS.unsure;
  const threshold = check.thresholds.find((t) => t.property === verdict.property);
  const bySize = subject.sizes.flatMap((z) =>
    z.verdicts
      .filter((v) => v.property === verdict.property)
      .map((v) => `${bytes(z.size)}: ${STATUS[v.status]?.word ?? v.status}`),
  );
  return h(
    "article",
    { class: `card ${verdict.status}` },
    h(
      "h4",
      {},
      `${PROPERTIES[verdict.property] ?? verdict.property}: `,
      h(
        "span",
        { class: "verdict" },
        h("span", { class: "mark", "aria-hidden": "true" }, mark),
        word,
      ),
    ),
    h("p", {}, verdict.sentence),
    h(
      "p",
      { class: "note" },
      bySize.length > 1 && `${bySize.join("; ")}. `,
      threshold && limit(threshold),
    ),
  );
}

const UNITS: Record<string, (v: number) => string> = {
  ns: duration,
  bytes,
  fraction: percent,
};

function limit({ limit, unit, decides, source }: Threshold): string {
  const value = limit === null ? null : (UNITS[unit ?? ""]?.(limit) ?? `${number(limit)} ${unit}`);
  return `${value ? `Limit ${value}; ` : ""}${source}.${decides ? "" : " Decides only when strict."}`;
}
