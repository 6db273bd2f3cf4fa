// What the server sends, as far as the page reads it: views and findings of fairnif_watch, whose
// Erlang types say more. Times are microseconds since 1970 by the node's own clock.

export type Kind = "normal" | "dirty_cpu" | "dirty_io";
export type Status = "up" | "hanging" | "down" | "gone" | "replaced" | "refused" | "unknown";
export type Verdict = "ok" | "warn" | "unconfirmed" | "error";
export type Severity = "warning" | "error" | "unconfirmed";

export interface Scheduler {
  kind: Kind;
  number: number;
  state: string;
  /** Part of the last second, 0 to 1. */
  busy: number | null;
  run_queue: number | null;
  blocked_ms: number | null;
  running: string | null;
  /** Part of the last second in which it was ready and had no processor. */
  waiting?: number | null;
}

export interface Pool {
  size: number;
  busy: number;
  queue: number | null;
  wait_ms: number | null;
}

export interface Detector {
  name: string;
  verdict: Verdict;
  /** How many of its findings are kept. */
  found: number;
  sentence: string;
  looks_for: string;
  remedy: string | null;
}

interface TopFunction {
  label: string;
  samples: number;
  /** Of the busy samples, 0 to 1. */
  share: number;
  ns_per_s: number | null;
}

export interface View {
  at: number;
  started: number;
  otp: string;
  version: string;
  native: boolean;
  blind: string[];
  /** Whose processors other programs take: a sentence. */
  crowded: string | null;
  schedulers: Scheduler[];
  queues: Record<string, number | null>;
  pools: Record<string, Pool>;
  detectors: Detector[];
  top: TopFunction[];
  counters: Record<string, number>;
  memory: Record<string, number>;
}

export interface Frame {
  address: number | null;
  library: string | null;
  offset: number | null;
  function_offset: number | null;
  symbol: string | null;
  symbol_offset: number | null;
  in: string;
  nif: string | null;
  by: string | null;
}

export interface Culprit {
  /** Null where none is known. */
  kind: string | null;
  name: string;
  mfa: string | null;
  pid: string | null;
  registered: string | null;
  current_function: string | null;
  library: string | null;
  symbol: string | null;
  module: string | null;
  syscall: string | null;
}

/** A node as a whole is a word. */
export type Subject = { kind: string; number?: number; pid?: string } | string;

export interface Finding {
  id: number;
  detector: string;
  severity: Severity;
  at: number;
  since: number;
  duration_ms: number | null;
  ongoing: boolean;
  subject: Subject;
  sentence: string;
  culprit: Culprit;
  stack: Frame[];
  remedy: string | null;
  evidence: Record<string, unknown>;
}

export interface NodeStatus {
  node: string;
  status: Status;
  since: number | null;
  reason: string | null;
}

/** All of a node, for a page that does not know it. */
export interface WholeNode extends NodeStatus {
  view: View | null;
  /** Newest first. */
  findings: Finding[];
  /** A row of `busy` is a second: percent of each of `schedulers`. */
  history: {
    schedulers: { kind: Kind; number: number }[];
    at: number[];
    busy: (number | null)[][];
  };
}

/** The events of the stream, by their names. */
export interface Events {
  state: { schema_version: number; nodes: WholeNode[] };
  node: WholeNode;
  status: NodeStatus;
  view: { node: string; view: View };
  finding: { node: string; finding: Finding };
  gone: { node: string };
}

/** What fairnif_watch writes. */
export const SCHEMA_VERSION = 1;
