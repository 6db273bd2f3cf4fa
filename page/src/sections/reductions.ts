// reductions: what a process is charged for one call, ours beside the published.
import { dots } from "../charts/dots.ts";
import { figure } from "../figure.ts";
import { count } from "../format.ts";
import { rowsOf } from "../model.ts";
import type { Section } from "../section.ts";

interface Row {
  title: string;
  compiled?: number;
  evaluated?: number;
  published?: { compiled: number | null; shell: number | null };
  error?: string;
}

export const reductions: Section = {
  title: "What is charged",
  show: (sources) =>
    figure(
      dots({
        title: "Reductions charged for one call",
        about:
          "Compiled: the call alone. Evaluated: with what erl_eval does. The published figures came from a shell, whose own work is in them. A turn is 4,000.",
        heading: "call",
        rows: rowsOf<Row>(sources).map((r) => ({
          label: r.title,
          series: r.series,
          points: {
            compiled: r.compiled,
            evaluated: r.evaluated,
            "published, compiled": r.published?.compiled,
            "published, in a shell": r.published?.shell,
          },
          note: r.error,
        })),
        apart: ["published, compiled", "published, in a shell"],
        x: { label: "reductions", format: count, log: true },
        rules: [{ at: 4000, text: "a turn: 4,000" }],
      }),
    ),
};
