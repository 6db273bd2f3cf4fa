// levenshtein: calls a second by length, and who is late beside endless callers.
import { dots } from "../charts/dots.ts";
import { lines } from "../charts/lines.ts";
import { figure } from "../figure.ts";
import { bytes, count, duration } from "../format.ts";
import { result } from "../model.ts";
import type { Section } from "../section.ts";

interface Rate {
  per_second: number;
  samples?: number[];
}

interface Levenshtein {
  rates: { length: number; forms?: Record<string, Rate>; error?: string }[];
  jitter: {
    form: string;
    title: string;
    sleep_ms: number;
    p50?: number;
    p99?: number;
    max?: number;
    error?: string;
  }[];
  published?: Record<string, Rate>;
  published_late?: Record<string, string>;
}

export const levenshtein: Section = {
  title: "Rates and lateness",
  show: (sources) => {
    const all = sources.map((s) => ({ series: s.name, ...result<Levenshtein>(s) }));
    const forms = [
      ...new Set(all.flatMap((r) => r.rates.flatMap((rate) => Object.keys(rate.forms ?? {})))),
    ];
    const titles = new Map(all.flatMap((r) => r.jitter.map((j) => [j.form, j.title])));
    const title = (form: string) => titles.get(form) ?? form;
    const published = all[0]?.published ?? {};
    const late = all[0]?.published_late ?? {};
    return [
      figure(
        lines({
          title: "Calls a second of one process",
          about: "Random bytes. The published figures came without a length: dashed lines.",
          lines: all.flatMap((r) =>
            forms.map((form) => ({
              label: title(form),
              series: r.series,
              points: r.rates.map((rate) => ({
                x: rate.length,
                y: rate.forms?.[form]?.per_second ?? null,
              })),
            })),
          ),
          x: { label: "bytes", format: bytes, log: true },
          y: { label: "calls a second", format: count, log: true },
          rules: Object.entries(published).map(([form, { per_second }]) => ({
            at: per_second,
            text: `${title(form)}, published: ${count(per_second)}`,
          })),
        }),
      ),
      [...new Set(all.flatMap((r) => r.jitter.map((j) => j.sleep_ms)))].map((sleep) =>
        figure(
          dots({
            title: `How late a sleeper of ${duration(sleep * 1e6)} wakes`,
            about: [
              "Beside as many endless callers as processors. ",
              sleep === 1000 &&
                Object.entries(late)
                  .map(([form, text]) => `Published, beside ${title(form)}: ${text}. `)
                  .join(""),
            ],
            heading: "beside",
            rows: all.flatMap((r) =>
              r.jitter
                .filter((j) => j.sleep_ms === sleep)
                .map((j) => ({
                  label: j.title,
                  series: r.series,
                  points: { median: j.p50, p99: j.p99, longest: j.max },
                  note: j.error,
                })),
            ),
            x: { label: "late by", format: duration, log: true },
          }),
        ),
      ),
    ];
  },
};
