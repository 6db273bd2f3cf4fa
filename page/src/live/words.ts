// What the page says of things, in words that go with a mark: never by colour alone.
import { duration } from "../format.ts";
import type { Frame, Kind, NodeStatus, Severity, Subject, Verdict } from "./model.ts";

export interface Word {
  mark: string;
  word: string;
  /** A class of style.css that has a tone. */
  tone: string;
}

export const SEVERITIES: Record<Severity, Word> = {
  error: { mark: "\u25a0", word: "error", tone: "fail" },
  warning: { mark: "\u25b2", word: "warning", tone: "warn" },
  unconfirmed: { mark: "?", word: "look again", tone: "unsure" },
};

export const VERDICTS: Record<Verdict, Word> = {
  ok: { mark: "\u2713", word: "ok", tone: "pass" },
  error: SEVERITIES.error,
  warn: { mark: "\u25b2", word: "warn", tone: "warn" },
  unconfirmed: { mark: "?", word: "unconfirmed", tone: "unsure" },
};
/** Of a detector that says ok now, and did not before. */
export const FOUND: Word = { mark: "\u25b3", word: "found before", tone: "warn" };

const STATUSES: Record<string, Word> = {
  up: { mark: "\u25cf", word: "up", tone: "pass" },
  hanging: { mark: "\u25d0", word: "hanging, trying again", tone: "warn" },
  down: { mark: "\u2715", word: "down", tone: "fail" },
  gone: { mark: "\u2715", word: "gone", tone: "fail" },
  replaced: { mark: "\u21bb", word: "replaced", tone: "warn" },
  refused: { mark: "\u2298", word: "refused", tone: "fail" },
  silent: { mark: "\u2026", word: "silent", tone: "warn" },
};

const UNKNOWN: Word = { mark: "?", word: "unknown", tone: "unsure" };

/** A node that is said to be up, and says nothing, is silent. Without a connection none is known. */
export function statusOf({ status }: NodeStatus, live: boolean, connected: boolean): Word {
  if (!connected) return { ...UNKNOWN, word: `not known, was ${status}` };
  const said = status === "up" && !live ? "silent" : status;
  return STATUSES[said] ?? { ...UNKNOWN, word: String(said) };
}

export const wordOf = <K extends string>(words: Record<K, Word>, key: K): Word =>
  words[key] ?? { ...UNKNOWN, word: String(key) };

const SUBJECTS: Record<string, string> = {
  scheduler: "scheduler",
  normal: "scheduler",
  dirty_cpu: "dirty CPU scheduler",
  dirty_io: "dirty I/O scheduler",
  process: "process",
  node: "the node",
};

export function subjectText(subject: Subject): string {
  if (typeof subject === "string") return SUBJECTS[subject] ?? subject;
  const { kind, number, pid } = subject;
  return [SUBJECTS[kind] ?? kind, number ?? pid].filter((part) => part !== undefined).join(" ");
}

export const KINDS: Record<Kind, string> = {
  normal: "normal",
  dirty_cpu: "dirty CPU",
  dirty_io: "dirty I/O",
};

/** The scheduler that a finding is about, as views call it. */
export function schedulerOf(subject: Subject): string | null {
  if (typeof subject === "string" || subject.number === undefined) return null;
  return `${subject.kind === "scheduler" ? "normal" : subject.kind} ${subject.number}`;
}

const hex = (n: number): string => `0x${n.toString(16)}`;

/** A frame as debuggers write them: what is certain, and no more. */
export function frameText(frame: Frame): string {
  const { library, offset, symbol, symbol_offset, address } = frame;
  const file = library?.split("/").at(-1) ?? null;
  const place = file ? `${file}+${offset === null ? "?" : hex(offset)}` : null;
  const at = place ?? (address === null ? "?" : hex(address));
  const name = symbol ? `${symbol}${symbol_offset ? `+${hex(symbol_offset)}` : ""}` : null;
  const nif = frame.nif ? ` = ${frame.nif}` : "";
  return `${name ? `${name}${nif} (${at})` : `${at}${nif}`} [${frame.in}]`;
}

/** Milliseconds. */
export const ms = (value: number | null): string => duration(value === null ? null : value * 1e6);

const CLOCK = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** Microseconds since 1970, as the time of day here. */
export const clock = (us: number | null): string =>
  us === null ? "-" : CLOCK.format(new Date(us / 1e3));
