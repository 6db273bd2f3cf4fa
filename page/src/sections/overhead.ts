// overhead: the way to a dirty scheduler and back, as histograms; below which size it is too dear.
import { histogram } from "../charts/histogram.ts";
import { lines } from "../charts/lines.ts";
import { figure } from "../figure.ts";
import { bytes, duration } from "../format.ts";
import { result } from "../model.ts";
import type { Section } from "../section.ts";
import { unique } from "../stats.ts";

interface Way {
  median: number;
  p99: number;
  over: number;
}

interface Overhead {
  rows: {
    set: string;
    kind: string;
    there?: Way;
    back?: Way;
    both?: Way;
    samples?: { there: number[]; back: number[] }[];
    error?: string;
  }[];
  flags: { set: string; title: string; used: string; refused: string[] }[];
  functions?: {
    function: string;
    points: { size: number; ns: number }[];
    cutoffs: { set: string; size: number | null }[];
  }[];
  published?: { set: string; there: string; back: string; over: string; both: string }[];
}

const KINDS: Record<string, string> = {
  dirty_cpu: "CPU",
  dirty_io: "I/O",
  plain: "none: the stamps",
};

export const overhead: Section = {
  title: "There and back",
  show: (sources) => {
    const all = sources.map((s) => ({ series: s.name, ...result<Overhead>(s) }));
    const title = (set: string): string =>
      all.flatMap((r) => r.flags).find((f) => f.set === set)?.title ?? set;
    const ways = [
      ["there", "To a dirty scheduler", "From the call to the start of the native code."],
      ["back", "And back", "From its end to the caller's going on."],
    ] as const;
    return [
      ways.map(([way, heading, about]) =>
        figure(
          histogram({
            title: heading,
            about,
            heading: "flags, scheduler",
            groups: all.flatMap((r) =>
              r.rows
                .filter((row) => row.kind !== "plain" && row.samples)
                .map((row) => ({
                  label: `${title(row.set)}, ${KINDS[row.kind] ?? row.kind}`,
                  series: r.series,
                  samples: (row.samples ?? []).flatMap((s) => s[way]),
                })),
            ),
            x: { label: "time", format: duration, log: true },
          }),
        ),
      ),
      figure({
        title: "Beside the published figures",
        about: "Published: about 20,000 calls on an i7-3720QM.",
        table: {
          columns: [
            { title: "flags", text: true },
            { title: "scheduler", text: true },
            { title: "there, median" },
            { title: "back, median" },
            { title: "both, median" },
            { title: "both, p99" },
            { title: "back over 10 us" },
          ],
          rows: all.flatMap((r) => [
            ...r.rows.map((row) => [
              [r.series && `${r.series}: `, title(row.set)],
              KINDS[row.kind] ?? row.kind,
              duration(row.there?.median),
              duration(row.back?.median),
              duration(row.both?.median),
              duration(row.both?.p99),
              row.error ?? (row.back ? `${(row.back.over * 100).toFixed(1)} %` : "-"),
            ]),
            ...(r === all[0] ? (r.published ?? []) : []).map((p) => [
              `published: ${title(p.set)}`,
              "-",
              p.there,
              p.back,
              p.both,
              "-",
              p.over,
            ]),
          ]),
        },
      }),
      all.map(
        (r) =>
          r.functions &&
          figure(
            lines({
              title: r.series ? `Time by size: ${r.series}` : "Time by size",
              about:
                "On a normal scheduler. Below its cutoff size the way to a dirty scheduler costs more than 10 % of the work.",
              lines: r.functions.map((f) => ({
                label: f.function,
                points: f.points.map((p) => ({ x: p.size, y: p.ns })),
              })),
              x: { label: "bytes", format: bytes, log: true },
              y: { label: "time of a call", format: duration, log: true },
              rules: [{ at: 1e6, text: "documented limit 1 ms" }],
            }),
          ),
      ),
      figure({
        title: "Cutoff sizes",
        table: {
          columns: [
            { title: "function", text: true },
            ...unsets(all).map((set) => ({ title: `flags: ${title(set)}` })),
          ],
          rows: all.flatMap((r) =>
            (r.functions ?? []).map((f) => [
              [r.series && `${r.series}: `, f.function],
              ...unsets(all).map((set) => bytes(f.cutoffs.find((c) => c.set === set)?.size)),
            ]),
          ),
        },
      }),
    ];
  },
};

const unsets = (all: Overhead[]): string[] =>
  unique(all.flatMap((r) => (r.functions ?? []).flatMap((f) => f.cutoffs.map((c) => c.set))));
