// A histogram: how often which value, a panel for each label.
import * as Plot from "@observablehq/plot";
import type { Figure } from "../figure.ts";
import { type Bin, greatest, logBins, unique } from "../stats.ts";
import type { Table } from "../table.ts";
import {
  type Axis,
  type Base,
  BOTTOM,
  colour,
  frame,
  margin,
  ruled,
  ruleLegend,
  scale,
  seriesLegend,
  xRules,
} from "./common.ts";

interface Group {
  /** Groups of one label share a panel. */
  label: string;
  series?: string;
  samples: readonly number[];
}

interface Histogram extends Base {
  groups: readonly Group[];
  x: Axis;
  heading: string;
}

interface Bar extends Bin {
  label: string;
  series: string;
  part: number;
}

/** Between the labels of the panels and the plot: ticks. */
const TICKS = 44;

/** Heights are square roots, so that rare values show as well. */
export function histogram(spec: Histogram): Figure {
  const series = unique(spec.groups.map((g) => g.series ?? ""));
  const bars = spec.groups.flatMap(barsOf);
  return {
    title: spec.title,
    about: spec.about,
    legend: [...seriesLegend(series, "square"), ...ruleLegend(spec.rules)],
    draw: (width) => draw(spec, series, bars, width),
    table: numbers(spec, series, bars),
  };
}

function barsOf({ label, series = "", samples }: Group): Bar[] {
  return logBins(samples).map((b) => ({ ...b, label, series, part: b.count / samples.length }));
}

function draw(spec: Histogram, series: string[], bars: Bar[], width: number): Element {
  const labels = unique(spec.groups.map((g) => g.label));
  const room = margin([...labels, "100 %"], width * 0.8);
  const left = room.left + TICKS;
  const values = [...bars.flatMap((b) => [b.from, b.to]), ...ruled(spec.rules)];
  const several = series.length > 1;
  const top = (greatest(bars.map((b) => b.part)) ?? 1) * 1.1;
  return Plot.plot({
    ...frame(width, labels.length * 84 + BOTTOM + 10, left),
    x: scale(spec.x, values, width - left),
    y: {
      type: "sqrt",
      domain: [0, top],
      // One above the panel would stand in the panel above.
      ticks: [0.01, 0.1, 0.5].filter((part) => part <= top),
      tickFormat: (v: number) => `${Math.round(v * 100)} %`,
      label: null,
      grid: true,
    },
    fy: { domain: labels, label: null, axis: null, padding: 0.12 },
    color: { domain: series, range: series.map((_, i) => colour(i)) },
    marks: [
      Plot.axisFy({ anchor: "left", lineWidth: room.ems, label: null, tickSize: 0, dx: 4 - TICKS }),
      xRules(spec.rules?.filter((r) => r.to !== undefined)),
      Plot.rect(bars, {
        fy: "label",
        x1: "from",
        x2: "to",
        y1: 0,
        y2: "part",
        fill: "series",
        fillOpacity: several ? 0.5 : 0.85,
        stroke: "series",
        strokeWidth: several ? 1 : 0,
      }),
      xRules(spec.rules?.filter((r) => r.to === undefined)),
      Plot.ruleY([0]),
    ],
  });
}

function numbers({ heading, x }: Histogram, series: string[], bars: Bar[]): Table {
  const several = series.length > 1;
  return {
    columns: [
      { title: heading, text: true },
      ...(several ? [{ title: "of", text: true }] : []),
      { title: "from" },
      { title: "to" },
      { title: "number" },
      { title: "part" },
    ],
    rows: bars.map((b) => [
      b.label,
      ...(several ? [b.series] : []),
      x.format(b.from),
      x.format(b.to),
      b.count.toLocaleString("en-US"),
      `${(b.part * 100).toPrecision(3)} %`,
    ]),
  };
}
