// What a section of the page is: a part with a title, made from one report or from two of a kind.
import type { Child } from "./dom.ts";
import type { Source } from "./model.ts";

export interface Section {
  title: string;
  /** Null where these reports have nothing for it. */
  show: (sources: readonly Source[]) => Child | null;
}
