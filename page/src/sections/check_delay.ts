// What others feel: how late a sleeper of 1 ms wakes beside the function, against an idle node and
// against ordinary Erlang.
import { dots } from "../charts/dots.ts";
import { histogram } from "../charts/histogram.ts";
import { type Child, h } from "../dom.ts";
import { figure } from "../figure.ts";
import { bytes, duration } from "../format.ts";
import { bySize, type Delays, type Named, seriesOf, subjects } from "../model.ts";
import type { Section } from "../section.ts";
import { unique } from "../stats.ts";

const BESIDE = [
  ["idle", "idle"],
  ["erlang", "busy Erlang"],
  ["beside", "the function"],
] as const;

interface Row {
  label: string;
  series: string;
  delays: Delays | "unanswered";
}

export const checkDelay: Section = {
  title: "What others feel",
  show: (sources) => {
    const all = subjects(sources);
    const sizes = unique(bySize(all).map(({ z }) => z.size));
    const figures = sizes
      .map((size) => ({ size, rows: rows(all, size) }))
      .filter((s) => s.rows.length > 0);
    if (figures.length === 0) return null;
    return [
      h("p", { class: "about" }, ABOUT),
      figures.map(({ size, rows }) => [plot(size, rows), silent(rows)]),
    ];
  },
};

const rows = (all: Named[], size: number): Row[] =>
  BESIDE.flatMap(([key, label]) =>
    all.flatMap((named) => {
      const delays = named.subject.sizes.find((z) => z.size === size)?.delay?.[key];
      return delays ? [{ label, series: seriesOf(all, named), delays }] : [];
    }),
  );

const x = { label: "woke so much later than it should", format: duration, log: true };
const ABOUT =
  "A process sleeps 1 ms, again and again, while every scheduler runs the function; before that, while the node is idle, and while every scheduler runs ordinary Erlang. An idle node is 1 ms late as well: timers have ticks.";

function plot(size: number, rows: Row[]): Child {
  const title = `Wake-up delay, Bin of ${bytes(size)}`;
  const measured = rows.flatMap((r) =>
    r.delays === "unanswered" ? [] : [{ ...r, delays: r.delays }],
  );
  const summary = dots({
    title: `${title}: median, p99 and longest`,
    heading: "beside",
    rows: rows.map(({ label, series, delays }) => ({
      label,
      series,
      points:
        delays === "unanswered" ? {} : { median: delays.p50, p99: delays.p99, longest: delays.max },
      note: delays === "unanswered" ? "no answer" : null,
    })),
    x,
  });
  // Reports of before there were samples.
  if (measured.some((r) => r.delays.samples === undefined)) return figure(summary);
  return [
    figure(
      histogram({
        title,
        heading: "beside",
        groups: measured.map((r) => ({ ...r, samples: r.delays.samples ?? [] })),
        x,
      }),
    ),
    figure(summary),
  ];
}

const silent = (rows: Row[]): Child =>
  rows.some((r) => r.delays === "unanswered") &&
  h("p", { class: "note" }, "Beside the function nothing else ran while patience lasted.");
