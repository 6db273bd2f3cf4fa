// latency: an echo through every way to reach code, beside the orders of magnitude that go around.
import { dots } from "../charts/dots.ts";
import { figure } from "../figure.ts";
import { bytes, count, duration, ofMicroseconds as ns } from "../format.ts";
import { rowsOf } from "../model.ts";
import type { Section } from "../section.ts";
import { unique } from "../stats.ts";

interface Row {
  form: string;
  title: string;
  isolation: string;
  bytes: number;
  published_us?: number | null;
  median_us?: number;
  p99_us?: number;
  count?: number;
  error?: string;
  left_out?: string;
}

const ISOLATION: Record<string, string> = {
  shared: "none: in the VM, which it takes along when it crashes",
  process: "a program of its own beside the VM",
  network: "may be on another machine as well",
};

export const latency: Section = {
  title: "There and back",
  show: (sources) => {
    const rows = rowsOf<Row>(sources);
    return unique(rows.map((r) => r.bytes)).map((size) => {
      const own = rows.filter((r) => r.bytes === size);
      const plot = dots({
        title: `An echo of ${bytes(size)}`,
        about:
          "The median and p99 of the way there and back, beside the order of magnitude that was published. In brackets how it is kept apart: as a process of its own, or so that it may be on another machine. All others are in the VM, which they take along when they crash.",
        heading: "form",
        rows: own.map((r) => ({
          label: r.isolation === "shared" ? r.title : `${r.title} (${r.isolation})`,
          series: r.series,
          points: { median: ns(r.median_us), p99: ns(r.p99_us), published: ns(r.published_us) },
          note: r.error ?? r.left_out,
        })),
        apart: ["published"],
        x: { label: "there and back", format: duration, log: true },
      });
      return figure({
        ...plot,
        table: {
          columns: [
            ...plot.table.columns,
            { title: "samples" },
            { title: "isolation", text: true },
          ],
          rows: plot.table.rows.map((cells, i) => [
            ...cells,
            count(own[i]?.count),
            ISOLATION[own[i]?.isolation ?? ""] ?? own[i]?.isolation,
          ]),
        },
      });
    });
  },
};
