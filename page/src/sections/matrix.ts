// matrix: modes x calls per scheduler, a heat map for each duration and job; the talk's beside.
import { h } from "../dom.ts";
import { figure } from "../figure.ts";
import { count, duration } from "../format.ts";
import { HEAT_NS, type HeatCell, heat, heatLegend, heatOf } from "../heat.ts";
import { result, type Source } from "../model.ts";
import type { Section } from "../section.ts";
import { unique } from "../stats.ts";

interface Cell {
  mode: string;
  job: string;
  duration_us: number;
  multiple: number;
  extra?: number | null;
  status: string;
  skipped?: string | null;
  predicted_ms?: number;
  error?: string;
}

interface Matrix {
  rows: Cell[];
  published?: { mode: string; duration_us: number; extra_s: (number | null)[] }[];
}

const MODES: Record<string, string> = {
  normal: "plain NIF",
  dirty: "dirty CPU",
  yielding: "yielding",
  yielding_dirty: "yielding dirty",
  fair_auto: "fairnif AUTO",
  fair_yielding: "fairnif NORMAL",
  fair_yielding_dirty: "fairnif DIRTY_CPU",
};
/** The talk's columns. */
const MULTIPLES = [1, 10, 100, 1000, 10000];
const LEGEND = ["under 1 ms", "1 ms", "10 ms", "100 ms", "1 s", "10 s and more"];

const titleOf = (mode: string): string => MODES[mode] ?? mode;

function cellOf(c: Cell, prefix: string): HeatCell {
  const row = prefix + titleOf(c.mode);
  const column = `${count(c.multiple)}x`;
  if (typeof c.extra === "number")
    return { row, column, heat: heatOf(c.extra), text: duration(c.extra) };
  if (c.status === "skipped")
    return {
      row,
      column,
      heat: null,
      text: c.skipped === "total" ? "left out" : `(${duration((c.predicted_ms ?? 0) * 1e6)})`,
    };
  return { row, column, heat: HEAT_NS.length, text: c.error ?? c.status };
}

export const matrix: Section = {
  title: "Who waits how long",
  show: (sources) => {
    const all = sources.map((s) => ({ prefix: prefixOf(s), ...result<Matrix>(s) }));
    const cells = all.flatMap((r) => r.rows);
    const parts = unique(cells.map((c) => `${c.job}\n${c.duration_us}`)).map((part) => {
      const [job = "", us] = part.split("\n");
      return { job, us: Number(us) };
    });
    return [
      h(
        "p",
        { class: "about" },
        "Extra time: the last end less the first start, less what it takes at least. 1x is one call for each scheduler. spinsleep spins until a deadline, so that all calls could be done at once; spinwork is a fixed amount of work. In brackets: left out, since it is predicted to take so long.",
      ),
      parts.map(({ job, us }) => {
        const title = `Extra time, ${job}, calls of ${duration(us * 1e3)}`;
        const own = all.flatMap((r) =>
          r.rows
            .filter((c) => c.job === job && c.duration_us === us)
            .map((c) => cellOf(c, r.prefix)),
        );
        const talk = job === "spinsleep" ? published(all[0]?.published ?? [], us) : [];
        return figure({
          title,
          legend: heatLegend(LEGEND),
          body: heat([...own, ...talk], "mode", title),
          table: { columns: [], rows: [] },
        });
      }),
    ];
  },
};

const prefixOf = (s: Source): string => (s.name ? `${s.name}: ` : "");

const published = (rows: NonNullable<Matrix["published"]>, us: number): HeatCell[] =>
  rows
    .filter((p) => p.duration_us === us && p.extra_s.some((s) => s !== null))
    .flatMap((p) =>
      p.extra_s.map((s, i) => ({
        row: `the talk: ${titleOf(p.mode)}`,
        column: `${count(MULTIPLES[i] ?? 0)}x`,
        heat: s === null ? null : heatOf(s * 1e9),
        text: s === null ? "-" : duration(s * 1e9),
      })),
    );
