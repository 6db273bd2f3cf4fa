// The figures of each experiment, as data: sections/experiment.ts draws them. Of what an experiment's
// `result` holds, docs/reference/experiments.md and the modules in apps/fairnif_experiments tell.
import { count, duration } from "./format.ts";
import { HEAT_NS, heatOf } from "./heat.ts";
import { result, type Source } from "./model.ts";
import { type Fields, fill, type Part, read } from "./sections/experiment.ts";
import { unique } from "./stats.ts";

const list = (all: Fields, key: string): Fields[] => (all[key] ?? []) as Fields[];
const LATE = { label: "late by", unit: "ns", log: true };
const LIMIT = [{ at: 1e6, text: "documented limit 1 ms" }];

/** "3 to 7 %" as fractions. */
function publishedRange(text: unknown): [number, number] | undefined {
  const match = /^([\d.]+) to ([\d.]+) %$/.exec(String(text));
  return match ? [Number(match[1]) / 100, Number(match[2]) / 100] : undefined;
}

// -- exor: a large binary XORed by each form, and the figures of Vinoski's talk -------------------

const exor: Part[] = [
  {
    plot: "dots",
    title: "Longest block of a normal scheduler",
    about: "Nothing else runs on that scheduler meanwhile.",
    heading: "form",
    label: "{form}",
    points: { "longest block": "block_longest" },
    x: { label: "longest block", unit: "ns", log: true },
    rules: LIMIT,
  },
  {
    plot: "dots",
    title: "CPU left to an Erlang neighbour",
    about:
      "Of one scheduler. On dirty schedulers the work is done elsewhere. Over 100 % is noise: other programs had the processor while the neighbour was alone.",
    heading: "form",
    label: "{form}",
    points: { "CPU left": "share#mean" },
    x: { label: "CPU left", unit: "percent", least: [0, 1] },
  },
  {
    plot: "dots",
    title: "Time for {size|bytes}",
    of: (all) => list(all, "rows").map((row) => ({ ...row, size: all.size })),
    heading: "form",
    label: "{form}",
    points: { elapsed: "elapsed_us|us" },
    x: { label: "elapsed, the fastest run", unit: "us", log: true },
  },
  {
    plot: "histogram",
    title: "Slices",
    about: "How many slices on normal schedulers were how long.",
    heading: "form",
    label: "{form}",
    samples: "traced.slices_normal",
    x: { label: "length of a slice", unit: "ns", log: true },
    rules: LIMIT,
  },
  {
    plot: "table",
    title: "Beside the talk",
    about:
      "Vinoski's talk XORed 2,000,000,000 bytes on another machine: compare the ratios between forms.",
    columns: [
      ["form", "{form}"],
      ["elapsed", "{elapsed_us|us}"],
      ["the talk", "{talk.seconds|s}"],
      ["yields", "{yields|count}"],
      ["the talk", "{talk.yields|count}"],
      ["reductions", "{reductions|count}"],
      ["the talk", "{talk.reductions|count}"],
    ],
  },
];

// -- levenshtein: calls a second by length, and who is late beside endless callers ----------------

const titleOf = (all: Fields, form: string): string =>
  String(list(all, "jitter").find((j) => j.form === form)?.title ?? form);

const levenshtein: Part[] = [
  {
    plot: "lines",
    title: "Calls a second of one process",
    about: "Random bytes. The published figures came without a length: dashed lines.",
    of: (all) =>
      unique(list(all, "rates").flatMap((r) => Object.keys(r.forms ?? {}))).map((form) => ({
        title: titleOf(all, form),
        points: list(all, "rates").map((r) => ({
          length: r.length,
          rate: read(r, `forms.${form}.per_second`),
        })),
      })),
    label: "{title}",
    points: "points",
    x: { label: "bytes", unit: "bytes", log: true, of: "length" },
    y: { label: "calls a second", unit: "count", log: true, of: "rate" },
    rules: (all) =>
      Object.entries((all.published ?? {}) as Record<string, { per_second: number }>).map(
        ([form, { per_second }]) => ({
          at: per_second,
          text: `${titleOf(all, form)}, published: ${count(per_second)}`,
        }),
      ),
  },
  {
    plot: "dots",
    title: "How late a sleeper of {sleep_ms|ms} wakes",
    about: "Beside as many endless callers as processors. {late}",
    of: (all) =>
      list(all, "jitter").map((j) => ({
        ...j,
        late:
          j.sleep_ms === 1000
            ? Object.entries((all.published_late ?? {}) as Fields)
                .map(([form, text]) => `Published, beside ${titleOf(all, form)}: ${text}. `)
                .join("")
            : " ",
      })),
    each: "{sleep_ms|ms}",
    heading: "beside",
    label: "{title}",
    points: { median: "p50", p99: "p99", longest: "max" },
    note: ["error"],
    x: LATE,
  },
];

