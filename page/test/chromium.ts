// Headless Chromium, and what every page is asked.
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
