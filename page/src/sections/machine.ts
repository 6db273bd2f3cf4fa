// What it was measured on, and what was asked for.
import type { Child } from "../dom.ts";
import { figure } from "../figure.ts";
import { bytes, duration, number } from "../format.ts";
import type { Check, Source } from "../model.ts";
import type { Section } from "../section.ts";
import { unique } from "../stats.ts";

const SHOWN: Record<string, (v: number) => string> = {
  memory_available: bytes,
  limit_ns: duration,
  dirty_trip: duration,
};

/** Lists up to so long are written out. */
const SHORT = 8;

/** A value as text in one cell. */
export function plain(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  if (typeof value === "number") return number(value);
  if (typeof value === "string" || typeof value === "boolean") return String(value);
  if (Array.isArray(value))
    return value.length > SHORT ? `${value.length} values` : value.map(plain).join(", ") || "-";
  const fields = Object.entries(value).map(([k, v]) => `${k}: ${plain(v)}`);
  return fields.join(", ") || "-";
}

export const machine: Section = {
  title: "Machine and options",
  show: (sources) => {
    const all = sources.map(facts);
    const keys = unique(all.flatMap((f) => Object.keys(f)));
    if (keys.length === 0) return null;
    return figure({
      title: "Where, when, and what was asked",
      table: {
        columns: [
          { title: "what", text: true },
          ...sources.map((s) => ({ title: s.name || "value", text: true })),
        ],
        rows: keys.map((key) => [
          key.replaceAll("_", " "),
          ...all.map((f): Child => {
            const value = f[key];
            const format = SHOWN[key];
            return format && typeof value === "number" ? format(value) : plain(value);
          }),
        ]),
      },
    });
  },
};

function facts({ report }: Source): Record<string, unknown> {
  const check = report.command === "check" ? (report.result as Partial<Check>) : {};
  const { dirty_trip } = check.machine ?? {};
  return {
    ...report.context,
    ...check.options,
    ...(dirty_trip === undefined ? {} : { dirty_trip }),
  };
}
