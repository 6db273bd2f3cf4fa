// What has changed since the baseline that --baseline named.
import { h } from "../dom.ts";
import { figure } from "../figure.ts";
import { bytes, duration, type Maybe, number, percent, times } from "../format.ts";
import type { Section } from "../section.ts";

const FORMAT: Record<string, (v: Maybe) => string> = {
  time: duration,
  block: duration,
  charge: percent,
  share: percent,
  delay: duration,
  kill: duration,
  leak: bytes,
};

const WORDS: Record<string, string> = {
  improved: "improved",
  worse: "worse",
  within_noise: "within noise",
  unsure: "unsure",
};

export const checkBaseline: Section = {
  title: "Since the baseline",
  show: (sources) => {
    const compared = sources.filter((s) => s.report.baseline);
    if (compared.length === 0) return null;
    return compared.map(({ report: { baseline } }) => {
      if (!baseline) return null;
      const worse = baseline.rows.filter((r) => r.verdict === "worse" && r.role === "subject");
      return [
        h(
          "p",
          { class: worse.length > 0 ? "outcome fail" : "outcome pass" },
          worse.length > 0 ? `Worse in ${worse.length} figures.` : "Nothing is worse.",
        ),
        figure({
          title: `Compared with ${baseline.baseline}`,
          about: `Made ${baseline.made}.`,
          table: {
            columns: [
              { title: "figure", text: true },
              { title: "size" },
              { title: "verdict", text: true },
              { title: "before" },
              { title: "now" },
              { title: "now / before" },
              { title: "why", text: true },
            ],
            rows: baseline.rows.map((r) => {
              const format = FORMAT[r.figure] ?? number;
              return [
                r.role === "subject" ? r.figure : `${r.figure} (against)`,
                bytes(r.size),
                h("span", { class: `word-${r.verdict}` }, WORDS[r.verdict] ?? r.verdict),
                format(r.before),
                format(r.now),
                times(r.ratio),
                r.why,
              ];
            }),
          },
        }),
      ];
    });
  },
};
