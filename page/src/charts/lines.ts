// Lines: something over something, a line for each label; rules lie across.
import * as Plot from "@observablehq/plot";
import type { Figure, LegendItem } from "../figure.ts";
import { greatest, unique } from "../stats.ts";
import type { Table } from "../table.ts";
import {
  type Axis,
  BAND,
  type Base,
  colour,
  frame,
  LETTER,
  RULE,
  ruled,
  ruleLegend,
  scale,
  seriesLegend,
} from "./common.ts";

export interface Line {
  label: string;
  /** A second file's lines are dashed. */
  series?: string;
  points: readonly { x: number; y: number | null; low?: number | null; high?: number | null }[];
}

export interface Lines extends Base {
  lines: readonly Line[];
  x: Axis;
  y: Axis;
  height?: number;
  /** Colours for labels in this order, so that figures beside each other agree. */
  labels?: readonly string[];
}

/** Up to this many points of a line have dots. */
const DOTS = 60;

export function lines(spec: Lines): Figure {
  const all = prepared(spec);
  return {
    title: spec.title,
    about: spec.about,
    legend: legend(all),
    draw: (width) => draw(all, width),
    table: numbers(all),
  };
}

type Prepared = ReturnType<typeof prepared>;

function prepared(spec: Lines) {
  const points = spec.lines
    .flatMap((l) => l.points.map((p) => ({ ...p, label: l.label, series: l.series ?? "" })))
    .filter((p) => p.y === null || !spec.y.log || p.y > 0);
  return {
    spec,
    points,
    series: unique(spec.lines.map((l) => l.series ?? "")),
    labels: spec.labels ?? unique(spec.lines.map((l) => l.label)),
    spread: points.some((p) => p.low != null && p.high != null),
  };
}

function draw({ spec, points, series, labels }: Prepared, width: number): Element {
  const ys = [...points.flatMap((p) => [p.y, p.low, p.high]), ...ruled(spec.rules)];
  const longest = greatest(ys.map((v) => spec.y.format(v).length)) ?? 5;
  const left = Math.min(80, longest * LETTER + 12);
  const xs = points.map((p) => p.x);
  const seen = points.filter((p) => p.y !== null);
  return Plot.plot({
    ...frame(width, spec.height ?? Math.min(320, Math.max(200, width * 0.45)), left),
    x: scale(spec.x, xs, width - left),
    y: { ...scale(spec.y, ys, 320), labelOffset: left },
    color: { domain: labels, range: labels.map((_, i) => colour(i)) },
    marks: [
      spec.rules?.map((rule) =>
        rule.to === undefined
          ? Plot.ruleY([rule.at], { stroke: RULE, strokeDasharray: "4 3", strokeWidth: 1.5 })
          : Plot.rect([rule], { y1: "at", y2: "to", fill: BAND, fillOpacity: 0.25 }),
      ),
      Plot.ruleX(
        points.filter((p) => p.low != null && p.high != null),
        { x: "x", y1: "low", y2: "high", stroke: "label", strokeOpacity: 0.5, strokeWidth: 4 },
      ),
      series.map((s, i) =>
        Plot.line(
          points.filter((p) => p.series === s),
          {
            x: "x",
            y: "y",
            z: "label",
            stroke: "label",
            strokeWidth: 1.8,
            ...(i > 0 ? { strokeDasharray: "6 4" } : {}),
          },
        ),
      ),
      seen.length <= DOTS * labels.length
        ? Plot.dot(seen, { x: "x", y: "y", stroke: "label", fill: "label", r: 3 })
        : null,
    ],
  });
}

function legend({ spec, series, labels }: Prepared): LegendItem[] {
  const files = series.map((text, i) => ({
    text,
    colour: "currentColor",
    shape: i === 0 ? ("line" as const) : ("dashed" as const),
  }));
  return [
    ...seriesLegend(labels, "line"),
    ...(series.length > 1 ? files : []),
    ...ruleLegend(spec.rules),
  ];
}

function numbers({ spec: { x, y }, points, series, spread }: Prepared): Table {
  const several = series.length > 1;
  return {
    columns: [
      { title: "line", text: true },
      ...(several ? [{ title: "of", text: true }] : []),
      { title: x.label },
      { title: y.label },
      ...(spread ? [{ title: "from" }, { title: "to" }] : []),
    ],
    rows: points.map((p) => [
      p.label,
      ...(several ? [p.series] : []),
      x.format(p.x),
      y.format(p.y),
      ...(spread ? [y.format(p.low), y.format(p.high)] : []),
    ]),
  };
}
