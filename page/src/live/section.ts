// What a part of the live page is: an element that is made once and then kept up to date.
import type { NodeState } from "./store.ts";

/** What to show, now. */
export interface Shown {
  /** In the order of their names. */
  nodes: readonly NodeState[];
  /** Are there more nodes than one? Then each thing says whose it is. */
  several: boolean;
  connected: boolean;
  /** Milliseconds of this page (performance.now). */
  now: number;
}

export interface LiveSection {
  element: HTMLElement;
  update: (shown: Shown) => void;
}
