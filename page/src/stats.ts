// Arithmetic of the plots: bins and ticks. Everything takes time proportional to its input, so that a
// report of millions of samples can be drawn.

export interface Bin {
  from: number;
  to: number;
  count: number;
  /** Sum of the samples in it. */
  total: number;
}

/** This many bins make a factor of ten: the edges are 1, 1.33, 1.78 ... */
const PER_DECADE = 8;
const edge = (index: number): number => 10 ** (index / PER_DECADE);

/** Bins whose width grows with the value. What is not above `least` falls into the first. */
export function logBins(samples: readonly number[], least = 1): Bin[] {
  const counts = new Map<number, { count: number; total: number }>();
  for (const sample of samples) {
    const index = Math.floor(Math.log10(Math.max(sample, least)) * PER_DECADE + 1e-9);
    const bin = counts.get(index);
    if (bin) {
      bin.count += 1;
      bin.total += sample;
    } else counts.set(index, { count: 1, total: sample });
  }
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([index, bin]) => ({ from: edge(index), to: edge(index + 1), ...bin }));
}

/** The least and the greatest; null of nothing. */
export function extent(values: Iterable<number | null | undefined>): [number, number] | null {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const v of values) {
    if (typeof v !== "number" || !Number.isFinite(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : null;
}

const STEPS = [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];

function ticksOf([low, high]: [number, number], steps: number[], every: number): number[] {
  const ticks: number[] = [];
  for (let exponent = Math.floor(Math.log10(low)); exponent <= Math.log10(high); exponent++) {
    if (exponent % every !== 0) continue;
    for (const step of steps) {
      const tick = Number(`${step}e${exponent}`);
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}

/** A logarithmic axis around these values: its ends, and the places of its labels. */
export function logScale(
  values: Iterable<number | null | undefined>,
  most: number,
): { domain: [number, number]; ticks: number[] } {
  const positive: number[] = [];
  for (const v of values) if (typeof v === "number" && v > 0) positive.push(v);
  const [low, high] = extent(positive) ?? [1, 10];
  const domain: [number, number] = [low / 1.25, high * 1.25];
  // The finest of these that is not too fine.
  const candidates = [
    ...STEPS.map((steps) => ({ steps, every: 1 })),
    ...[2, 3, 4, 6].map((every) => ({ steps: [1], every })),
  ];
  let ticks: number[] = [];
  for (const candidate of candidates) {
    ticks = ticksOf(domain, candidate.steps, candidate.every);
    if (ticks.length <= most) break;
  }
  return { domain, ticks };
}

/** The value below which this part of the samples lies; they need not be sorted. */
export function quantile(samples: readonly number[], part: number): number | null {
  if (samples.length === 0) return null;
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? null;
}

/** The values, each once, in their order. */
export const unique = <T>(values: Iterable<T>): T[] => [...new Set(values)];

/** A list whose samples are too many to pass as arguments: never `Math.max(...list)`. */
export const greatest = (values: Iterable<number | null | undefined>): number | null =>
  extent(values)?.[1] ?? null;
