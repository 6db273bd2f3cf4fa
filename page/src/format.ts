// Numbers for people, as the terminal writes them (fairnif_check_table): three significant digits and
// a unit. null and undefined are a dash.

export type Maybe = number | null | undefined;
export type Format = (value: Maybe) => string;

const isNumber = (v: Maybe): v is number => typeof v === "number" && Number.isFinite(v);

function three(x: number): string {
  if (x >= 99.95) return String(Math.round(x));
  if (x >= 9.995) return x.toFixed(1);
  return Number.isInteger(x) ? String(x) : x.toFixed(2);
}

/** Nanoseconds: 3.06 ms. */
export const duration: Format = (ns) => {
  if (!isNumber(ns)) return "-";
  if (ns < 0) return `-${duration(-ns)}`;
  if (ns < 999.5) return `${three(ns)} ns`;
  if (ns < 999.5e3) return `${three(ns / 1e3)} us`;
  if (ns < 999.5e6) return `${three(ns / 1e6)} ms`;
  return `${three(ns / 1e9)} s`;
};

/** Whole numbers, thousands separated: 7,815,912. */
export const count: Format = (n) => (isNumber(n) ? Math.round(n).toLocaleString("en-US") : "-");

/** Large and small numbers in three digits: 1.66 M, 0.68. */
export const number: Format = (n) => {
  if (!isNumber(n)) return "-";
  const size = Math.abs(n);
  if (size >= 999.5e6) return `${trim(n / 1e9)} G`;
  if (size >= 999.5e3) return `${trim(n / 1e6)} M`;
  if (size >= 9999.5) return `${trim(n / 1e3)} k`;
  return Number.isInteger(n) ? count(n) : trim(n);
};

const trim = (n: number): string => String(Number(n.toPrecision(3)));

/** A fraction: 1.0 is 100 %. */
export const percent: Format = (f) => {
  if (!isNumber(f)) return "-";
  if (f === 0) return "0 %";
  return Math.abs(f) < 0.0995 ? `${(f * 100).toFixed(1)} %` : `${Math.round(f * 100)} %`;
};

/** Bytes, decimal units: 67.1 MB. */
export const bytes: Format = (n) => {
  if (!isNumber(n)) return "-";
  if (n === 1) return "1 byte";
  if (n < 1000) return `${three(n)} bytes`;
  if (n < 999500) return `${three(n / 1e3)} kB`;
  if (n < 999500000) return `${three(n / 1e6)} MB`;
  return `${three(n / 1e9)} GB`;
};

/** A factor: 2.6x. */
export const times: Format = (n) => (isNumber(n) ? `${trim(n)}x` : "-");
