// The page as a reader sees it: real reports in headless Chromium.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import {
  blank,
  firstKeys,
  launch,
  type Opened,
  PHONE,
  seriousFindings,
  tooWide,
} from "./chromium.ts";
import { experiments, fairnif, file, HOSTILE, LIVE, type Made, makeAll } from "./reports.ts";

let browser: Browser;
let made: Made[];
let impossible: Made[];

before(
  async () => {
    ({ made, impossible } = makeAll());
    browser = await launch();
  },
  { timeout: 3_600_000 },
);

after(async () => {
  await browser?.close();
});

/** It wants nothing from the network. */
async function open(html: string, how: Parameters<typeof blank>[2] = {}): Promise<Opened> {
  const { page, complaints } = await blank(browser, (url) => /^(file|data):/.test(url), how);
  await page.goto(pathToFileURL(html).href);
  await drawn(page);
  return { page, complaints };
}

/** All sections are there, and all plots that are not folded away. */
async function drawn(page: Page): Promise<void> {
  await page.waitForSelector("#status:not(.broken)", { state: "detached", timeout: 120_000 });
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".plot")].every(
      (p) => p.firstChild || p.closest("details:not([open])"),
    ),
  );
}

/** What is wrong with the figures; nothing is. */
const figureFaults = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll("figure")].flatMap((f) => {
      const title = f.querySelector("h4")?.textContent ?? "without title";
      const plot = f.querySelector<HTMLElement>(".plot");
      const svg = plot?.querySelector("svg[role=img]");
      const faults: string[] = [];
      if (!f.querySelector("table tbody tr")) faults.push(`${title}: no numbers in a table`);
      if (plot && plot.clientWidth > 0 && !svg?.getAttribute("aria-label"))
        faults.push(`${title}: no plot with a name`);
      if (svg && !/NaN|undefined/.test(svg.outerHTML) === false) faults.push(`${title}: NaN`);
      const texts = [...(svg?.querySelectorAll("text") ?? [])].map((e) => ({
        text: e.textContent,
        box: e.getBoundingClientRect(),
      }));
      for (const [i, one] of texts.entries())
        for (const other of texts.slice(0, i)) {
          const [a, b] = [one.box, other.box];
          const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (wide > 2 && high > a.height / 3)
            faults.push(`${title}: "${one.text}" and "${other.text}" are in one place`);
        }
      return faults;
    }),
  );

async function fold(page: Page, open: boolean): Promise<void> {
  await page.evaluate((value) => {
    for (const details of document.querySelectorAll("details")) details.open = value;
  }, open);
  await drawn(page);
}

/** As it opens, with all unfolded, in the dark, on a phone. */
async function shows(made: Made): Promise<void> {
  const { page, complaints } = await open(made.html);
  const picture = async (how: string) => {
    if (LIVE) await page.screenshot({ path: file(`${made.name}-${how}.png`), fullPage: true });
  };
  assert.equal(await page.locator(".broken").count(), 0);
  // Of what always fails nothing is measured.
  if (made.name !== "check-fails")
    assert.ok((await page.locator("figure svg[role=img], .heatmap").count()) > 0, "no plot");
  await picture("light");

  await fold(page, true);
  assert.deepEqual(await figureFaults(page), []);
  assert.deepEqual(await seriousFindings(page), []);
  await picture("unfolded");

  await page.emulateMedia({ colorScheme: "dark" });
  assert.deepEqual(await seriousFindings(page, ["color-contrast"]), []);
  await fold(page, false);
  await picture("dark");

  await page.setViewportSize(PHONE);
  await drawn(page);
  assert.ok((await tooWide(page)) <= 0, "scrolls sideways");
  await picture("phone");
  assert.deepEqual(complaints, []);
  await page.close();
}

const named = (name: string): Made => {
  const found = made.find((m) => m.name === name);
  assert.ok(found, `no report ${name}`);
  return found;
};

const WORDS: Record<number, string> = {
  0: "Well-behaved",
  1: "Not well-behaved",
  3: "Unsure",
};
const MARKS: Record<string, string> = {
  pass: "ok",
  warn: "warn",
  fail: "FAIL",
  unsure: "unsure",
  waived: "waived",
};

async function saysTheVerdict(made: Made): Promise<void> {
  const { result } = JSON.parse(readFileSync(made.json, "utf8"));
  const { page } = await open(made.html);
  assert.match(
    await page.locator(".answer .word").innerText(),
    new RegExp(`${WORDS[result.exit]}$`),
  );
  const verdicts = result.subjects.flatMap(
    (s: { verdicts: { status: string; sentence: string }[] }) => s.verdicts,
  );
  const cards = await page.locator(".card").allInnerTexts();
  assert.equal(cards.length, verdicts.length);
  for (const [i, { status, sentence }] of verdicts.entries()) {
    assert.ok(cards[i]?.includes(`${MARKS[status]}`), `${cards[i]} says ${status}`);
    // As a browser folds white space.
    const folded = sentence.replace(/\s+/g, " ").trim();
    assert.ok(cards[i]?.replace(/\s+/g, " ").includes(folded), `${cards[i]} has ${folded}`);
  }
  await page.close();
}

