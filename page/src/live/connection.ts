// The stream of events from the server. Connects again by itself, for as long as the page is open,
// and says how it stands: a page that has heard nothing for some seconds is not connected, whatever
// the browser thinks.
import type { Events } from "./model.ts";

export type Link =
  | { state: "connecting" }
  | { state: "live" }
  | { state: "lost"; since: number; why: string };

interface Listener {
  event: <K extends keyof Events>(name: K, data: Events[K]) => void;
  link: (link: Link) => void;
}

const NAMES = ["state", "node", "status", "view", "finding", "gone"] as const;
/** The server says something at least every two seconds. */
const SILENCE_MS = 6000;
const AGAIN_MS = 1000;
const WHY: Record<number, string> = {
  401: "the server wants its token: open the address with ?token=... again",
  403: "the server refuses this address",
  503: "too many pages look at it already",
};

export class Connection {
  private source: EventSource | null = null;
  private last = "";
  private heard = 0;
  private live = false;
  private lostAt: number | null = null;
  private again: ReturnType<typeof setTimeout> | null = null;

  constructor(private readonly listener: Listener) {
    this.open();
    setInterval(() => this.look(), 500);
  }

  private open(): void {
    this.again = null;
    this.heard = performance.now();
    const source = new EventSource(`events?after=${encodeURIComponent(this.last)}`);
    this.source = source;
    source.addEventListener("open", () => this.hear(source));
    source.addEventListener("heartbeat", () => this.hear(source));
    source.addEventListener("error", () => this.lose("the server does not answer"));
    for (const name of NAMES)
      source.addEventListener(name, (event) => this.take(source, name, event));
  }

  private take(source: EventSource, name: (typeof NAMES)[number], event: MessageEvent): void {
    if (source !== this.source) return;
    this.hear(source);
    this.last = event.lastEventId;
    this.listener.event(name, JSON.parse(event.data));
  }

  private hear(source: EventSource): void {
    if (source !== this.source) return;
    this.heard = performance.now();
    if (!this.live) this.listener.link({ state: "live" });
    this.live = true;
    this.lostAt = null;
  }

  private look(): void {
    if (this.source && performance.now() - this.heard > SILENCE_MS)
      this.lose("the server has fallen silent");
  }

  /** The browser's own way to try again gives up at the first answer that is no stream. */
  private lose(why: string): void {
    this.source?.close();
    this.source = null;
    this.live = false;
    this.lostAt ??= Date.now();
    const since = this.lostAt;
    this.listener.link({ state: "lost", since, why });
    if (this.again) return;
    this.again = setTimeout(() => this.open(), AGAIN_MS);
    this.ask(since);
  }

  /** What the browser does not tell of a stream: the status of the answer. */
  private ask(since: number): void {
    const asked = new AbortController();
    fetch("events", { signal: asked.signal })
      .then(({ status }) => {
        asked.abort();
        const why = WHY[status];
        if (why && this.lostAt === since) this.listener.link({ state: "lost", since, why });
      })
      // No answer at all is what is said already.
      .catch(() => {});
  }
}
