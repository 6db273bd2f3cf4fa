// The modules of the live page that need no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding, Frame, View, WholeNode } from "../src/live/model.ts";
import { groupsOf } from "../src/live/sections/findings.ts";
import { crowdedText } from "../src/live/sections/overview.ts";
import { blocksOf } from "../src/live/sections/strips.ts";
import { bars } from "../src/live/sections/top.ts";
import { COLUMNS, isLive, lasted, MOST_FINDINGS, Store } from "../src/live/store.ts";
import { frameText, statusOf } from "../src/live/words.ts";

const view = (at: number, more: Partial<View> = {}): View => ({
  at,
  started: 1,
  otp: "25",
  version: "0.1.0",
  native: true,
  blind: [],
  crowded: null,
  schedulers: [
    {
      kind: "normal",
      number: 1,
      state: "busy",
      busy: 0.256,
      run_queue: 0,
      blocked_ms: 0,
      running: null,
    },
  ],
  queues: {},
  pools: {},
  detectors: [],
  top: [],
  counters: {},
  memory: {},
  ...more,
});

const finding = (id: number, more: Partial<Finding> = {}): Finding => ({
  id,
  detector: "scheduler_blocked",
  severity: "error",
  at: 5e6,
  since: 4e6,
  duration_ms: 1000,
  ongoing: false,
  subject: { kind: "scheduler", number: 1 },
  sentence: "s",
  culprit: {
    kind: null,
    name: "unknown",
    mfa: null,
    pid: null,
    registered: null,
    current_function: null,
    library: null,
    symbol: null,
    module: null,
    syscall: null,
  },
  stack: [],
  remedy: null,
  evidence: {},
  ...more,
});

const whole = (node: string, more: Partial<WholeNode> = {}): WholeNode => ({
  node,
  status: "up",
  since: null,
  reason: null,
  view: view(1e6),
  findings: [],
  history: { schedulers: [{ kind: "normal", number: 1 }], at: [1e6], busy: [[26]] },
  ...more,
});

function stored(...nodes: WholeNode[]): Store {
  const store = new Store();
  store.apply("state", { schema_version: 1, nodes }, 0);
  return store;
}

const the = (store: Store, node = "a") => {
  const found = store.nodes.get(node);
  assert.ok(found);
  return found;
};

test("a state replaces all that was known; nodes that are not in it are gone", () => {
  const store = stored(whole("a"), whole("b"));
  store.apply("state", { schema_version: 1, nodes: [whole("b"), whole("c")] }, 1);
  assert.deepEqual([...store.nodes.keys()].sort(), ["b", "c"]);
});

test("views make columns, as many as a strip has, in percent", () => {
  const store = stored(whole("a"));
  for (let i = 2; i < 400; i++) store.apply("view", { node: "a", view: view(i * 1e6) }, i);
  const { columns } = the(store);
  assert.equal(columns.length, COLUMNS);
  assert.deepEqual(columns.at(-1), { at: 399e6, busy: [26] });
});

test("findings are kept by their id, the newest, and are new once", () => {
  const store = stored(whole("a", { findings: [finding(1)] }));
  assert.equal(store.take().length, 0);
  for (let id = 1; id <= 300; id++) store.apply("finding", { node: "a", finding: finding(id) }, 1);
  assert.equal(store.take().length, 299);
  const ids = [...the(store).findings.keys()];
  assert.equal(ids.length, MOST_FINDINGS);
  assert.equal(Math.min(...ids), 201);
});

test("what is old, or from a node that is not up, or before the connection was lost, is not live", () => {
  const store = stored(whole("a"));
  const node = the(store);
  assert.ok(isLive(node, true, 1000));
  assert.ok(!isLive(node, false, 1000));
  assert.ok(!isLive(node, true, 10_000));
  store.apply("status", { node: "a", status: "hanging", since: 1, reason: "r" }, 1000);
  assert.ok(!isLive(node, true, 1000));
  assert.match(statusOf(node, false, true).word, /hanging/);
  assert.match(statusOf({ ...node, status: "up" }, false, true).word, /silent/);
  assert.match(statusOf({ ...node, status: "up" }, false, false).word, /not known/);
});

test("the state that comes again after a lost connection does not make an old view new", () => {
  const store = stored(whole("a"));
  store.apply("state", { schema_version: 1, nodes: [whole("a")] }, 60_000);
  assert.ok(!isLive(the(store), true, 60_000));
});