describe("the report page", { timeout: 3_600_000 }, () => {
  test("every report is drawn: no error, no request, no serious finding of axe; dark, on a phone", async (t) => {
    for (const one of made) await t.test(one.name, () => shows(one));
    for (const { name, said } of impossible) t.diagnostic(`${name}: not on this machine: ${said}`);
  });

  test("a check's verdict, cards and sentences are those of its JSON", async () => {
    for (const one of made.filter((m) => m.name.startsWith("check"))) await saysTheVerdict(one);
  });

  test("every experiment but those this machine cannot do went well, has its page, and says what to see", async () => {
    for (const name of experiments()) {
      if (impossible.some((m) => m.name === name)) continue;
      const { json, html, status, said } = named(name);
      const report = JSON.parse(readFileSync(json, "utf8"));
      assert.equal(status, 0, `${name}: ${said.match(/^Failed: .*$/gm)?.join("; ") ?? said}`);
      assert.deepEqual(
        [report.schema_version, report.experiment, report.result.ok],
        [1, name, true],
        name,
      );
      const { page } = await open(html);
      assert.match(await page.locator("h1").innerText(), new RegExp(`${name}$`));
      assert.ok(
        (await page.locator(".answer").innerText()).length > 60,
        `${name} has no conclusion`,
      );
      await page.close();
    }
  });

  test("what users typed is text, never markup nor script", async () => {
    const { html } = named("check-fails");
    const source = readFileSync(html, "utf8");
    assert.ok(!source.includes("<img src=x"), "markup of the report stands in the file");
    const { page, complaints } = await open(html);
    assert.ok((await page.locator(".answer .expression").innerText()).includes("</script><img"));
    assert.equal(await page.locator("img, main script").count(), 0);
    assert.notEqual(await page.title(), "taken");
    assert.deepEqual(complaints, []);
    await page.close();
    assert.ok(HOSTILE.includes("</script>"));
  });

  test("two files are two series, each named", async () => {
    const html = file("two.html");
    const [a, b] = [named("check"), named("check-again")];
    assert.equal(fairnif("report", a.json, b.json, "--html", html).status, 0);
    const { page, complaints } = await open(html);
    assert.equal(await page.locator(".answer").count(), 2);
    const legend = await page.locator("figure .legend").first().innerText();
    for (const label of [
      "check: erlang:md5(Bin)",
      "check: erlang:crc32(Bin)",
      "check-again: erlang:md5(Bin)",
    ])
      assert.ok(legend.includes(label), `${legend} has ${label}`);
    assert.deepEqual(await figureFaults(page), []);
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(complaints, []);
    await page.screenshot({ path: file("two-light.png"), fullPage: true });
    await page.close();
  });

  test("two runs of every experiment are compared in the same plots", async () => {
    for (const { name, json } of made.filter((m) => !m.name.startsWith("check"))) {
      const html = file(`two-${name}.html`);
      // The same file twice: two paths tell them apart.
      assert.equal(
        fairnif("report", json, json.replace("/page/", "/page/./"), "--html", html).status,
        0,
      );
      const { page, complaints } = await open(html);
      await fold(page, true);
      assert.equal(await page.locator(".broken").count(), 0, name);
      assert.deepEqual(await figureFaults(page), [], name);
      assert.deepEqual(complaints, [], name);
      await page.close();
    }
  });

  test("an experiment that the page does not know is shown as the terminal shows it", async () => {
    const json = file("unknown.json");
    const report = JSON.parse(readFileSync(named("share").json, "utf8"));
    writeFileSync(json, JSON.stringify({ ...report, experiment: "tomorrow" }));
    assert.equal(fairnif("report", json, "--html", file("unknown.html")).status, 0);
    const { page, complaints } = await open(file("unknown.html"));
    assert.match(await page.locator("h1").innerText(), /tomorrow/);
    assert.match(await page.locator("main").innerText(), /sliced by hand/);
    assert.ok((await page.locator("table tbody tr").count()) > 5);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  test("a section that cannot read its data says so, and the others stay", async () => {
    const json = file("odd.json");
    const report = JSON.parse(readFileSync(named("check").json, "utf8"));
    report.result.subjects[0].sizes[0].slices = { normal_samples: "none" };
    writeFileSync(json, JSON.stringify(report));
    fairnif("report", json, "--html", file("odd.html"));
    const { page } = await open(file("odd.html"));
    assert.ok((await page.locator("section .broken").count()) > 0);
    assert.ok((await page.locator(".card").count()) > 0);
    await page.close();
  });

  test("a report of another version, and none at all, are reported", async () => {
    const html = readFileSync(named("check").html, "utf8");
    const cases: [string, string, RegExp][] = [
      [
        "version",
        html.replace('"schema_version":1', '"schema_version":9'),
        /reads version 1 .* has 9/,
      ],
      ["none", html.replace('class="report"', 'class="other"'), /there is no report in it/],
      ["cut", html.replace('"schema_version":1,', '"schema_version":1,,'), /can't be shown/],
    ];
    for (const [name, text, message] of cases) {
      writeFileSync(file(`told-${name}.html`), text);
      const page = await browser.newPage();
      await page.goto(pathToFileURL(file(`told-${name}.html`)).href);
      await page.waitForSelector("#status.broken");
      assert.match(await page.locator("#status").innerText(), message);
      await page.close();
    }
  });

  test("the keyboard reaches everything: skip link, theme, numbers", async () => {
    const { page } = await open(named("check").html);
    await firstKeys(page);
    await page.locator("summary").first().focus();
    await page.keyboard.press("Enter");
    assert.ok(
      await page
        .locator("details")
        .first()
        .evaluate((d) => (d as HTMLDetailsElement).open),
    );
    await page.close();
  });
});