// -- matrix: modes x calls per scheduler, a heat map for each duration and job --------------------

const MODES: Record<string, string> = {
  normal: "plain NIF",
  dirty: "dirty CPU",
  yielding: "yielding",
  yielding_dirty: "yielding dirty",
  fair_auto: "fairnif AUTO",
  fair_yielding: "fairnif NORMAL",
  fair_yielding_dirty: "fairnif DIRTY_CPU",
  fair_threaded: "fairnif THREADED",
};
const modeOf = (row: Fields): string => MODES[String(row.mode)] ?? String(row.mode);
/** The talk's columns. */
const MULTIPLES = [1, 10, 100, 1000, 10000];

function cells(all: Fields): Fields[] {
  const own = list(all, "rows").map((row) => ({ ...row, mode: modeOf(row) }) as Fields);
  const talk = list(all, "published")
    .filter((p) => (p.extra_s as unknown[]).some((s) => s !== null))
    .flatMap((p) =>
      (p.extra_s as (number | null)[]).map((s, i) => ({
        job: "spinsleep",
        duration_us: p.duration_us,
        mode: `the talk: ${modeOf(p)}`,
        multiple: MULTIPLES[i],
        extra: s === null ? null : s * 1e9,
        status: "-",
      })),
    );
  return [...own, ...talk.filter((t) => own.some((row) => row.duration_us === t.duration_us))];
}

const matrix: Part[] = [
  {
    plot: "heat",
    title: "Extra time, {job}, calls of {duration_us|us}",
    about:
      "Extra time: the last end less the first start, less what it takes at least. 1x is one call for each scheduler. spinsleep spins until a deadline, so that all calls could be done at once; spinwork is a fixed amount of work. In brackets: left out, since it is predicted to take so long.",
    of: cells,
    each: "{job}, {duration_us|us}",
    corner: "mode",
    row: "{mode}",
    column: "{multiple|count}x",
    cell: (row) =>
      typeof row.extra === "number"
        ? { heat: heatOf(row.extra), text: duration(row.extra) }
        : row.status === "skipped"
          ? {
              heat: null,
              text: row.skipped === "total" ? "left out" : fill("({predicted_ms|ms})", row),
            }
          : {
              heat: row.status === "-" ? null : HEAT_NS.length,
              text: String(row.error ?? row.status),
            },
    legend: ["under 1 ms", "1 ms", "10 ms", "100 ms", "1 s", "10 s and more"],
  },
];

// -- reductions: what a process is charged for one call -------------------------------------------

const reductions: Part[] = [
  {
    plot: "dots",
    title: "Reductions charged for one call",
    about:
      "Compiled: the call alone. Evaluated: with what erl_eval does. The published figures came from a shell, whose own work is in them. A turn is 4,000.",
    heading: "call",
    label: "{title}",
    points: {
      compiled: "compiled",
      evaluated: "evaluated",
      "published, compiled": "published.compiled",
      "published, in a shell": "published.shell",
    },
    note: ["error"],
    apart: ["published, compiled", "published, in a shell"],
    x: { label: "reductions", unit: "count", log: true },
    rules: [{ at: 4000, text: "a turn: 4,000" }],
  },
];

// -- overhead: the way to a dirty scheduler and back; below which size it costs too much ----------

