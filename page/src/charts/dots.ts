// Dots: a line for each label, on it the points, each series with its shape.
import * as Plot from "@observablehq/plot";
import type { Figure, LegendItem } from "../figure.ts";
import { extent, greatest, unique } from "../stats.ts";
import type { Table } from "../table.ts";
import {
  type Axis,
  BAND,
  type Base,
  BOTTOM,
  colour,
  frame,
  linesOf,
  margin,
  RULE,
  ruled,
  ruleLegend,
  scale,
  seriesLegend,
  xRules,
} from "./common.ts";

const SHAPES = ["circle", "diamond", "bar", "cross"] as const;
const SYMBOLS = ["circle", "diamond", "square", "times"] as const;

interface DotRow {
  label: string;
  /** The file, or the subject, when there are several. */
  series?: string;
  /** By the name of the figure; the line reaches over those not named in `apart`. */
  points: Record<string, number | null | undefined>;
  /** A bar behind: a range that others published, say. */
  range?: readonly [number, number] | undefined;
  /** Stands where there is no number. */
  note?: string | null | undefined;
}

interface Dots extends Base {
  rows: readonly DotRow[];
  x: Axis;
  /** What heads the labels in the table. */
  heading: string;
  /** Names of points that belong to another program: drawn hollow, and not joined. */
  apart?: readonly string[];
  rangeTitle?: string;
}

export function dots(spec: Dots): Figure {
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

function prepared(spec: Dots) {
  const { rows, x, apart = [] } = spec;
  const names = unique(rows.flatMap((r) => Object.keys(r.points)));
  const can = (v: number | null | undefined): v is number =>
    typeof v === "number" && (!x.log || v > 0);
  const points = rows.flatMap((r) =>
    names.map((name) => ({ ...r, series: r.series ?? "", name, value: r.points[name] })),
  );
  const spans = rows.map((r) => {
    const own = names.filter((n) => !apart.includes(n)).map((n) => r.points[n]);
    const [low, high] = extent(own.filter(can)) ?? [null, null];
    return { ...r, series: r.series ?? "", low, high };
  });
  return {
    spec,
    names,
    apart,
    spans,
    series: unique(rows.map((r) => r.series ?? "")),
    labels: unique(rows.map((r) => r.label)),
    shown: points.filter((p) => can(p.value)),
    ranges: rows.filter((r) => r.range),
  };
}

function draw(
  { spec, names, apart, spans, series, labels, shown, ranges }: Prepared,
  width: number,
): Element {
  const { left, ems } = margin(labels, width);
  const values = [
    ...shown.map((p) => p.value),
    ...ranges.flatMap((r) => [...(r.range ?? [])]),
    ...ruled(spec.rules),
  ];
  const x = scale(spec.x, values, width - left);
  // Where the notes stand.
  const start = spec.x.log ? 10 ** (x.domain[0] ?? 0) : (x.domain[0] ?? 0);
  const row = Math.max(24, 15 * (greatest(labels.map((l) => linesOf(l, ems))) ?? 1) + 6);
  // Several series: a facet for each label, in it a line for each.
  const several = series.length > 1;
  const high = several ? Math.max(row, 20 * series.length + 8) : row;
  const place = several ? { fy: "label" as const, y: "series" as const } : { y: "label" as const };
  const band = { label: null, tickSize: 0 };
  return Plot.plot({
    ...frame(width, labels.length * high + BOTTOM + 14, left),
    x,
    y: { ...band, domain: several ? series : labels, axis: null },
    ...(several ? { fy: { ...band, domain: labels, axis: null, padding: 0.05 } } : {}),
    symbol: { domain: names, range: names.map((_, i) => SYMBOLS[i % SYMBOLS.length] ?? "circle") },
    color: { domain: series, range: series.map((_, i) => colour(i)) },
    marks: [
      several
        ? Plot.axisFy({ anchor: "left", lineWidth: ems, label: null, tickSize: 0 })
        : Plot.axisY({ lineWidth: ems, label: null, tickSize: 0 }),
      xRules(spec.rules),
      Plot.barX(ranges, {
        ...place,
        x1: (r: DotRow) => r.range?.[0],
        x2: (r: DotRow) => r.range?.[1],
        fill: BAND,
        fillOpacity: 0.45,
        inset: 3,
      }),
      Plot.ruleY(
        spans.filter((r) => r.low !== null),
        { ...place, x1: "low", x2: "high", stroke: "series", strokeOpacity: 0.5, strokeWidth: 2 },
      ),
      Plot.dot(
        shown.filter((p) => !apart.includes(p.name)),
        { ...place, x: "value", symbol: "name", r: 4.5, stroke: "series", fill: "series" },
      ),
      Plot.dot(
        shown.filter((p) => apart.includes(p.name)),
        { ...place, x: "value", symbol: "name", r: 5, stroke: "currentColor", strokeWidth: 1.5 },
      ),
      Plot.text(
        spans.filter((r) => r.low === null && r.note),
        { ...place, x: () => start, text: "note", textAnchor: "start", dx: 4, fill: RULE },
      ),
    ],
  });
}

function legend({ spec, names, apart, series, ranges }: Prepared): LegendItem[] {
  const shapes = names.map((text, i) => ({
    text,
    colour: "currentColor",
    hollow: apart.includes(text),
    shape: SHAPES[i % SHAPES.length] ?? ("circle" as const),
  }));
  return [
    ...(names.length > 1 ? shapes : []),
    ...seriesLegend(series, "square"),
    ...(ranges.length > 0
      ? [{ text: spec.rangeTitle ?? "range", colour: BAND, shape: "band" as const }]
      : []),
    ...ruleLegend(spec.rules),
  ];
}

function numbers({ spec, names, series, ranges }: Prepared): Table {
  const { rows, x } = spec;
  const several = series.length > 1;
  const noted = rows.some((r) => r.note);
  return {
    columns: [
      { title: spec.heading, text: true },
      ...(several ? [{ title: "of", text: true }] : []),
      ...names.map((title) => ({ title })),
      ...(ranges.length > 0 ? [{ title: spec.rangeTitle ?? "range" }] : []),
      ...(noted ? [{ title: "note", text: true }] : []),
    ],
    rows: rows.map((r) => [
      r.label,
      ...(several ? [r.series ?? ""] : []),
      ...names.map((n) => x.format(r.points[n])),
      ...(ranges.length > 0 ? [r.range ? r.range.map((v) => x.format(v)).join(" to ") : "-"] : []),
      ...(noted ? [r.note ?? ""] : []),
    ]),
  };
}
