// The detectors: of each node what each of them says. With several nodes those that say something.
import { h } from "../../dom.ts";
import { shown as show } from "../keyed.ts";
import type { Detector } from "../model.ts";
import type { LiveSection, Shown } from "../section.ts";
import { isLive } from "../store.ts";
import { FOUND, VERDICTS, wordOf } from "../words.ts";
import { changing } from "./tables.ts";

/** Nothing is ongoing, and something was. */
const hasFound = ({ verdict, found }: Detector): boolean => verdict === "ok" && found > 0;

export function detectors(): LiveSection {
  const table = changing("Detectors", ["Detector", "Verdict", "What", "Remedy", "Node"]);
  const none = h("p", { class: "note" }, "All detectors say ok.");
  const element = h("section", {}, h("h2", {}, "Detectors"), none, table.element);
  const update = ({ nodes, several, connected, now }: Shown) => {
    const lines = nodes.flatMap((node) =>
      (node.view?.detectors ?? [])
        .filter((detector) => !several || detector.verdict !== "ok" || hasFound(detector))
        .map((detector) => {
          const { name, verdict, sentence, looks_for, remedy } = detector;
          const { mark, word, tone } = hasFound(detector) ? FOUND : wordOf(VERDICTS, verdict);
          const what =
            verdict === "ok" && !hasFound(detector)
              ? `Nothing found. It looks for: ${looks_for}`
              : sentence;
          return {
            key: `${node.node} ${name}`,
            cells: [name, `${mark} ${word}`, what, remedy ?? "", node.node],
            row: isLive(node, connected, now) ? "" : "stale",
            tone: { cell: 1, tone },
          };
        }),
    );
    show(table.element, lines.length > 0);
    show(none, lines.length === 0 && nodes.some((node) => node.view));
    table.update(lines, several);
  };
  return { element, update };
}
