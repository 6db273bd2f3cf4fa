// exor: a large binary XORed in seven ways, and the figures of Vinoski's talk.
import { dots } from "../charts/dots.ts";
import { histogram } from "../charts/histogram.ts";
import { figure } from "../figure.ts";
import { bytes, count, duration, ofMicroseconds, percent } from "../format.ts";
import { result, rowsOf } from "../model.ts";
import type { Section } from "../section.ts";

interface Row {
  form: string;
  note?: string;
  elapsed_us?: number;
  hold_longest?: number | null;
  reductions?: number;
  yields?: number;
  share?: (number | null)[];
  talk?: { seconds: number; yields: number; reductions: number } | null;
  traced?: { slices_normal: number[]; slices_dirty: number[] }[];
}

const average = (values: (number | null)[] = []): number | null => {
  const known = values.filter((v) => v !== null);
  return known.length > 0 ? known.reduce((a, b) => a + b, 0) / known.length : null;
};

export const exor: Section = {
  title: "Fair and unfair",
  show: (sources) => {
    const rows = rowsOf<Row>(sources);
    const row = (points: (r: (typeof rows)[number]) => Record<string, number | null | undefined>) =>
      rows.map((r) => ({ label: r.form, series: r.series, points: points(r) }));
    const size = sources.map((s) => bytes(result<{ size: number }>(s).size)).join(" and ");
    return [
      figure(
        dots({
          title: "Longest hold of a normal scheduler",
          about: "Nothing else runs on that scheduler meanwhile.",
          heading: "form",
          rows: row((r) => ({ "longest hold": r.hold_longest })),
          x: { label: "longest hold", format: duration, log: true },
          rules: [{ at: 1e6, text: "documented limit 1 ms" }],
        }),
      ),
      figure(
        dots({
          title: "CPU left to an Erlang neighbour",
          about:
            "Of one scheduler. On dirty schedulers the work is done elsewhere. Over 100 % is noise: other programs had the processor while the neighbour was alone.",
          heading: "form",
          rows: row((r) => ({ "CPU left": average(r.share) })),
          x: { label: "CPU left", format: percent, least: [0, 1] },
        }),
      ),
      figure(
        dots({
          title: `Time for ${size}`,
          heading: "form",
          rows: row((r) => ({ elapsed: ofMicroseconds(r.elapsed_us) })),
          x: { label: "elapsed, the fastest run", format: duration, log: true },
        }),
      ),
      figure(
        histogram({
          title: "Slices",
          about: "How many slices on normal schedulers were how long.",
          heading: "form",
          groups: rows.flatMap((r) => {
            const samples = (r.traced ?? []).flatMap((t) => t.slices_normal);
            return samples.length > 0 ? [{ label: r.form, series: r.series, samples }] : [];
          }),
          x: { label: "length of a slice", format: duration, log: true },
          rules: [{ at: 1e6, text: "documented limit 1 ms" }],
        }),
      ),
      figure({
        title: "Beside the talk",
        about:
          "Vinoski's talk XORed 2,000,000,000 bytes on another machine: compare the ratios between forms.",
        table: {
          columns: [
            { title: "form", text: true },
            ...(sources.length > 1 ? [{ title: "of", text: true }] : []),
            { title: "elapsed" },
            { title: "the talk" },
            { title: "yields" },
            { title: "the talk" },
            { title: "reductions" },
            { title: "the talk" },
          ],
          rows: rows.map((r) => [
            r.form,
            ...(sources.length > 1 ? [r.series] : []),
            duration(ofMicroseconds(r.elapsed_us)),
            duration(r.talk && r.talk.seconds * 1e9),
            count(r.yields),
            count(r.talk?.yields),
            count(r.reductions),
            count(r.talk?.reductions),
          ]),
        },
      }),
    ];
  },
};
