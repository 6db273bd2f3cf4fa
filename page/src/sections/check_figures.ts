// All figures of a check, as the terminal shows them: a column for each size.
import { h } from "../dom.ts";
import { figure } from "../figure.ts";
import { bytes, count, duration, percent } from "../format.ts";
import { type Delays, type Size, type Summary, subjects } from "../model.ts";
import type { Section } from "../section.ts";
import { quantile } from "../stats.ts";

const three = (s: Summary): string => [s.median, s.p99, s.longest].map(duration).join(", ");
const late = (d: Delays | "unanswered" | undefined): string | undefined =>
  d === "unanswered" ? "no answer" : d && [d.p50, d.p99, d.max].map(duration).join(", ");

const lost = (l: { total: number | null; resolution: number }, each: number | null): string =>
  (l.total ?? 0) <= l.resolution ? "none seen" : bytes(each);

/** The rows; undefined was not measured. */
const ROWS: [string, (z: Size) => string | undefined][] = [
  [
    "time of a call, median (spread)",
    ({ time: t }) => t && `${duration(t.median)} (${percent(t.spread)})`,
  ],
  ["slices on normal schedulers", ({ slices: s }) => s && count(s.normal.count)],
  ["  median, p99, longest", ({ slices: s }) => s && three(s.normal)],
  [
    "slices on dirty schedulers",
    ({ slices: s }) => (s?.dirty.count ? count(s.dirty.count) : undefined),
  ],
  ["  median, p99, longest", ({ slices: s }) => (s?.dirty.count ? three(s.dirty) : undefined)],
  ["calls traced", ({ slices: s }) => s && count(s.block.calls)],
  ["longest block (reproducible)", ({ slices: s }) => s && duration(s.block.repeated)],
  [
    "first call; its longest block",
    ({ first: f }) => f && `${duration(f.elapsed)}; ${duration(f.block)}`,
  ],
  ["reductions charged", ({ charge: c }) => c && count(c.per_call)],
  [
    "  per ms; as a part of Erlang's",
    ({ charge: c }) => c && `${count(c.per_ms)}; ${percent(c.ratio)}`,
  ],
  ["CPU left to a neighbour, median", ({ share: s }) => s && percent(s.median)],
  [
    "  that sorts, maps, builds binaries",
    ({ share: s }) => s && [s.sort, s.maps, s.binaries].map(percent).join(", "),
  ],
  ["a process due every ms is late, p50, p99, max", ({ delay: d }) => late(d?.beside)],
  ["  beside busy Erlang", ({ delay: d }) => late(d?.erlang)],
  ["  idle", ({ delay: d }) => late(d?.idle)],
  [
    "wait for thread progress, median, longest; idle",
    ({ thread_progress: t }) =>
      t &&
      `${duration(t.beside.median)}, ${duration(t.beside.longest)}; ${duration(t.idle.median)}`,
  ],
  [
    "long_schedule (1 ms) reported",
    ({ long_schedule: l }) =>
      l && (l.count ? `${count(l.count)} times, at most ${l.longest_ms} ms` : "nothing"),
  ],
  ["  it named", ({ long_schedule: l }) => l?.named.join("; ") || undefined],
  [
    "its garbage blocks for, collected, killed",
    ({ garbage: g }) =>
      g && [g.collected, g.killed].map((s) => duration(quantile(s, 0.5))).join(", "),
  ],
  [
    "from kill to stop, median, longest",
    ({ kill: k }) => k && `${duration(k.stop.median)}, ${duration(k.stop.longest)}`,
  ],
  ["  DOWN came after, median", ({ kill: k }) => k && duration(k.down.median)],
  ["memory lost by a kill", ({ leak: l }) => l && lost(l, l.per_kill)],
  ["  by a call that is not killed", ({ leak: l }) => l?.alone && lost(l.alone, l.alone.per_call)],
  ["not measured", (z) => z.error ?? undefined],
];

export const checkFigures: Section = {
  title: "All figures",
  show: (sources) =>
    subjects(sources).map(({ label, subject }) => [
      figure({
        title: label,
        about:
          subject.growth === null
            ? null
            : `Time grows with N to the power of ${subject.growth.toFixed(2)}.`,
        table: {
          columns: [
            { title: "figure", text: true },
            ...subject.sizes.map((z) => ({
              title: `N = ${count(z.size)}${z.asked ? `, in place of ${count(z.asked)}` : ""}`,
            })),
          ],
          rows: ROWS.map(([title, cell]) => [title, ...subject.sizes.map((z) => cell(z))])
            .filter(([, ...cells]) => cells.some((c) => c !== undefined))
            .map(([title, ...cells]) => [
              title?.startsWith("  ") ? h("span", { class: "indent" }, title.trim()) : title,
              ...cells.map((c) => c ?? "-"),
            ]),
        },
      }),
    ]),
};
