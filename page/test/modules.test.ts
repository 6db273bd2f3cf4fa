// The modules that need no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { collapseConclusion } from "../src/experiments.ts";
import { bytes, count, duration, number, percent } from "../src/format.ts";
import type { Check, Report } from "../src/model.ts";
import { grouped, sectionsOf } from "../src/report.ts";
import { fairSlice } from "../src/sections/check_slices.ts";
import { conclusion, paragraphs } from "../src/sections/experiment_glance.ts";
import { extent, logBins, logScale, quantile } from "../src/stats.ts";

const source = (report: Partial<Report>, name = "") => ({
  name,
  report: { schema_version: 1, ...report },
});

test("numbers are written as the terminal writes them", () => {
  assert.equal(duration(3060175), "3.06 ms");
  assert.equal(duration(999.4), "999 ns");
  assert.equal(duration(999499), "999 us");
  assert.equal(duration(999500), "1.00 ms");
  assert.equal(duration(-719000), "-719 us");
  assert.equal(duration(120e9), "120 s");
  assert.equal(duration(null), "-");
  assert.equal(bytes(1), "1 byte");
  assert.equal(bytes(67108864), "67.1 MB");
  assert.equal(percent(0.056), "5.6 %");
  assert.equal(percent(1.03), "103 %");
  assert.equal(count(7815912), "7,815,912");
  assert.equal(number(0.4731), "0.473");
  assert.equal(number(Number.NaN), "-");
});

test("every sample is in one bin, at its edges too", () => {
  const samples = [1, 10, 100, 1000, 999.999, 0, -5, 123456];
  const bins = logBins(samples);
  assert.equal(
    bins.reduce((sum, bin) => sum + bin.count, 0),
    samples.length,
  );
  for (const exact of [1, 10, 100, 1000]) {
    const bin = bins.find((b) => b.from <= exact * 1.0001 && exact < b.to * 0.9999);
    assert.ok(bin && Math.abs(bin.from / exact - 1) < 1e-6, `${exact} begins a bin`);
  }
  assert.deepEqual(logBins([]), []);
});

test("millions of samples are binned, and their extent found, without a stack overflow", () => {
  const samples = Array.from({ length: 3_000_000 }, (_, i) => 1 + (i % 1000));
  assert.deepEqual(extent(samples), [1, 1000]);
  assert.ok(logBins(samples).length < 40);
  assert.equal(quantile(samples, 0.5), 501);
});

test("a logarithmic axis has at least two labels and not more than there is room for", () => {
  for (const [low, high] of [
    [1, 1.1],
    [3.6e6, 14.1e6],
    [800, 2e10],
    [5, 5],
    [1e-3, 1e12],
  ] as const) {
    for (const most of [3, 6, 12]) {
      const { domain, ticks } = logScale([low, high], most);
      assert.ok(domain[0] < low && high < domain[1]);
      assert.ok(ticks.length <= most, `${low} to ${high}: ${ticks}`);
      if (high / low > 3) assert.ok(ticks.length >= 2, `${low} to ${high}: ${ticks}`);
    }
  }
});

test("the fair slice is a turn of ordinary Erlang on that machine", () => {
  const check = { machine: { erlang: { sort: 80000, maps: 40000 } } } as unknown as Check;
  assert.deepEqual(fairSlice(check), [50000, 100000]);
  assert.equal(fairSlice({ machine: {} } as Check), null);
});

test("the conclusion is what the terminal says is to be seen, tables apart, in either frame", () => {
  const text = `
\u250c\u2500\u2500\u2510
\u2502 x \u2502
\u2514\u2500\u2500\u2518
Note below the table.

+---+
| y |
+---+

What to see: it is late,
and why.

Above: one.
`;
  assert.deepEqual(paragraphs(text), [
    "Note below the table.",
    "What to see: it is late,\nand why.",
    "Above: one.",
  ]);
  assert.deepEqual(conclusion(source({ text })), [
    "What to see: it is late,\nand why.",
    "Above: one.",
  ]);
  assert.deepEqual(conclusion(source({})), []);
});

test("a collapse is named, and one that is uncertain is no collapse", () => {
  const run = (collapsed: boolean | string) => ({ runs: [{ collapsed }] });
  const rows = [
    { work: "a", variant: "as is", ...run(true) },
    { work: "b", variant: "as is", ...run("unsure") },
  ];
  assert.match(collapseConclusion(source({ result: { rows } }))[0] ?? "", /slept .*: a, as is\.$/);
  const calm = collapseConclusion(source({ result: { rows: rows.slice(1) } }));
  assert.match(calm[0] ?? "", /^No scheduler was seen to sleep/);
  assert.match(calm[1] ?? "", /b, as is/);
});

test("reports of one kind are compared, others follow each other, unknown ones are shown", () => {
  const groups = grouped([
    source({ command: "check" }, "a"),
    source({ experiment: "exor" }, "b"),
    source({ command: "check" }, "c"),
  ]);
  assert.deepEqual(
    groups.map((g) => [g.kind, g.sources.map((s) => s.name)]),
    [
      ["check", ["a", "c"]],
      ["exor", ["b"]],
    ],
  );
  for (const kind of ["nobody knows", "constructor", "__proto__"])
    assert.ok(sectionsOf(kind).some((s) => s.title === "In the terminal"));
});
