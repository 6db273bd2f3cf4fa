// The live page as a reader sees it: real nodes that are really blocked, in headless Chromium.
import assert from "node:assert/strict";
import { mkdirSync, statSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { Browser, ElementHandle, Page } from "playwright-core";
import {
  blank,
  firstKeys,
  launch,
  type Opened,
  PHONE,
  seriousFindings,
  tooWide,
  WIDE,
} from "./chromium.ts";
import { ErlangNode, Watch } from "./nodes.ts";
import { file, HOSTILE, OUT } from "./reports.ts";

const PAGE = "../apps/fairnif_watch_console/priv/page/live.html";
/** Part of a node's name: other runs of this test have others. */
const RUN = `${process.pid}`;
/** Nothing that is waited for takes longer, on a busy machine either. */
const PATIENCE = { timeout: 30_000 };

let browser: Browser;
let node: ErlangNode;
let url: string;

/** Serves the page of the own node, as the application does; on any port, or on this one. */
const START = (port = 0) => `begin
  application:load(fairnif_watch_console),
  application:set_env(fairnif_watch_console, http, {{127,0,0,1}, ${port}}),
  {ok, _} = application:ensure_all_started(fairnif_watch_console),
  [Web] = [P || P <- processes(), {dictionary, D} <- [process_info(P, dictionary)],
    {'$initial_call', {fairnif_watch_web, init, 1}} <- D],
  binary_to_list(fairnif_watch_web:url(Web))
end`;

const NAME = "atom_to_list(node())";

const hold = (ms: number) => `spawn(fun() -> spinsleep:spinsleep(${ms * 1000}) end)`;

async function startWatch(on: ErlangNode, port = 0): Promise<string> {
  const answer = await on.eval(START(port));
  assert.match(answer, /^"http:/, answer);
  return JSON.parse(answer);
}

before(
  async () => {
    mkdirSync(OUT, { recursive: true });
    browser = await launch();
    node = new ErlangNode(`page${RUN}`);
    url = await startWatch(node);
    assert.equal(await node.eval("spinsleep:echo(loaded)"), "loaded");
  },
  { timeout: 600_000 },
);

after(async () => {
  await browser?.close();
  await node?.stop();
});

/** It wants nothing from anywhere but its server. */
async function open(address = url, connected = true): Promise<Opened> {
  const own = (url: string) => new URL(url).host === new URL(address).host || /^data:/.test(url);
  const { page, complaints } = await blank(browser, own);
  await page.goto(address);
  if (connected) await live(page);
  return { page, complaints };
}

async function live(page: Page): Promise<void> {
  await page.waitForSelector("#connection.live", PATIENCE);
  await page.waitForSelector(".nodes tbody tr:not(.stale)", PATIENCE);
}

const connection = (page: Page): Promise<string> => page.locator("#connection").innerText();

/** Of a scheduler that is blocked, or was; other detectors may have something to say of it too. */
const BLOCKED = ".finding:has-text('(scheduler_blocked)')";
const ONGOING = ".finding.ongoing:has-text('(scheduler_blocked)')";
const named = (page: Page) => page.locator(BLOCKED, { hasText: "spinsleep" });

/** Findings of one culprit stand together. */
const timesNamed = (page: Page): Promise<number> =>
  named(page).evaluateAll((cards) =>
    cards.reduce((sum, card) => sum + Number((card as HTMLElement).dataset.count), 0),
  );

const over = (page: Page): Promise<void> =>
  page
    .locator(ONGOING)
    .first()
    .waitFor({ state: "detached", ...PATIENCE });

/** A scheduler that got no processor meanwhile was not blocked, so says the watch: then once more. */
const TRIES = 5;

/**
 * Blocks a scheduler, and once more where need be, until one more finding than there were names the
 * function beside its scheduler. Milliseconds from the last call until that is on the page.
 */
async function untilNamed(page: Page, ms: number, on = node): Promise<number> {
  const known = await timesNamed(page);
  for (let i = 0; i < TRIES; i++) {
    const found = page.waitForFunction(
      (n) =>
        [...document.querySelectorAll<HTMLElement>(".finding")]
          .filter((f) => /scheduler \d[\s\S]*spinsleep/.test(f.textContent ?? ""))
          .reduce((sum, f) => sum + Number(f.dataset.count), 0) > n,
      known,
      { polling: 20, timeout: 6000 },
    );
    const began = performance.now();
    await on.eval(hold(ms));
    const time = await found.then(
      () => performance.now() - began,
      () => null,
    );
    if (time !== null) return time;
  }
  throw new Error(`blocked ${TRIES} times for ${ms} ms, and never named`);
}

/** As many milliseconds as this card says it was blocked, or has been. */
async function blockedFor(card: ElementHandle): Promise<number> {
  const text = (await (await card.$(".when"))?.innerText()) ?? "";
  const [, amount, unit] = text.match(/([\d.]+) (ms|s)\b/) ?? [];
  assert.ok(amount, text);
  return Number(amount) * (unit === "s" ? 1000 : 1);
}

describe("the live page", { timeout: 3_600_000 }, () => {
  test("it is one small file", () => {
    const { size } = statSync(PAGE);
    assert.ok(size < 64_000, `${size} bytes`);
  });

  test("a NIF that blocks a scheduler for 300 ms appears, named, within one second", async (t) => {
    const { page, complaints } = await open();
    // Findings on the page stay: each try looks for one more. The machine may be busy.
    const times: number[] = [];
    for (let i = 0; i < 3 && !times.some((time) => time < 1000); i++)
      times.push(await untilNamed(page, 300));
    t.diagnostic(`named after ${times.map(Math.round).join(", ")} ms`);
    assert.ok(
      times.some((time) => time < 1000),
      `named after ${times.join(", ")} ms`,
    );
    await over(page);
    const card = named(page).first();
    assert.match(await card.innerText(), /blocked for \d+ ms/);
    assert.match(await card.innerText(), /Remedy: /);
    await card.locator("summary", { hasText: "stack" }).click();
    assert.match(await card.locator(".frames").innerText(), /spinsleep/);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("while it is blocked its time counts, and afterwards stands still; the strip is marked", async () => {
    const { page } = await open();
    await node.eval(hold(6000));
    const card = await page.waitForSelector(ONGOING, { timeout: 5000 });
    assert.match(await card.innerText(), /going on/);
    assert.match(await page.title(), /^\d ongoing/);
    const first = await blockedFor(card);
    // On a busy machine it may count late, not never.
    let counted = first;
    for (let i = 0; i < 8 && counted < first + 500; i++) {
      await page.waitForTimeout(500);
      counted = await blockedFor(card);
    }
    assert.ok(counted >= first + 500, `${first} ms, then ${counted} ms`);
    await over(page);
    const last = await blockedFor(card);
    assert.ok(last > 4800 && last < 7200, `${last} ms`);
    await page.waitForTimeout(600);
    assert.equal(await blockedFor(card), last);

    const strip = page.locator(".strips canvas[aria-label*='at most']").first();
    assert.match((await strip.getAttribute("aria-label")) ?? "", /blocked \d+x, .* at most/);
    const marked = await strip.evaluate((canvas: HTMLCanvasElement) => {
      const pixels = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data;
      let red = 0;
      for (let i = 0; i < (pixels?.length ?? 0); i += 4)
        if ((pixels?.[i] ?? 0) > 150 && (pixels?.[i + 2] ?? 255) < 80) red += 1;
      return red;
    });
    assert.ok(marked > 30, `${marked} pixels`);
    await page.close();
  });

  test("nothing serious from axe: light, dark, unfolded, on a phone; nothing scrolls sideways", async () => {
    const { page, complaints } = await open();
    await page.evaluate(() => {
      for (const details of document.querySelectorAll("details")) details.open = true;
    });
    assert.deepEqual(await seriousFindings(page), []);
    await page.screenshot({ path: file("live-light.png"), fullPage: true });
    await page.emulateMedia({ colorScheme: "dark" });
    assert.deepEqual(await seriousFindings(page, ["color-contrast"]), []);
    await page.screenshot({ path: file("live-dark.png"), fullPage: true });
    await page.setViewportSize(PHONE);
    assert.ok((await tooWide(page)) <= 0, "scrolls sideways");
    assert.deepEqual(await seriousFindings(page), []);
    await page.screenshot({ path: file("live-phone.png"), fullPage: true });
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("when the server goes the page says so and shows nothing as now; when it is back it continues", async () => {
    const { page } = await open();
    const port = Number(new URL(url).port);
    await node.eval("[application:stop(A) || A <- [fairnif_watch_console, fairnif_watch]]");
    await page.waitForSelector("#connection.lost", PATIENCE);
    assert.match(await connection(page), /Connection lost at \d\d:\d\d:\d\d/);
    assert.match(await page.title(), /^not connected/);
    await page.waitForSelector(".nodes tr.stale", PATIENCE);
    assert.equal(await page.locator(".nodes tbody tr:not(.stale)").count(), 0);
    for (const now of await page.locator(".strips .now").allInnerTexts())
      if (now !== "") assert.equal(now, "not known");
    assert.equal((await page.locator(".nodes tbody td").last().innerText()) === "now", false);
    assert.deepEqual(await seriousFindings(page), []);
    await page.screenshot({ path: file("live-lost.png"), fullPage: true });
    url = await startWatch(node, port);
    await live(page);
    assert.match(await connection(page), /Live/);
    await page.close();
  });

  test("a server that falls silent, its connections open, is lost too", async () => {
    const { page } = await open();
    node.signal("SIGSTOP");
    try {
      await page.waitForSelector("#connection.lost", PATIENCE);
      assert.match(await connection(page), /fallen silent|does not answer/);
    } finally {
      node.signal("SIGCONT");
    }
    await live(page);
    await page.close();
  });

  test("a connection that breaks is made again, and what came meanwhile is there", async () => {
    const { page } = await open();
    await node.eval(`[exit(P, shutdown) || P <- processes(),
      {dictionary, D} <- [process_info(P, dictionary)],
      {'$initial_call', {httpd_request_handler, init, 1}} <- D]`);
    const blocked = untilNamed(page, 200);
    await page.waitForSelector("#connection.lost", PATIENCE);
    await live(page);
    await blocked;
    await page.close();
  });

  test("the keyboard reaches everything: skip link, theme, stacks", async () => {
    const { page } = await open();
    await firstKeys(page);
    if ((await page.locator(".finding").count()) === 0) await untilNamed(page, 300);
    // The element, since what is first may be another soon.
    const details = await page.locator(".finding details:not([hidden])").first().elementHandle();
    assert.ok(details);
    await (await details.$("summary"))?.focus();
    await page.keyboard.press("Enter");
    // What is unfolded and has the focus keeps both while views come.
    await page.waitForTimeout(2500);
    assert.ok(await details.evaluate((d) => d.matches("[open]")));
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), "SUMMARY");
    await page.close();
  });

  test("what a node sends is text, never markup nor script", async () => {
    const text = `<<${JSON.stringify(HOSTILE)}/utf8>>`;
    const answer = await node.eval(`begin
      T = ${text}, At = erlang:system_time(microsecond),
      V = (fairnif_watch:view())#{blind := [T], findings := [], top := [#{function => {T, T}, label => T,
          samples => 1, share => 1.0, ns_per_s => 5}], detectors := [#{name => T, verdict => warn,
          sentence => T, looks_for => T, remedy => T}]},
      F = #{schema_version => 1, id => 1, node => node(), detector => scheduler_blocked, severity => error,
          at => At, since => At, duration_ms => 5.0, ongoing => false, subject => {scheduler, 1},
          sentence => T, stack => [#{address => 1, library => T, offset => 1, function_offset => none,
          symbol => T, symbol_offset => 0, in => library, nif => none, by => symtab}], remedy => T,
          culprit => #{kind => nif, name => T, mfa => none, pid => none, registered => T,
          current_function => T, library => T, symbol => T, offset => none, module => T, syscall => T},
          evidence => #{T => T}},
      Source = #{subscribe => fun(P) -> P ! {fairnif_watch, binary_to_atom(T), {view, V}},
          P ! {fairnif_watch, binary_to_atom(T), {finding, F}}, {ok, x} end, unsubscribe => fun(_) -> ok end},
      {ok, Pid} = fairnif_watch_web:start_link(#{source => Source}),
      binary_to_list(fairnif_watch_web:url(Pid))
    end`);
    const { page, complaints } = await open(JSON.parse(answer));
    await page.waitForSelector(".finding", PATIENCE);
    await page.evaluate(() => {
      for (const details of document.querySelectorAll("details")) details.open = true;
    });
    assert.ok((await page.locator(".finding").first().innerText()).includes("</script><img"));
    assert.ok((await page.locator(".nodes").innerText()).includes("</script><img"));
    assert.equal(await page.locator("img, main script").count(), 0);
    assert.notEqual(await page.title(), "taken");
    // Were it otherwise, the page's policy would still not run it.
    const ran = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "globalThis.ran = true";
      document.body.append(script);
      return "ran" in globalThis;
    });
    assert.equal(ran, false);
    assert.deepEqual(
      complaints.filter((c) => !c.includes("Content Security Policy")),
      [],
    );
    await page.close();
  });
});

describe("the live page of a cluster", { timeout: 3_600_000 }, () => {
  test("two nodes, watched from outside: each is shown, chosen, and reported when it is gone", async () => {
    const nodes = ["one", "two"].map((name) => new ErlangNode(`${name}${RUN}`));
    const names = await Promise.all(nodes.map(async (n) => JSON.parse(await n.eval(NAME))));
    for (const one of nodes) await one.eval("spinsleep:echo(loaded)");
    const watch = await Watch.start(...names);
    try {
      const { page, complaints } = await open(watch.url);
      await page.waitForFunction(
        () => document.querySelectorAll(".nodes tbody tr:not(.stale)").length === 2,
        null,
        PATIENCE,
      );
      const titles = () => page.locator("section h3").allInnerTexts();
      for (const name of names) assert.ok((await titles()).includes(name), `${name} has a part`);

      // What one of them does is not the other's.
      await untilNamed(page, 300, nodes[1]);
      const card = named(page);
      assert.match(await card.first().locator("h3").innerText(), new RegExp(`of ${names[1]}`));

      await page.locator(".nodes button", { hasText: names[0] }).click();
      await page.waitForFunction(() => !document.querySelector(".finding"), null, PATIENCE);
      assert.equal(await page.locator(".strips").count(), 2);
      assert.match(page.url(), new RegExp(`#.*${RUN}`));
      await page.reload();
      await live(page);
      assert.equal(await page.locator(".nodes button[aria-pressed=true]").innerText(), names[0]);
      await page.getByRole("button", { name: "All nodes" }).click();
      await card.first().waitFor(PATIENCE);
      assert.deepEqual(await seriousFindings(page), []);
      await page.screenshot({ path: file("live-two.png"), fullPage: true });
      await page.setViewportSize(PHONE);
      assert.ok((await tooWide(page)) <= 0, "scrolls sideways");
      await page.setViewportSize(WIDE);

      await nodes[0]?.stop();
      const row = page.locator(".nodes tr", { hasText: names[0] });
      await page.waitForFunction(
        (name) =>
          [...document.querySelectorAll(".nodes tr")].some(
            (tr) => tr.textContent?.includes(name) && /down|gone/.test(tr.textContent ?? ""),
          ),
        names[0],
        PATIENCE,
      );
      assert.match((await row.getAttribute("class")) ?? "", /stale/);
      assert.match(await page.locator(".nodes tr", { hasText: names[1] }).innerText(), /up/);
      assert.match(await connection(page), /Live/);
      assert.deepEqual(complaints, []);
      await page.close();
    } finally {
      await watch.stop();
      for (const one of nodes) await one.stop();
    }
  });
});
