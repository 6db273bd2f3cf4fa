// What happens when a caller is killed: how long its code continues, and what memory is lost.
import { histogram } from "../charts/histogram.ts";
import { lines } from "../charts/lines.ts";
import { figure } from "../figure.ts";
import { bytes, count, duration } from "../format.ts";
import { bySize, subjects } from "../model.ts";
import type { Section } from "../section.ts";

export const checkKills: Section = {
  title: "When killed",
  show: (sources) => {
    const all = subjects(sources);
    const sizes = bySize(all);
    const stops = sizes.filter(({ z }) => (z.kill?.stop_samples.length ?? 0) > 0);
    const leaks = sizes.filter(({ z }) => (z.leak?.memory.length ?? 0) > 0);
    const limit = all[0]?.check.thresholds.find((t) => t.property === "unkillable")?.limit;
    if (stops.length + leaks.length === 0) return null;
    return [
      stops.length > 0 &&
        figure(
          histogram({
            title: "From kill to stop",
            about:
              "How long the native code went on after its caller had been killed at a random moment.",
            heading: "Bin",
            groups: stops.map(({ z, series }) => ({
              label: bytes(z.size),
              series,
              samples: z.kill?.stop_samples ?? [],
            })),
            x: { label: "from kill to stop", format: duration, log: true },
            rules: limit ? [{ at: limit, text: `limit ${duration(limit)}` }] : [],
          }),
        ),
      leaks.length > 0 &&
        figure(
          lines({
            title: "Memory after kills",
            about:
              "What malloc has given out to native code (where it tells; else the resident size). Only steady growth is a leak.",
            lines: leaks.map(({ z, series }) => ({
              label: series ? `${series}, ${bytes(z.size)}` : bytes(z.size),
              points: (z.leak?.memory ?? []).map((m) => ({
                x: m.kills,
                y: m.native ?? m.resident,
              })),
            })),
            x: { label: "kills so far", format: count, least: [0, 1] },
            y: { label: "memory", format: bytes, least: [0, 1] },
            height: 200,
          }),
        ),
    ];
  },
};
