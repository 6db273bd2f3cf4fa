// The report page: reads the reports that stand in the page as JSON, and draws them, a section at a
// time, saying how far it is: a report of 50 MB takes a while.
import "./style.css";
import { append, h, need } from "./dom.ts";
import type { Source } from "./model.ts";
import { grouped, section, sectionsOf } from "./report.ts";
import { theme } from "./theme.ts";

/** What fairnif writes. */
const SCHEMA_VERSION = 1;

/** Lets the browser show what was drawn so far. */
const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 0);
  });

function parse(text: string): Source {
  const source = JSON.parse(text) as Source;
  if (source.report?.schema_version !== SCHEMA_VERSION)
    throw new Error(
      `this page reads version ${SCHEMA_VERSION} of the JSON, and the report has ${source.report?.schema_version}`,
    );
  return source;
}

async function sourcesOf(status: Element): Promise<Source[]> {
  const sources: Source[] = [];
  for (const script of document.querySelectorAll("script.report")) {
    const text = script.textContent ?? "";
    if (text.length > 5e6) status.textContent = `Reading ${Math.round(text.length / 1e6)} MB.`;
    await pause();
    sources.push(parse(text));
    // The text is not needed twice.
    script.remove();
  }
  if (sources.length === 0) throw new Error("there is no report in it; `fairnif` puts one there");
  return sources;
}

async function show(page: Element, status: Element): Promise<void> {
  const groups = grouped(await sourcesOf(status));
  const names = groups.map((g) => g.kind);
  document.title = `fairnif: ${names.join(", ")}`;
  append(page, [h("h1", {}, heading(names, groups.flatMap((g) => g.sources).length))]);
  const all = groups.flatMap((g) => sectionsOf(g.kind).map((s) => ({ s, g })));
  for (const [i, { s, g }] of all.entries()) {
    status.textContent = `Drawing ${i + 1} of ${all.length}: ${s.title}.`;
    await pause();
    append(page, [section(s, g.sources)]);
  }
  status.remove();
}

const heading = (kinds: string[], reports: number): string =>
  `${kinds.map((kind) => (kind === "check" ? "Check" : `Experiment ${kind}`)).join(", ")}${
    reports > kinds.length ? ": two compared" : ""
  }`;

const status = need("status");
theme(need("theme"));
show(need("page"), status).catch((error: unknown) => {
  status.className = "broken";
  status.setAttribute("role", "alert");
  status.textContent = `The report can't be shown: ${error instanceof Error ? error.message : error}.`;
});
