// Cost, longest block and the neighbour's share against the size of Bin.
import type { Axis, Rule } from "../charts/common.ts";
import { lines } from "../charts/lines.ts";
import { figure } from "../figure.ts";
import { bytes, duration, percent } from "../format.ts";
import { type Named, type Size, subjects } from "../model.ts";
import type { Section } from "../section.ts";
import { extent, quantile } from "../stats.ts";

interface Row {
  title: string;
  about: string;
  y: Axis;
  value: (size: Size) => { y: number | null; low?: number | null; high?: number | null } | null;
  rules: (named: Named) => Rule[];
}

const limitOf = ({ check }: Named, property: string): number | null =>
  check.thresholds.find((t) => t.property === property)?.limit ?? null;

/** The figures, in their order: adding one means adding a row. */
const ROWS: Row[] = [
  {
    title: "Time of a call",
    about: "The median; the bar is the middle half of the samples.",
    y: { label: "time of a call", format: duration, log: true },
    value: ({ time }) =>
      time
        ? { y: time.median, low: quantile(time.samples, 0.25), high: quantile(time.samples, 0.75) }
        : null,
    rules: () => [],
  },
  {
    title: "Longest block",
    about: "The longest stretch on a normal scheduler that repeats have shown.",
    y: { label: "longest block", format: duration, log: true },
    value: ({ slices }) => (slices ? { y: slices.block.repeated } : null),
    rules: ({ check }) => [
      { at: check.options.limit_ns, text: `limit ${duration(check.options.limit_ns)}` },
    ],
  },
  {
    title: "CPU left to an Erlang neighbour",
    about:
      "Of one scheduler, beside calls without a pause; the bar reaches over three kinds of neighbours. Two Erlang processes leave each other 50 %.",
    y: { label: "CPU left", format: percent, least: [0, 1] },
    value: ({ share }) => {
      if (!share) return null;
      const [low, high] = extent([share.sort, share.maps, share.binaries]) ?? [null, null];
      return { y: share.median, low, high };
    },
    rules: (named) => {
      const limit = limitOf(named, "unfair");
      return limit === null ? [] : [{ at: limit, text: `limit ${percent(limit)}` }];
    },
  },
];

export const checkSizes: Section = {
  title: "Against size",
  show: (sources) => {
    const all = subjects(sources);
    const labels = all.map((n) => n.label);
    const figures = ROWS.flatMap((row) => {
      const series = all.map((named) => ({
        label: named.label,
        points: named.subject.sizes.flatMap((z) => {
          const value = row.value(z);
          return value ? [{ x: z.size, ...value }] : [];
        }),
      }));
      const first = all[0];
      if (!first || series.every((s) => s.points.length === 0)) return [];
      return figure(
        lines({
          title: row.title,
          about: row.about,
          lines: series,
          labels,
          x: { label: "bytes of Bin", format: bytes, log: true },
          y: row.y,
          rules: row.rules(first),
          height: 220,
        }),
      );
    });
    return figures.length > 0 ? figures : null;
  },
};