const KINDS: Record<string, string> = {
  dirty_cpu: "CPU",
  dirty_io: "I/O",
  plain: "none: the stamps",
};
const setOf = (all: Fields, set: unknown): unknown =>
  list(all, "flags").find((f) => f.set === set)?.title ?? set;
const trips = (all: Fields): Fields[] =>
  list(all, "rows").map((row) => ({
    ...row,
    title: setOf(all, row.set),
    scheduler: KINDS[String(row.kind)] ?? row.kind,
  }));
const way = (of: string, title: string, about: string): Part => ({
  plot: "histogram",
  title,
  about,
  of: trips,
  where: (row) => row.kind !== "plain",
  heading: "flags, scheduler",
  label: "{title}, {scheduler}",
  samples: `samples.${of}`,
  x: { label: "time", unit: "ns", log: true },
});

const overhead: Part[] = [
  way("there", "To a dirty scheduler", "From the call to the start of the native code."),
  way("back", "And back", "From its end to the caller's going on."),
  {
    plot: "table",
    title: "Beside the published figures",
    about: "Published: about 20,000 calls on an i7-3720QM.",
    of: trips,
    columns: [
      ["flags", "{title}", "published: {title}"],
      ["scheduler", "{scheduler}"],
      ["there, median", "{there.median|ns}", "{there}"],
      ["back, median", "{back.median|ns}", "{back}"],
      ["both, median", "{both.median|ns}", "{both}"],
      ["both, p99", "{both.p99|ns}"],
      ["back over 10 us", "{back.over|percent}", "{over}"],
      ["note", "{error}"],
    ],
    published: (all) => list(all, "published").map((p) => ({ ...p, title: setOf(all, p.set) })),
  },
  {
    plot: "lines",
    title: "Time by size",
    about:
      "On a normal scheduler. Below its cutoff size the way to a dirty scheduler costs more than 10 % of the work.",
    of: "functions",
    label: "{function}",
    points: "points",
    x: { label: "bytes", unit: "bytes", log: true, of: "size" },
    y: { label: "time of a call", unit: "ns", log: true, of: "ns" },
    rules: LIMIT,
  },
  {
    plot: "table",
    title: "Cutoff sizes",
    of: (all) =>
      list(all, "functions").flatMap((f) =>
        list(f, "cutoffs").map((c) => ({ ...c, function: f.function, title: setOf(all, c.set) })),
      ),
    columns: [
      ["function", "{function}"],
      ["flags", "{title}"],
      ["cutoff", "{size|bytes}"],
    ],
  },
];

// -- share: the CPU that each mode leaves to Erlang neighbours, and how late sleepers are ---------

const share: Part[] = [
  {
    plot: "dots",
    title: "CPU left to an Erlang neighbour",
    about:
      "Of one scheduler, beside each mode and length of a slice. Two Erlang processes leave each other half.",
    heading: "beside",
    label: "{title}[, {slice_us|us}]",
    points: {
      median: "share.neighbours.share#median",
      least: "share.neighbours.share#least",
      most: "share.neighbours.share#most",
    },
    range: (row) => publishedRange(row.published),
    note: ["share.error"],
    x: { label: "CPU left", unit: "percent", least: [0, 1] },
  },
  {
    plot: "dots",
    title: "How late a sleeper of 1 ms wakes",
    about: "Beside as many endless callers as schedulers.",
    heading: "beside",
    label: "{title}[, {slice_us|us}]",
    points: { median: "delay.p50", p99: "delay.p99", longest: "delay.max" },
    note: ["delay.error"],
    x: LATE,
  },
];

// -- collapse: queues and use of each scheduler over time, and how unequal the processes' times were

/** Whether there was a collapse, with what. */
export function collapseConclusion(source: Source): string[] {
  const rows = list(result<Fields>(source), "rows");
  const where = (answer: unknown): string =>
    rows
      .filter((row) => list(row, "runs").some((run) => run.collapsed === answer))
      .map((row) => fill("{work}, {variant}", row))
      .join("; ");
  const [collapsed, unsure] = [where(true), where("unsure")];
  return [
    collapsed
      ? `Schedulers slept while work waited: ${collapsed}.`
      : "No scheduler was seen to sleep while work waited. That none did here does not say that none does on a larger machine.",
    ...(unsure ? [`Of some runs it can't be said: ${unsure}.`] : []),
  ];
}

