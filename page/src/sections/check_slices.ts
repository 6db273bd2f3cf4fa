// How long it kept a scheduler at a time: the slices, with the limit and the fair slice.
import type { Rule } from "../charts/common.ts";
import { histogram } from "../charts/histogram.ts";
import { figure } from "../figure.ts";
import { bytes, duration } from "../format.ts";
import { bySize, type Check, type Named, subjects } from "../model.ts";
import type { Section } from "../section.ts";
import { extent } from "../stats.ts";

/** Reductions of a process's turn. */
const TURN = 4000;

/** What a turn of ordinary Erlang takes here, ns; null where it was not measured. */
export function fairSlice(check: Check): [number, number] | null {
  const perMs = extent(Object.values(check.machine.erlang ?? {}).filter((r) => r > 0));
  return perMs ? [(TURN / perMs[1]) * 1e6, (TURN / perMs[0]) * 1e6] : null;
}

function rules(check: Check): Rule[] {
  const fair = fairSlice(check);
  const limit = check.options.limit_ns;
  return [
    ...(fair
      ? [
          {
            at: fair[0],
            to: fair[1],
            text: `fair slice: a turn of ordinary Erlang here, ${duration(fair[0])} to ${duration(fair[1])}`,
          },
        ]
      : []),
    { at: limit, text: `limit ${duration(limit)}` },
  ];
}

export const checkSlices: Section = {
  title: "Slices",
  show: (sources) => {
    const all = subjects(sources);
    const first = all[0];
    if (!first) return null;
    const kinds = [
      [
        "normal_samples",
        "Slices on normal schedulers",
        "While one lasts, nothing else runs on that scheduler. ",
      ],
      ["dirty_samples", "Slices on dirty schedulers", "These block no normal scheduler. "],
    ] as const;
    const figures = kinds
      .map(([key, title, about]) => ({ title, about, groups: groups(all, key) }))
      .filter(({ groups }) => groups.length > 0)
      .map(({ title, about, groups }) =>
        figure(
          histogram({
            title,
            about: `${about}How many slices were how long, by the size of Bin.`,
            groups,
            heading: "Bin",
            x: { label: "length of a slice", format: duration, log: true },
            rules: rules(first.check),
          }),
        ),
      );
    return figures.length > 0 ? figures : null;
  },
};

const groups = (all: Named[], key: "normal_samples" | "dirty_samples") =>
  bySize(all).flatMap(({ z, series }) => {
    const samples = z.slices?.[key] ?? [];
    return samples.length > 0 ? [{ label: bytes(z.size), series, samples }] : [];
  });
