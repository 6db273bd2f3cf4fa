// The few kinds of plots that the sections are made of. Each takes rows of data and gives a figure:
// the plot, its legend, and a table of the same rows. Colours are CSS variables, so a plot follows a
// change between light and dark without being drawn again.
import * as Plot from "@observablehq/plot";
import type { Child } from "./dom.ts";
import type { Figure, LegendItem } from "./figure.ts";
import type { Format } from "./format.ts";
import { type Bin, extent, greatest, logBins, logScale, unique } from "./stats.ts";

export interface Axis {
  label: string;
  format: Format;
  log?: boolean;
  /** A linear axis reaches at least from here to there. */
  least?: readonly [number, number];
}

/** A line across the plot, or, with `to`, a band. */
export interface Rule {
  at: number;
  to?: number;
  text: string;
}

interface Base {
  title: string;
  about?: Child;
  rules?: readonly Rule[];
}

export const PALETTE = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"].map(
  (name) => `var(${name})`,
);
export const colour = (index: number): string => PALETTE[index % PALETTE.length] ?? "currentColor";

const RULE = "var(--limit)";
const BAND = "var(--fair)";
const FONT = 12;
/** Below the plot: ticks, and the label of the axis under them. */
const BOTTOM = 46;
/** Of a letter, on average, in pixels. */
const LETTER = 6.6;
const SHAPES = ["circle", "diamond", "bar", "cross"] as const;
const SYMBOLS = ["circle", "diamond", "square", "times"] as const;

const ruleLegend = (rules: readonly Rule[] = []): LegendItem[] =>
  rules.map((rule) =>
    rule.to === undefined
      ? { text: rule.text, colour: RULE, shape: "dashed" }
      : { text: rule.text, colour: BAND, shape: "band" },
  );

const seriesLegend = (series: readonly string[], shape: LegendItem["shape"]): LegendItem[] =>
  series.length > 1 || (series.length === 1 && series[0] !== "")
    ? series.map((text, i) => ({ text, colour: colour(i), shape }))
    : [];

const log10 = (v: number | null): number | null => (v === null || v <= 0 ? null : Math.log10(v));

/** Ticks are round: 10 us, not 10.0 us; and nothing has no unit. */
const tick = (text: string): string =>
  text.replace(/\.0+(?= |$)/, "").replace(/^0 (ns|bytes)$/, "0");

/**
 * Options of an axis for Plot, given all values that must find place on it. A logarithmic one is a
 * linear one of logarithms: Plot's own leaves out the labels of ticks that it finds too many.
 */
function scale(axis: Axis, values: Iterable<number | null | undefined>, pixels: number) {
  const most = Math.max(3, Math.floor(pixels / 75));
  const common = { label: axis.label, labelOffset: 40, grid: true };
  if (axis.log) {
    const { domain, ticks } = logScale(values, most);
    return {
      ...common,
      domain: domain.map(Math.log10),
      ticks: ticks.map(Math.log10),
      transform: log10,
      tickFormat: (v: number) => tick(axis.format(Number((10 ** v).toPrecision(6)))),
    };
  }
  const [low, high] = extent([...values, ...(axis.least ?? [0])]) ?? [0, 1];
  return {
    ...common,
    domain: [low, high > low ? high : low + 1],
    ticks: Math.min(most, 8),
    tickFormat: (v: number) => tick(axis.format(v)),
    nice: true,
  };
}

const xRules = (rules: readonly Rule[] = []): Plot.Markish[] =>
  rules.map((rule) =>
    rule.to === undefined
      ? Plot.ruleX([rule.at], { stroke: RULE, strokeDasharray: "4 3", strokeWidth: 1.5 })
      : Plot.rect([rule], { x1: "at", x2: "to", fill: BAND, fillOpacity: 0.25 }),
  );

