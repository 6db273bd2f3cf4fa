// Real nodes for the tests of the live page: each an Erlang VM of its own, which evaluates what it is
// sent on its standard input.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const ROOT = resolve("..");
const SPINSLEEP = join(ROOT, "examples/_build/default/lib");

/** Reads an expression a line, and answers its value in a line. */
const LISTEN = `
  Answer = fun(Line) ->
    {ok, Tokens, _} = erl_scan:string(Line),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    {value, Value, _} = erl_eval:exprs(Exprs, []),
    Value
  end,
  Loop = fun Loop() ->
    case io:get_line("") of
      Line when is_list(Line) ->
        io:format("= ~0tp~n", [try Answer(Line) catch C:R -> {C, R} end]),
        Loop();
      _ -> halt()
    end
  end,
  io:setopts([{encoding, unicode}]),
  Loop().`;

const ebins = (lib: string): string[] =>
  existsSync(lib) ? readdirSync(lib).map((app) => join(lib, app, "ebin")) : [];

export class ErlangNode {
  readonly name: string;
  private readonly process: ChildProcess;
  private readonly waiting: ((line: string) => void)[] = [];

  constructor(name: string, args: readonly string[] = []) {
    this.name = name;
    const paths = [...ebins(join(ROOT, "_build/default/lib")), join(SPINSLEEP, "spinsleep/ebin")];
    this.process = spawn(
      "erl",
      // Two schedulers, so that there is always one that is not blocked.
      ["+S", "2:2", "-noshell", "-sname", name, "-pa", ...paths, ...args, "-eval", LISTEN],
      { stdio: ["pipe", "pipe", "inherit"] },
    );
    const output = this.process.stdout;
    if (!output) throw new Error("the node has no output");
    createInterface({ input: output }).on("line", (line) => {
      if (line.startsWith("= ")) this.waiting.shift()?.(line.slice(2));
      else process.stderr.write(`${name}: ${line}\n`);
    });
  }

  /** What the expression evaluates to, as Erlang writes it. */
  eval(expression: string): Promise<string> {
    const line = `${expression.replace(/\s+/g, " ")}.\n`;
    return new Promise((answer) => {
      this.waiting.push(answer);
      this.process.stdin?.write(line);
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await ended;
  }
}

/** `bin/fairnif watch NODE... --http`, its page at any free port. */
export class Watch {
  private constructor(
    private readonly process: ChildProcess,
    readonly url: string,
  ) {}

  static async start(...nodes: string[]): Promise<Watch> {
    const command = join(ROOT, "bin/fairnif");
    const child = spawn(command, ["watch", ...nodes, "--http", "127.0.0.1:0"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const said: string[] = [];
    const url = await new Promise<string>((found, failed) => {
      const look = (line: string) => {
        said.push(line);
        const [address] = line.match(/http:\/\/\S+/) ?? [];
        if (address) found(address);
      };
      for (const stream of [child.stdout, child.stderr])
        if (stream) createInterface({ input: stream }).on("line", look);
      child.on("exit", () => failed(new Error(`fairnif watch: ${said.join("\n")}`)));
    });
    return new Watch(child, url);
  }

  /** As an operator ends it: the nodes are left as they were. */
  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, "exit");
    this.process.kill("SIGTERM");
    await ended;
  }
}
