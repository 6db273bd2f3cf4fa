// Headless Chromium, and what every page is asked.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const WIDE = { width: 1000, height: 900 };
export const PHONE = { width: 360, height: 780 };

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string }[];
}

interface Axe {
  run(what: Document, options: object): Promise<{ violations: Violation[] }>;
}

export const launch = (): Promise<Browser> =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // Chromium has no sandbox for root, as which CI runs.
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });

export interface Opened {
  page: Page;
  /** Errors of the page and of its console, and requests for what it is not to want. */
  complaints: string[];
}

/** A page that is not loaded yet; of which addresses is it to want something? */
export async function blank(
  browser: Browser,
  wanted: (url: string) => boolean,
  how: { viewport?: typeof WIDE; colorScheme?: "light" | "dark" } = {},
): Promise<Opened> {
  const page = await browser.newPage({ viewport: WIDE, ...how });
  const complaints: string[] = [];
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") complaints.push(`console: ${m.text()}`);
  });
  page.on("pageerror", (e) => complaints.push(`error: ${e.message}`));
  page.on("request", (r) => {
    if (!wanted(r.url())) complaints.push(`request: ${r.url()}`);
  });
  return { page, complaints };
}

/** The first keys: to the skip link, to the button for light and dark, and press it. */
export async function firstKeys(page: Page): Promise<void> {
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.className), "skip");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "theme");
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.keyboard.press("Enter");
  assert.notEqual(await paper(), light);
}

/** Of axe; all its rules, or only these. */
export async function seriousFindings(page: Page, rules: string[] = []): Promise<string[]> {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async (values) => {
    const { axe } = globalThis as unknown as { axe: Axe };
    const options = values.length > 0 ? { runOnly: { type: "rule", values } } : {};
    return (await axe.run(document, options)).violations;
  }, rules);
  return violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 200)).join(" | ")}`);
}

/** Pixels by which the page scrolls sideways. */
export const tooWide = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
