// http: what a server's light requests feel while heavy ones run native code, by mode and duration.
import { dots } from "../charts/dots.ts";
import { lines } from "../charts/lines.ts";
import { strips } from "../charts/strips.ts";
import { type Child, h } from "../dom.ts";
import { figure } from "../figure.ts";
import { count, duration, number, percent, times, ofMicroseconds as us } from "../format.ts";
import { result, rowsOf, type Source } from "../model.ts";
import type { Section } from "../section.ts";
import { greatest, unique } from "../stats.ts";

interface Point {
  t_ms: number;
  requests_per_s: number;
  p99_us: number | null;
  /** Null where it could not be read. */
  use?: (number | null)[] | null;
  dirty_cpu_use?: (number | null)[] | null;
  queues?: (number | null)[] | null;
}

interface Row {
  mode: string;
  title: string;
  job: string | null;
  duration_ms: number | null;
  at_once: number;
  rate: number;
  repeat: number;
  status: string;
  why?: string | null;
  window_ms: number;
  light?: {
    p50_us: number | null;
    p99_us: number | null;
    max_us: number | null;
    failed: number;
    unanswered: number;
    requests_per_s: number;
  };
  finding?: string | null;
  timeline?: Point[];
}

interface Compared {
  title: string;
  job: string | null;
  duration_ms: number | null;
  at_once: number;
  rate: number;
  p99_us: number | null;
  erlang_p99_us: number | null;
  idle_p99_us: number | null;
  requests_per_s: number | null;
  heavy_per_s: number | null;
  times_erlang: number | null;
  at_most: number | null;
  kept: boolean | null;
  finding?: string | null;
}

const ms = (v: number): string => duration(v * 1e6);

/** What was heavy: the same for all modes of one plot. */
const heavy = (r: {
  job: string | null;
  duration_ms: number | null;
  at_once: number;
  rate: number;
}) =>
  r.duration_ms === null
    ? `nothing heavy, ${r.rate} light a second`
    : `${r.job} of ${ms(r.duration_ms)}, ${r.at_once} at once, ${r.rate} light a second`;

const KEPT: Record<string, string> = { true: "kept", false: "not kept" };

export const http: Section = {
  title: "Light requests beside heavy ones",
  show: (sources) => {
    const rows = rowsOf<Row>(sources);
    const measured = rows.filter((r) => r.light);
    const heavies = unique(rows.filter((r) => r.duration_ms !== null).map(heavy));
    return [
      figure(comparison(sources)),
      heavies.map((what) => {
        const beside = measured.filter((r) => heavy(r) === what);
        const rates = unique(beside.map((r) => r.rate));
        const idle = measured.filter((r) => r.duration_ms === null && rates.includes(r.rate));
        return figure(
          dots({
            title: `Latency of the light requests: ${what}`,
            heading: "beside",
            rows: [...idle, ...beside].map((r) => ({
              label: r.repeat > 1 ? `${r.title}, repeat ${r.repeat}` : r.title,
              series: r.series,
              points: {
                median: us(r.light?.p50_us),
                p99: us(r.light?.p99_us),
                longest: us(r.light?.max_us),
              },
              note: r.finding ?? (r.light?.p99_us == null ? "no answer" : null),
            })),
            x: { label: "from due to answered", format: duration, log: true },
          }),
        );
      }),
      h("h3", {}, "Over time"),
      measured.map(overTime),
    ];
  },
};

function comparison(sources: readonly Source[]) {
  const rows = sources.flatMap((s) =>
    (result<{ compared?: Compared[] }>(s).compared ?? []).map((c) => ({ ...c, series: s.name })),
  );
  return {
    title: "Beside equal work in Erlang",
    about: "p99 of the light requests; the medians of the repeats.",
    table: {
      columns: [
        { title: "mode", text: true },
        { title: "heavy", text: true },
        { title: "p99" },
        { title: "beside Erlang" },
        { title: "idle" },
        { title: "times Erlang" },
        { title: "promised" },
        { title: "kept", text: true },
        { title: "light a second" },
        { title: "heavy a second" },
        { title: "finding", text: true },
      ],
      rows: rows.map((c) => [
        c.series ? `${c.series}: ${c.title}` : c.title,
        heavy(c),
        duration(us(c.p99_us)),
        duration(us(c.erlang_p99_us)),
        duration(us(c.idle_p99_us)),
        times(c.times_erlang),
        c.at_most === null ? "-" : `at most ${times(c.at_most)}`,
        KEPT[String(c.kept)] ?? "-",
        number(c.requests_per_s),
        number(c.heavy_per_s),
        c.finding ?? "-",
      ]),
    },
  };
}

/** One run: requests, latency and the use of each scheduler, over the same time. */
function overTime(row: Row & { series: string }): Child {
  const timeline = row.timeline ?? [];
  if (timeline.length === 0) return null;
  const title = `${row.series ? `${row.series}: ` : ""}${row.title}: ${heavy(row)}, repeat ${row.repeat}`;
  const x = { label: "time", format: duration, least: [0, row.window_ms * 1e6] as const };
  const end = (i: number): number => (timeline[i + 1]?.t_ms ?? row.window_ms) * 1e6;
  const cells = (value: (p: Point) => number | null | undefined) =>
    timeline.map((p, i) => ({ x: p.t_ms * 1e6, to: end(i), value: value(p) ?? null }));
  const schedulers = greatest(timeline.map((p) => p.use?.length ?? 0)) ?? 0;
  const numbered = (
    n: number,
    name: string,
    value: (p: Point, i: number) => number | null | undefined,
  ) =>
    Array.from({ length: n }, (_, i) => ({
      label: `${name} ${i + 1}`,
      cells: cells((p) => value(p, i)),
    }));
  return h(
    "details",
    { class: "run" },
    h("summary", {}, title),
    figure(
      lines({
        title: "Light requests answered",
        lines: [
          { label: "", points: timeline.map((p) => ({ x: p.t_ms * 1e6, y: p.requests_per_s })) },
        ],
        x,
        y: { label: "a second", format: count, least: [0, row.rate] },
        height: 150,
      }),
    ),
    figure(
      lines({
        title: "Their p99",
        lines: [{ label: "", points: timeline.map((p) => ({ x: p.t_ms * 1e6, y: us(p.p99_us) })) }],
        x,
        y: { label: "p99", format: duration, log: true },
        height: 150,
      }),
    ),
    figure(
      strips({
        title: "Use of each scheduler",
        strips: [
          ...numbered(schedulers, "normal", (p, i) => p.use?.[i]),
          ...numbered(
            greatest(timeline.map((p) => p.dirty_cpu_use?.length ?? 0)) ?? 0,
            "dirty CPU",
            (p, i) => p.dirty_cpu_use?.[i],
          ),
        ],
        x,
        value: { label: "in use", format: percent },
        full: 1,
      }),
    ),
    timeline.some((p) => p.queues) &&
      figure(
        strips({
          title: "Run queues",
          strips: numbered(schedulers, "queue", (p, i) => p.queues?.[i]),
          x,
          value: { label: "processes waiting", format: number },
          full: greatest(timeline.flatMap((p) => p.queues ?? [])) ?? 1,
        }),
      ),
  );
}