test("a duration grows here while it lasts, and only while that is known", () => {
  const ongoing = { finding: finding(1, { ongoing: true }), came: 100 };
  assert.equal(lasted(ongoing, true, 600), 1500);
  assert.equal(lasted(ongoing, false, 600), 1000);
  assert.equal(lasted({ finding: finding(1), came: 100 }, true, 600), 1000);
  const untold = { finding: finding(1, { ongoing: true, duration_ms: null }), came: 100 };
  assert.equal(lasted(untold, true, 600), 1500);
});

test("the watch's own cost is what its CPU time grew by in the time between two views", () => {
  const store = stored(whole("a", { view: view(1e6, { counters: { watch_cpu_ns: 1e6 } }) }));
  assert.equal(the(store).cost, null);
  const next = view(3e6, { counters: { watch_cpu_ns: 9e6 } });
  store.apply("view", { node: "a", view: next }, 2000);
  assert.equal(the(store).cost, 4e6);
});

test("blocks are those of blocked schedulers, by scheduler, on the node's clock", () => {
  const dirty = finding(2, { detector: "dirty_cpu_saturated", subject: "node" });
  const store = stored(whole("a", { findings: [finding(1), dirty] }));
  const blocks = blocksOf(the(store), true, 0);
  assert.deepEqual([...blocks], [["normal 1", [{ from: 4e6, to: 5e6, error: true }]]]);
});

test("functions of several nodes are summed, the busiest first", () => {
  const top = (label: string, share: number, ns_per_s: number | null) => ({
    label,
    samples: 1,
    share,
    ns_per_s,
  });
  const store = stored(
    whole("a", { view: view(1, { top: [top("f", 0.2, 5), top("g", 1, null)] }) }),
    whole("b", { view: view(1, { top: [top("f", 0.4, 7)] }) }),
    whole("c", { view: null }),
  );
  const [first, second] = bars({ nodes: [...store.nodes.values()] });
  assert.deepEqual([first?.label, first?.share, first?.ns, first?.length], ["g", 0.5, null, 1]);
  assert.deepEqual([second?.label, second?.ns, second?.nodes], ["f", 12, 2]);
  assert.ok(Math.abs((second?.share ?? 0) - 0.3) < 1e-9);
});

test("a frame says what is certain: symbol, NIF, file and offset, or the address alone", () => {
  const frame: Frame = {
    address: 0x1234,
    library: "/usr/lib/x.so",
    offset: 0x20,
    function_offset: null,
    symbol: "spin",
    symbol_offset: 4,
    in: "library",
    nif: "m:spin/1",
    by: "symtab",
  };
  assert.equal(frameText(frame), "spin+0x4 = m:spin/1 (x.so+0x20) [library]");
  const bare = { ...frame, symbol: null, symbol_offset: null, nif: null };
  assert.equal(frameText(bare), "x.so+0x20 [library]");
  assert.equal(frameText({ ...bare, library: null, offset: null, in: "jit" }), "0x1234 [jit]");
  assert.equal(frameText({ ...bare, library: null, address: null }), "? [library]");
});

test("findings of one culprit stand together, by their newest; of whom nothing is known they do not", () => {
  const by = (id: number, name: string | null, more: Partial<Finding> = {}, node = "a") => {
    const one = finding(id, more);
    const culprit = { ...one.culprit, kind: name && "nif", name: name ?? "unknown" };
    return { node: { node }, known: { finding: { ...one, culprit } } };
  };
  const groups = groupsOf([
    by(7, "f", {}, "b"),
    by(6, "f"),
    by(5, "g"),
    by(4, null),
    by(3, "f", { ongoing: true }),
    by(2, null),
    by(1, "g", { detector: "undercharged" }),
  ]);
  assert.deepEqual(
    groups.map(({ all }) => all.map(({ known }) => known.finding.id)),
    [[7], [3, 6], [5], [4], [2], [1]],
  );
});

test("that other programs take a node's processors is said while that is known", () => {
  const store = new Store();
  store.apply("state", { schema_version: 1, nodes: [whole("a"), whole("b")] }, 0);
  store.apply("view", { node: "a", view: view(2e6, { crowded: "Taken." }) }, 0);
  const shown = (connected: boolean, several: boolean) =>
    crowdedText({ nodes: [...store.nodes.values()], several, connected, now: 0 });
  assert.equal(shown(true, false), "\u25b2 Taken.");
  assert.equal(shown(true, true), "\u25b2 a: Taken.");
  assert.equal(shown(false, false), "");
});
