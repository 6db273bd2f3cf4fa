// Strips: over time, a line of cells for each label; the stronger the colour, the more.
import * as Plot from "@observablehq/plot";
import type { Figure } from "../figure.ts";
import { unique } from "../stats.ts";
import { type Axis, type Base, BOTTOM, frame, margin, RULE, scale } from "./common.ts";

export interface Strip {
  /** A scheduler, say. */
  label: string;
  /** Values of the stretches from `x` to `to`, of which null is unknown. */
  cells: readonly { x: number; to: number; value: number | null }[];
}

export interface Strips extends Base {
  strips: readonly Strip[];
  x: Axis;
  value: Axis;
  /** The value that is drawn darkest. */
  full: number;
}

/** What is unknown has a dashed frame. */
export function strips(spec: Strips): Figure {
  const labels = unique(spec.strips.map((s) => s.label));
  const cells = spec.strips.flatMap((s) => s.cells.map((c) => ({ ...c, label: s.label })));
  const known = cells.filter((c) => c.value !== null);
  const unknown = cells.filter((c) => c.value === null);
  const draw = (width: number): Element => {
    const { left, ems } = margin(labels, width);
    return Plot.plot({
      ...frame(width, labels.length * 20 + BOTTOM + 10, left),
      x: {
        ...scale(
          spec.x,
          cells.flatMap((c) => [c.x, c.to]),
          width - left,
        ),
        grid: false,
      },
      y: { domain: labels, label: null, axis: null, padding: 0.08 },
      marks: [
        Plot.axisY({ lineWidth: ems, label: null, tickSize: 0 }),
        Plot.barX(cells, { y: "label", x1: "x", x2: "to", fill: "var(--faint)" }),
        Plot.barX(known, {
          y: "label",
          x1: "x",
          x2: "to",
          fill: "var(--strip)",
          fillOpacity: (c: { value: number }) => Math.min(1, c.value / (spec.full || 1)),
        }),
        Plot.barX(unknown, {
          y: "label",
          x1: "x",
          x2: "to",
          fill: "none",
          stroke: RULE,
          strokeDasharray: "2 2",
          inset: 2,
        }),
      ],
    });
  };
  return {
    title: spec.title,
    about: spec.about,
    legend: [
      { text: `${spec.value.format(0)}`, colour: "var(--faint)", shape: "square" },
      {
        text: `${spec.value.format(spec.full)}: ${spec.value.label}`,
        colour: "var(--strip)",
        shape: "square",
      },
      ...(unknown.length > 0
        ? [{ text: "no answer", colour: RULE, shape: "dashed" as const }]
        : []),
    ],
    draw,
    table: {
      columns: [
        { title: "line", text: true },
        { title: spec.x.label },
        { title: spec.value.label },
      ],
      rows: cells.map((c) => [c.label, spec.x.format(c.x), spec.value.format(c.value)]),
    },
  };
}