const RUN = "{work}, {variant}: run {n}, {online} online";

const collapse: Part[] = [
  {
    plot: "dots",
    title: "Time of a process",
    about:
      "All processes have the same to do. A fair VM lets them end together; compare with ordinary Erlang.",
    of: "rows.runs",
    heading: "work",
    label: RUN,
    points: { shortest: "seconds#least|s", median: "seconds#median|s", longest: "seconds#most|s" },
    x: { label: "time", unit: "ns", log: true },
  },
  {
    plot: "table",
    title: "Collapsed?",
    about:
      "A scheduler that was in use for less than half of the time in which work waited for it. The VM for which a collapse was published had 8 to 16 processors.",
    of: "rows.runs",
    columns: [
      ["work", RUN, "published: {what}[, {online} online]"],
      ["collapsed", "{collapsed}", "{collapsed}"],
      ["longest / shortest", "{fairness|times}", "{fairness|times}"],
      ["in use, by scheduler", "{in_use|of_100}", "{in_use}"],
      ["why", "{why}", "[{per_5s} jobs a scheduler in 5 s]"],
    ],
    published: (all) =>
      list(all, "published").map((p) => ({
        ...p,
        fairness: p.longest ? Number(p.longest) / Number(p.shortest) : null,
      })),
  },
  {
    plot: "strips",
    title: `Run queues: ${RUN}`,
    about:
      "A line for each scheduler that is online: the stronger the colour, the longer its queue.",
    of: "rows.runs",
    where: (row) => list(row, "samples").length > 0,
    each: `{series} ${RUN}`,
    strips: [{ of: "1", label: "{n}[: {in_use.@|of_100} in use]" }],
    points: "samples",
    time: "0|ms",
    end: "elapsed_ms|ms",
    value: { label: "processes waiting", unit: "count" },
  },
];

// -- http: what a server's light requests feel while heavy ones run native code -------------------

/** What was heavy: the same for all modes of one plot. */
const heavy = (r: Fields): string =>
  r.duration_ms === null
    ? `nothing heavy, ${r.rate} light a second`
    : fill("{job} of {duration_ms|ms}, {at_once} at once, {rate} light a second", r);

/** The runs beside each that is heavy, those beside nothing among them. */
function besides(all: Fields): Fields[] {
  const rows = list(all, "rows").filter((r) => r.light);
  const none = rows.filter((r) => r.duration_ms === null);
  return unique(rows.filter((r) => r.duration_ms !== null).map(heavy)).flatMap((what) => {
    const own = rows.filter((r) => heavy(r) === what);
    const idle = none.filter((r) => own.some((one) => one.rate === r.rate));
    return [...idle, ...own].map((r) => ({
      ...r,
      what,
      again: Number(r.repeat) > 1 ? r.repeat : null,
      silent: read(r, "light.p99_us") === null ? "no answer" : null,
    }));
  });
}

const overTime = (
  title: string,
  of: string,
  y: { label: string; unit: string; log?: boolean },
): Part => ({
  plot: "lines",
  title,
  label: "",
  points: "timeline",
  x: { label: "time", unit: "ns", of: "t_ms|ms" },
  y: { ...y, of },
  height: 150,
});

