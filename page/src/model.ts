// What the JSON of a report looks like, as far as the page reads it: apps/fairnif_check/priv/check-1.schema.json
// for a check; what is read of an experiment's `result`, says experiments.ts. Data of any version may come,
// so whatever is read here may be absent.

export interface Report {
  schema_version: number;
  command?: string;
  experiment?: string;
  kind?: string;
  description?: string;
  text?: string;
  context?: Record<string, unknown>;
  result?: unknown;
  baseline?: Comparison;
}

/** A report and the name that tells it from the other; empty when there is no other. */
export interface Source {
  name: string;
  report: Report;
}

export type Status = "pass" | "warn" | "fail" | "unsure" | "waived";

export interface Verdict {
  property: string;
  status: Status;
  size: number | null;
  sentence: string;
  evidence: Record<string, unknown>;
}

export interface Summary {
  count: number;
  shortest: number | null;
  median: number | null;
  p99: number | null;
  longest: number | null;
}

export interface Delays {
  p50: number | null;
  p99: number | null;
  max: number | null;
  count: number;
  samples?: number[];
}

export interface Size {
  size: number;
  /** The size that was asked for, where a call with it took too long to be measured. */
  asked?: number;
  error: string | null;
  verdicts: Verdict[];
  unmeasured?: Record<string, string>;
  others?: (number | null)[];
  time?: { median: number; spread: number; shortest: number; samples: number[] };
  charge?: { per_call: number | null; per_ms: number | null; ratio: number | null };
  slices?: {
    normal: Summary;
    dirty: Summary;
    block: { calls: number; repeated: number; longest: number };
    normal_samples: number[];
    dirty_samples: number[];
  };
  share?: {
    sort: number | null;
    maps: number | null;
    binaries: number | null;
    median: number | null;
  };
  delay?: { idle?: Delays; erlang?: Delays; beside: Delays | "unanswered" };
  thread_progress?: { idle: Summary; beside: Summary };
  long_schedule?: { count: number; longest_ms: number | null; named: string[] };
  kill?: { down: Summary; stop: Summary; stop_samples: number[]; unstopped: number };
  first?: { block: number; elapsed: number; nodes: number };
  garbage?: { collected: number[]; killed: number[]; control: number[]; bytes: number };
  leak?: {
    per_kill: number | null;
    total: number | null;
    resolution: number;
    alone?: { per_call: number | null; total: number | null; resolution: number };
    memory: { kills: number; resident: number; vm: number; native: number | null }[];
  };
}

export interface Subject {
  role: "subject" | "against";
  expression: string;
  sizes: Size[];
  verdicts: Verdict[];
  growth: number | null;
  advice: string[];
}

export interface Threshold {
  property: string;
  limit: number | null;
  unit: string | null;
  decides: boolean;
  source: string;
}

export interface Check {
  expression: string;
  exit: 0 | 1 | 3;
  options: Record<string, unknown> & { limit_ns: number; strict: boolean };
  thresholds: Threshold[];
  machine: { dirty_trip?: number; erlang?: Record<string, number> };
  subjects: Subject[];
}

interface Comparison {
  baseline: string;
  made: string;
  exit: 0 | 1;
  rows: {
    role: string;
    size: number;
    figure: string;
    verdict: string;
    before: number | null;
    now: number | null;
    ratio: number | null;
    why: string;
  }[];
}

/** The properties that are judged, in their order (fairnif_check_verdict). */
export const PROPERTIES: Record<string, string> = {
  crash: "crashes or does not return",
  block: "blocks the scheduler",
  first_call: "long first call",
  undercharge: "under-charged",
  unfair: "unfair to neighbours",
  latency: "delays others",
  destructor: "its garbage blocks the scheduler",
  unkillable: "cannot be killed",
  leak: "leaks memory",
};

export const result = <T>(source: Source): T => source.report.result as T;

/** A subject of a check, and what it is called beside the others. */
export interface Named {
  label: string;
  subject: Subject;
  check: Check;
}

/** All subjects of these checks. */
export function subjects(sources: readonly Source[]): Named[] {
  return sources.flatMap((source) => {
    const check = result<Check>(source);
    return check.subjects.map((subject) => ({
      label: source.name === "" ? subject.expression : `${source.name}: ${subject.expression}`,
      subject,
      check,
    }));
  });
}

/** Several subjects: the label tells them apart; one: there is nothing to tell. */
export const seriesOf = (named: readonly Named[], one: Named): string =>
  named.length > 1 ? one.label : "";

/** What was measured at each size, the smallest first; the subjects of one size beside each other. */
export const bySize = (named: readonly Named[]): { z: Size; series: string }[] =>
  named
    .flatMap((one) => one.subject.sizes.map((z) => ({ z, series: seriesOf(named, one) })))
    .sort((a, b) => a.z.size - b.z.size);
