// share: the CPU that each mode leaves to Erlang neighbours, and how late sleepers are.
import { dots } from "../charts/dots.ts";
import { figure } from "../figure.ts";
import { duration, percent } from "../format.ts";
import { rowsOf } from "../model.ts";
import type { Section } from "../section.ts";
import { extent, quantile } from "../stats.ts";

interface Row {
  title: string;
  slice_us: number | null;
  published?: string | null;
  delay: { p50?: number; p99?: number; max?: number; error?: string };
  share: { neighbours?: { share: number | null }[]; error?: string };
}

/** "3 to 7 %" as fractions. */
export function publishedRange(text: string | null | undefined): [number, number] | undefined {
  const match = /^([\d.]+) to ([\d.]+) %$/.exec(text ?? "");
  return match ? [Number(match[1]) / 100, Number(match[2]) / 100] : undefined;
}

export const share: Section = {
  title: "What is left to others",
  show: (sources) => {
    const rows = rowsOf<Row>(sources).map((r) => ({
      ...r,
      label: r.slice_us === null ? r.title : `${r.title}, ${duration(r.slice_us * 1e3)}`,
    }));
    return [
      figure(
        dots({
          title: "CPU left to an Erlang neighbour",
          about:
            "Of one scheduler, beside each mode and length of a slice. Two Erlang processes leave each other half.",
          heading: "beside",
          rows: rows.map((r) => {
            const left = (r.share.neighbours ?? []).flatMap((n) => n.share ?? []);
            const [low, high] = extent(left) ?? [null, null];
            return {
              label: r.label,
              series: r.series,
              points:
                left.length > 1
                  ? { median: quantile(left, 0.5), least: low, most: high }
                  : { median: low },
              range: publishedRange(r.published),
              note: r.share.error,
            };
          }),
          rangeTitle: "published",
          x: { label: "CPU left", format: percent, least: [0, 1] },
        }),
      ),
      figure(
        dots({
          title: "How late a sleeper of 1 ms wakes",
          about: "Beside as many endless callers as schedulers.",
          heading: "beside",
          rows: rows.map((r) => ({
            label: r.label,
            series: r.series,
            points: { median: r.delay.p50, p99: r.delay.p99, longest: r.delay.max },
            note: r.delay.error,
          })),
          x: { label: "late by", format: duration, log: true },
        }),
      ),
    ];
  },
};