const http: Part[] = [
  {
    plot: "table",
    title: "Beside equal work in Erlang",
    about: "p99 of the light requests; the medians of the repeats.",
    of: (all) =>
      list(all, "compared").map((c) => ({
        ...c,
        heavy: heavy(c),
        kept: c.kept === null ? "-" : c.kept ? "kept" : "not kept",
      })),
    columns: [
      ["mode", "{title}"],
      ["heavy", "{heavy}"],
      ["p99", "{p99_us|us}"],
      ["beside Erlang", "{erlang_p99_us|us}"],
      ["idle", "{idle_p99_us|us}"],
      ["times Erlang", "{times_erlang|times}"],
      ["promised, at most", "{at_most|times}"],
      ["kept", "{kept}"],
      ["light a second", "{requests_per_s|number}"],
      ["heavy a second", "{heavy_per_s|number}"],
      ["finding", "{finding}"],
    ],
  },
  {
    plot: "dots",
    title: "Latency of the light requests: {what}",
    of: besides,
    each: "{what}",
    heading: "beside",
    label: "{title}[, repeat {again}]",
    points: { median: "light.p50_us|us", p99: "light.p99_us|us", longest: "light.max_us|us" },
    note: ["finding", "silent"],
    x: { label: "from due to answered", unit: "ns", log: true },
  },
  {
    plot: "folded",
    heading: "Over time",
    title: "{title}: {what}, repeat {repeat}",
    of: (all) => list(all, "rows").map((r) => ({ ...r, what: heavy(r) })),
    where: (row) => list(row, "timeline").length > 0,
    parts: [
      overTime("Light requests answered", "requests_per_s", { label: "a second", unit: "count" }),
      overTime("Their p99", "p99_us|us", { label: "p99", unit: "ns", log: true }),
      {
        plot: "strips",
        title: "Use of each scheduler",
        strips: [
          { of: "use", label: "normal {n}" },
          { of: "dirty_cpu_use", label: "dirty CPU {n}" },
        ],
        points: "timeline",
        time: "t_ms|ms",
        end: "window_ms|ms",
        value: { label: "in use", unit: "percent" },
        full: 1,
      },
      {
        plot: "strips",
        title: "Run queues",
        where: (row) => list(row, "timeline").some((p) => p.queues),
        strips: [{ of: "queues", label: "queue {n}" }],
        points: "timeline",
        time: "t_ms|ms",
        end: "window_ms|ms",
        value: { label: "processes waiting", unit: "number" },
      },
    ],
  },
];

// -- latency: an echo in ten ways to reach code ---------------------------------------------------

const latency: Part[] = [
  {
    plot: "dots",
    title: "An echo of {bytes|bytes}",
    about:
      "The median and p99 of the way there and back, beside the order of magnitude that was published. In brackets how it is kept apart: shared is in the VM, which it takes along when it crashes; process is beside it; network may be on another machine as well.",
    each: "{bytes|bytes}",
    heading: "form",
    label: "{title} ({isolation})",
    points: { median: "median_us|us", p99: "p99_us|us", published: "published_us|us" },
    apart: ["published"],
    note: ["error", "left_out"],
    x: { label: "there and back", unit: "ns", log: true },
    more: [["samples", "{count|count}"]],
  },
];

// -- wakeup: how late an idle scheduler wakes up --------------------------------------------------

const wakeup: Part[] = [
  {
    plot: "dots",
    title: "How late a sleeper of 1 ms is, schedulers spinning: {busy_wait}",
    about: "p99, and the same where sched_yield does nothing.",
    each: "{busy_wait}",
    heading: "beside",
    label: "{title}",
    points: { p99: "real.p99", "sched_yield does nothing": "control.p99" },
    apart: ["sched_yield does nothing"],
    note: ["real.error", "real.left_out"],
    x: LATE,
    more: [["schedulers wait for a processor", "{real.waits|percent}"]],
  },
];

interface Experiment {
  title: string;
  parts: Part[];
  /** If not the terminal's text. */
  conclude?: (source: Source) => string[];
}

export const EXPERIMENTS: Record<string, Experiment> = {
  exor: { title: "Fair and unfair", parts: exor },
  levenshtein: { title: "Rates and lateness", parts: levenshtein },
  matrix: { title: "Who waits how long", parts: matrix },
  reductions: { title: "What is charged", parts: reductions },
  overhead: { title: "There and back", parts: overhead },
  collapse: { title: "Schedulers over time", parts: collapse, conclude: collapseConclusion },
  share: { title: "What is left to others", parts: share },
  http: { title: "Light requests beside heavy ones", parts: http },
  latency: { title: "There and back", parts: latency },
  wakeup: { title: "Idle and late", parts: wakeup },
};