/** Room for labels at the left; long ones wrap. */
function margin(labels: readonly string[], width: number): { left: number; ems: number } {
  const wanted = (greatest(labels.map((l) => l.length)) ?? 0) * LETTER + 14;
  const left = Math.round(Math.min(wanted, width * 0.36));
  return { left, ems: Math.max(4, (left - 10) / FONT) };
}

const linesOf = (label: string, ems: number): number =>
  Math.max(1, Math.ceil((label.length * LETTER) / (ems * FONT)));

// ---- dots ----

export interface DotRow {
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

export interface Dots extends Base {
  rows: readonly DotRow[];
  x: Axis;
  /** What heads the labels in the table. */
  heading: string;
  /** Names of points that belong to somebody else: drawn hollow, and not joined. */
  apart?: readonly string[];
  rangeTitle?: string;
}

/** A line for each label; on it the points, told by their shape. */
export function dots(spec: Dots): Figure {
  const { rows, x, apart = [] } = spec;
  const series = unique(rows.map((r) => r.series ?? ""));
  const names = unique(rows.flatMap((r) => Object.keys(r.points)));
  const labels = unique(rows.map((r) => r.label));
  const flat = rows.flatMap((r) =>
    names.map((name) => ({ ...r, series: r.series ?? "", name, value: r.points[name] ?? null })),
  );
  const shown = flat.filter((p) => p.value !== null && (!x.log || p.value > 0));
  const spans = rows.map((r) => {
    const own = names.filter((n) => !apart.includes(n)).map((n) => r.points[n]);
    const [low, high] = extent(own.filter((v) => !x.log || (v ?? 0) > 0)) ?? [null, null];
    return { ...r, series: r.series ?? "", low, high };
  });
  const ranges = rows.filter((r) => r.range);
  const silent = spans.filter((r) => r.low === null && r.note);
  const values = [
    ...shown.map((p) => p.value),
    ...(spec.rules ?? []).flatMap((r) => [r.at, r.to]),
    ...ranges.flatMap((r) => [...(r.range ?? [])]),
  ];
  const draw = (width: number): Element => {
    const { left, ems } = margin(labels, width);
    const axis = scale(x, values, width - left);
    // Where the notes stand.
    const start = x.log ? 10 ** (axis.domain[0] ?? 0) : (axis.domain[0] ?? 0);
    const row = Math.max(24, 15 * (greatest(labels.map((l) => linesOf(l, ems))) ?? 1) + 6);
    const high = series.length > 1 ? Math.max(row, 20 * series.length + 8) : row;
    // Several series: a facet for each label, in it a line for each.
    const place =
      series.length > 1 ? { fy: "label" as const, y: "series" as const } : { y: "label" as const };
    const band = { label: null, tickSize: 0 };
    return Plot.plot({
      width,
      height: labels.length * high + BOTTOM + 14,
      marginLeft: left,
      marginRight: 24,
      marginBottom: BOTTOM,
      style: { fontSize: `${FONT}px` },
      x: axis,
      y: { ...band, domain: series.length > 1 ? series : labels, axis: null },
      ...(series.length > 1 ? { fy: { ...band, domain: labels, axis: null, padding: 0.05 } } : {}),
      symbol: {
        domain: names,
        range: names.map((_, i) => SYMBOLS[i % SYMBOLS.length] ?? "circle"),
      },
      color: { domain: series, range: series.map((_, i) => colour(i)) },
      marks: [
        series.length > 1
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
        Plot.text(silent, {
          ...place,
          x: () => start,
          text: "note",
          textAnchor: "start",
          dx: 4,
          fill: RULE,
        }),
      ],
    });
  };
  return {
    title: spec.title,
    about: spec.about,
    legend: [
      ...(names.length > 1
        ? names.map((text, i) => ({
            text,
            colour: "currentColor",
            shape: SHAPES[i % SHAPES.length] ?? ("circle" as const),
          }))
        : []),
      ...seriesLegend(series, "square"),
      ...(ranges.length > 0
        ? [{ text: spec.rangeTitle ?? "range", colour: BAND, shape: "band" as const }]
        : []),
      ...ruleLegend(spec.rules),
    ],
    draw,
    table: {
      columns: [
        { title: spec.heading, text: true },
        ...(series.length > 1 ? [{ title: "of", text: true }] : []),
        ...names.map((title) => ({ title })),
        ...(ranges.length > 0 ? [{ title: spec.rangeTitle ?? "range" }] : []),
        ...(rows.some((r) => r.note) ? [{ title: "note", text: true }] : []),
      ],
      rows: rows.map((r) => [
        r.label,
        ...(series.length > 1 ? [r.series ?? ""] : []),
        ...names.map((n) => x.format(r.points[n])),
        ...(ranges.length > 0
          ? [r.range ? r.range.map((v) => x.format(v)).join(" to ") : "-"]
          : []),
        ...(rows.some((row) => row.note) ? [r.note ?? ""] : []),
      ]),
    },
  };
}

// ---- histogram ----

export interface Group {
  /** Groups of one label share a panel. */
  label: string;
  series?: string;
  samples?: readonly number[];
  /** In place of samples. */
  bins?: readonly Bin[];
}

export interface Histogram extends Base {
  groups: readonly Group[];
  x: Axis;
  heading: string;
}

interface Bar extends Bin {
  label: string;
  series: string;
  part: number;
}

/** How often which value: a panel for each label. Heights are square roots: rare ones show, too. */
export function histogram(spec: Histogram): Figure {
  const { groups, x } = spec;
  const series = unique(groups.map((g) => g.series ?? ""));
  const labels = unique(groups.map((g) => g.label));
  const bars = groups.flatMap((g) => {
    const bins = g.bins ?? logBins(g.samples ?? []);
    const all = bins.reduce((sum, b) => sum + b.count, 0);
    return bins
      .filter((b) => b.count > 0)
      .map((b): Bar => ({ ...b, label: g.label, series: g.series ?? "", part: b.count / all }));
  });
  const values = [
    ...bars.flatMap((b) => [b.from, b.to]),
    ...(spec.rules ?? []).flatMap((r) => [r.at, r.to]),
  ];
  const draw = (width: number): Element => {
    const { left, ems } = margin([...labels, "100 %"], width * 0.8);
    const plotLeft = left + 44;
    return Plot.plot({
      width,
      height: labels.length * 84 + BOTTOM + 10,
      marginLeft: plotLeft,
      marginRight: 20,
      marginBottom: BOTTOM,
      style: { fontSize: `${FONT}px` },
      x: scale(x, values, width - plotLeft),
      y: {
        type: "sqrt",
        domain: [0, (greatest(bars.map((b) => b.part)) ?? 1) * 1.1],
        ticks: [0.01, 0.1, 0.5],
        tickFormat: (v: number) => `${Math.round(v * 100)} %`,
        label: null,
        grid: true,
      },
      fy: { domain: labels, label: null, axis: null, padding: 0.12 },
      color: { domain: series, range: series.map((_, i) => colour(i)) },
      marks: [
        labels.length > 1 || labels[0] !== ""
          ? Plot.axisFy({ anchor: "left", lineWidth: ems, label: null, tickSize: 0, dx: -40 })
          : null,
        xRules(spec.rules?.filter((r) => r.to !== undefined)),
        Plot.rect(bars, {
          fy: "label",
          x1: "from",
          x2: "to",
          y1: 0,
          y2: "part",
          fill: "series",
          fillOpacity: series.length > 1 ? 0.5 : 0.85,
          stroke: "series",
          strokeWidth: series.length > 1 ? 1 : 0,
        }),
        xRules(spec.rules?.filter((r) => r.to === undefined)),
        Plot.ruleY([0]),
      ],
    });
  };
  return {
    title: spec.title,
    about: spec.about,
    legend: [...seriesLegend(series, "square"), ...ruleLegend(spec.rules)],
    draw,
    table: {
      columns: [
        { title: spec.heading, text: true },
        ...(series.length > 1 ? [{ title: "of", text: true }] : []),
        { title: "from" },
        { title: "to" },
        { title: "number" },
        { title: "part" },
      ],
      rows: bars.map((b) => [
        b.label,
        ...(series.length > 1 ? [b.series] : []),
        x.format(b.from),
        x.format(b.to),
        b.count.toLocaleString("en-US"),
        `${(b.part * 100).toPrecision(3)} %`,
      ]),
    },
  };
}

// ---- lines ----

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

/** Something over something, a line for each label; rules lie across. */
export function lines(spec: Lines): Figure {
  const series = unique(spec.lines.map((l) => l.series ?? ""));
  const labels = spec.labels ?? unique(spec.lines.map((l) => l.label));
  const points = spec.lines
    .flatMap((l) => l.points.map((p) => ({ ...p, label: l.label, series: l.series ?? "" })))
    .filter((p) => p.y === null || !spec.y.log || p.y > 0);
  const seen = points.filter((p) => p.y !== null);
  const ys = [
    ...points.flatMap((p) => [p.y, p.low, p.high]),
    ...(spec.rules ?? []).flatMap((r) => [r.at, r.to]),
  ];
  const draw = (width: number): Element => {
    const left = Math.min(
      80,
      (greatest(ys.map((v) => spec.y.format(v).length)) ?? 5) * LETTER + 12,
    );
    return Plot.plot({
      width,
      height: spec.height ?? Math.min(320, Math.max(200, width * 0.45)),
      marginLeft: left,
      marginRight: 24,
      marginBottom: BOTTOM,
      style: { fontSize: `${FONT}px` },
      x: scale(
        spec.x,
        points.map((p) => p.x),
        width - left,
      ),
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
        seen.length <= 60 * labels.length
          ? Plot.dot(seen, { x: "x", y: "y", stroke: "label", fill: "label", r: 3 })
          : null,
      ],
    });
  };
  return {
    title: spec.title,
    about: spec.about,
    legend: [
      ...seriesLegend(labels, "line"),
      ...series
        .filter((s) => series.length > 1 && s !== "")
        .map((text, i) => ({
          text,
          colour: "currentColor",
          shape: i === 0 ? ("line" as const) : ("dashed" as const),
        })),
      ...ruleLegend(spec.rules),
    ],
    draw,
    table: {
      columns: [
        { title: "line", text: true },
        ...(series.length > 1 ? [{ title: "of", text: true }] : []),
        { title: spec.x.label },
        { title: spec.y.label },
        ...(points.some((p) => p.low != null) ? [{ title: "from" }, { title: "to" }] : []),
      ],
      rows: points.map((p) => [
        p.label,
        ...(series.length > 1 ? [p.series] : []),
        spec.x.format(p.x),
        spec.y.format(p.y),
        ...(points.some((q) => q.low != null) ? [spec.y.format(p.low), spec.y.format(p.high)] : []),
      ]),
    },
  };
}

// ---- strips ----

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

/** A line of cells for each label: the darker, the more. What is unknown is crossed out. */
export function strips(spec: Strips): Figure {
  const labels = unique(spec.strips.map((s) => s.label));
  const cells = spec.strips.flatMap((s) => s.cells.map((c) => ({ ...c, label: s.label })));
  const known = cells.filter((c) => c.value !== null);
  const unknown = cells.filter((c) => c.value === null);
  const draw = (width: number): Element => {
    const { left, ems } = margin(labels, width);
    return Plot.plot({
      width,
      height: labels.length * 20 + BOTTOM + 10,
      marginLeft: left,
      marginRight: 24,
      marginBottom: BOTTOM,
      style: { fontSize: `${FONT}px` },
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
