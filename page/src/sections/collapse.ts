// collapse: queues and use of each scheduler over time, and how unequal the processes' times were.
import { dots } from "../charts/dots.ts";
import { strips } from "../charts/strips.ts";
import { type Child, h } from "../dom.ts";
import { figure } from "../figure.ts";
import { count, duration, percent } from "../format.ts";
import { result, type Source } from "../model.ts";
import type { Section } from "../section.ts";
import { greatest, quantile } from "../stats.ts";

interface Run {
  phase: string;
  online: number;
  seconds: number[];
  fairness?: number | null;
  in_use?: number[];
  collapsed: boolean | string;
  why?: string;
  /** Milliseconds since the begin, and the length of each queue. */
  samples?: [number, number[]][];
  elapsed_ms: number;
  error?: string;
}

interface Collapse {
  rows: { work: string; variant: string; runs: Run[]; error?: string }[];
  published?: Record<string, unknown>[];
}

interface Named {
  label: string;
  series: string;
  run: Run;
}

const runsOf = (source: Source): Named[] =>
  result<Collapse>(source).rows.flatMap((row) =>
    (row.runs ?? []).map((run, i) => ({
      label: `${row.work}, ${row.variant}: run ${i + 1}, ${run.online} online`,
      series: source.name,
      run,
    })),
  );

const ANSWERS: Record<string, string> = { true: "yes", false: "no" };

/** Whether there was a collapse, with what. */
export function collapseConclusion(source: Source): string[] {
  const { rows } = result<Collapse>(source);
  const where = (answer: (run: Run) => boolean): string[] =>
    rows.filter((row) => (row.runs ?? []).some(answer)).map((row) => `${row.work}, ${row.variant}`);
  const collapsed = where((run) => run.collapsed === true);
  const unsure = where((run) => run.collapsed === "cannot_say");
  return [
    collapsed.length > 0
      ? `Schedulers slept while work waited: ${collapsed.join("; ")}.`
      : "No scheduler was seen to sleep while work waited. That none did here does not say that none does on a larger machine.",
    unsure.length > 0 ? `Of some runs it can't be said: ${unsure.join("; ")}.` : "",
  ].filter((p) => p !== "");
}

export const collapse: Section = {
  title: "Schedulers over time",
  show: (sources) => {
    const runs = sources.flatMap(runsOf).filter(({ run }) => run.seconds);
    return [
      figure(
        dots({
          title: "Time of a process",
          about:
            "All processes have the same to do. A fair VM lets them end together; compare with ordinary Erlang.",
          heading: "work",
          rows: runs.map(({ label, series, run }) => ({
            label,
            series,
            points: {
              shortest: ns(quantile(run.seconds, 0)),
              median: ns(quantile(run.seconds, 0.5)),
              longest: ns(greatest(run.seconds)),
            },
          })),
          x: { label: "time", format: duration, log: true },
        }),
      ),
      figure(outcomes(sources, runs)),
      sources.map((s) => [sources.length > 1 && h("h3", {}, s.name), runsOf(s).map(overTime)]),
    ];
  },
};

const ns = (seconds: number | null): number | null => (seconds === null ? null : seconds * 1e9);

function outcomes(sources: readonly Source[], runs: Named[]) {
  const published = result<Collapse>(sources[0] as Source).published ?? [];
  const text = (v: unknown): string => (v === undefined || v === null ? "-" : String(v));
  return {
    title: "Collapsed?",
    about:
      "A scheduler that was in use for less than half of the time in which work waited for it. The VM for which a collapse was published had 8 to 16 processors.",
    table: {
      columns: [
        { title: "work", text: true },
        { title: "collapsed", text: true },
        { title: "longest / shortest" },
        { title: "in use, by scheduler" },
        { title: "why", text: true },
      ],
      rows: [
        ...runs.map(({ label, series, run }) => [
          series ? `${series}: ${label}` : label,
          ANSWERS[String(run.collapsed)] ?? "can't say",
          run.fairness ? `${run.fairness.toFixed(1)}x` : "-",
          (run.in_use ?? []).map((u) => percent(u / 100)).join(", "),
          run.why ?? "-",
        ]),
        ...published.map((p) => [
          `published: ${text(p.what)}${p.online ? `, ${text(p.online)} online` : ""}`,
          p.collapsed === undefined ? "-" : (ANSWERS[String(p.collapsed)] ?? "-"),
          typeof p.longest === "number" && typeof p.shortest === "number"
            ? `${(p.longest / p.shortest).toFixed(0)}x`
            : "-",
          text(p.in_use),
          text(p.per_5s === undefined ? null : `${text(p.per_5s)} jobs a scheduler in 5 s`),
        ]),
      ],
    },
  };
}

function overTime({ label, run }: Named): Child {
  const samples = run.samples ?? [];
  if (samples.length === 0) return null;
  const ends = [
    ...samples.slice(1).map(([ms]) => ms),
    Math.max(run.elapsed_ms, samples.at(-1)?.[0] ?? 0),
  ];
  const schedulers = samples[0]?.[1].length ?? 0;
  return figure(
    strips({
      title: `Run queues: ${label}`,
      about:
        "A line for each scheduler that is online: the stronger the colour, the longer its queue.",
      strips: Array.from({ length: schedulers }, (_, i) => ({
        label: `${i + 1}${run.in_use ? `: ${percent((run.in_use[i] ?? 0) / 100)} in use` : ""}`,
        cells: samples.map(([ms, queues], k) => ({
          x: ms * 1e6,
          to: (ends[k] ?? ms) * 1e6,
          value: queues[i] ?? null,
        })),
      })),
      x: { label: "time", format: duration },
      value: { label: "processes waiting", format: count },
      full: greatest(samples.flatMap(([, queues]) => queues)) ?? 1,
    }),
  );
}
