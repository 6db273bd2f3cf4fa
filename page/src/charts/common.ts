// What the plots share: axes, rules, colours, room for labels. Colours are CSS variables, so a plot
// follows a change between light and dark without being drawn again.
import * as Plot from "@observablehq/plot";
import type { Child } from "../dom.ts";
import type { LegendItem } from "../figure.ts";
import type { Format } from "../format.ts";
import { extent, greatest, logScale } from "../stats.ts";

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

export interface Base {
  title: string;
  about?: Child;
  rules?: readonly Rule[];
}

const PALETTE = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"].map(
  (name) => `var(${name})`,
);
export const colour = (index: number): string => PALETTE[index % PALETTE.length] ?? "currentColor";

export const RULE = "var(--limit)";
export const BAND = "var(--fair)";
const FONT = 12;
/** Below the plot: ticks, and the label of the axis under them. */
export const BOTTOM = 46;
/** Of a letter, on average, in pixels. */
export const LETTER = 6.6;
export const ruleLegend = (rules: readonly Rule[] = []): LegendItem[] =>
  rules.map((rule) =>
    rule.to === undefined
      ? { text: rule.text, colour: RULE, shape: "dashed" }
      : { text: rule.text, colour: BAND, shape: "band" },
  );

export const seriesLegend = (
  series: readonly string[],
  shape: LegendItem["shape"],
): LegendItem[] =>
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
export function scale(axis: Axis, values: Iterable<number | null | undefined>, pixels: number) {
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

export const xRules = (rules: readonly Rule[] = []): Plot.Markish[] =>
  rules.map((rule) =>
    rule.to === undefined
      ? Plot.ruleX([rule.at], { stroke: RULE, strokeDasharray: "4 3", strokeWidth: 1.5 })
      : Plot.rect([rule], { x1: "at", x2: "to", fill: BAND, fillOpacity: 0.25 }),
  );

/** Room for labels at the left; long ones wrap. */
export function margin(labels: readonly string[], width: number): { left: number; ems: number } {
  const wanted = (greatest(labels.map((l) => l.length)) ?? 0) * LETTER + 14;
  const left = Math.round(Math.min(wanted, width * 0.36));
  return { left, ems: Math.max(4, (left - 10) / FONT) };
}

export const linesOf = (label: string, ems: number): number =>
  Math.max(1, Math.ceil((label.length * LETTER) / (ems * FONT)));

/** The values at which rules stand. */
export const ruled = (rules: readonly Rule[] = []): (number | undefined)[] =>
  rules.flatMap((r) => [r.at, r.to]);

/** What every plot has. */
export const frame = (width: number, height: number, left: number) => ({
  width,
  height,
  marginLeft: left,
  marginRight: 24,
  marginBottom: BOTTOM,
  style: { fontSize: `${FONT}px` },
});
