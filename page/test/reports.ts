// Real reports for the tests: every experiment that there is, in its quick form, and checks. With LIVE
// in the environment bin/fairnif runs them here and now, and pictures of them are kept; else the figures
// are those of test/recorded, which are such a run's. REPORTS names the experiments that are shown; all,
// where it names none. The reports are kept in _build/page.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve("..");
export const OUT = join(ROOT, "_build/page");
const RECORDED = resolve("test/recorded");
export const LIVE = Boolean(process.env.LIVE);
const REPORTS = process.env.REPORTS?.split(" ");

/** What cannot be measured on this machine, or needs what is not here, says so with this. */
const CANNOT_SAY = 3;

export interface Made {
  name: string;
  json: string;
  html: string;
  /** Exit status of the command. */
  status: number;
  /** All that it wrote: its table names what failed, its standard error why there is no report. */
  said: string;
}

export const file = (name: string): string => join(OUT, name);

export function fairnif(...args: string[]): { status: number; out: string; err: string } {
  const run = spawnSync(join(ROOT, "bin/fairnif"), args, {
    encoding: "utf8",
    timeout: 300_000,
    maxBuffer: 1 << 28,
  });
  if (run.error) throw run.error;
  return { status: run.status ?? -1, out: run.stdout, err: run.stderr };
}

function make(name: string, args: string[]): Made {
  const [json, html] = [file(`${name}.json`), file(`${name}.html`)];
  for (const path of [json, html]) rmSync(path, { force: true });
  if (!LIVE) copyFileSync(join(RECORDED, `${name}.json`), json);
  const { status, out, err } = LIVE
    ? fairnif(...args, "--json", json, "--html", html)
    : fairnif("report", json, "--html", html);
  return { name, json, html, status, said: out + err };
}

const CHECK = ["--time", "100ms", "--size"];
/** Text that would be markup, a script's end, or the end of a line in a script. */
export const HOSTILE = `</script><img src=x onerror="document.title='taken'"><!--\u2028& é`;

/** The checks: one that is judged by its figures, beside another; one that always fails. */
const CHECKS: [string, string[]][] = [
  ["check", ["check", "erlang:md5(Bin)", "--against", "erlang:crc32(Bin)", ...CHECK, "1k,64k"]],
  ["check-again", ["check", "erlang:md5(Bin)", ...CHECK, "1k"]],
  ["check-fails", ["check", `error({oops, <<${JSON.stringify(HOSTILE)}/utf8>>})`, ...CHECK, "1k"]],
];

export const experiments = (): string[] => {
  const { status, out, err } = fairnif("experiment");
  if (status !== 0) throw new Error(`fairnif experiment: ${err}`);
  return out
    .split("\n")
    .map((line) => line.split(" ")[0] ?? "")
    .filter((name) => name !== "" && (REPORTS?.includes(name) ?? true));
};

/** Makes them all; an experiment that this machine cannot do has no files. */
export function makeAll(): { made: Made[]; impossible: Made[] } {
  mkdirSync(OUT, { recursive: true });
  const all = [
    ...CHECKS.map(([name, args]) => make(name, args)),
    ...experiments().map((name) => make(name, ["experiment", name, "--quick"])),
  ];
  const missing = all.filter((m) => !existsSync(m.html));
  const broken = missing.filter((m) => m.status !== CANNOT_SAY);
  if (broken.length > 0) throw new Error(broken.map((m) => `${m.name}: ${m.said}`).join("\n"));
  return { made: all.filter((m) => existsSync(m.html)), impossible: missing };
}
