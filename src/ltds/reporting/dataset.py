"""Dataset: the runs that may be compared in one table, with one experiment per row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ltds.evaluation.arrays import IntArray
from ltds.reporting.run import Run

ImageCounts = dict[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)  # a key by its identity, so that what is computed of it can be kept
class Dataset:
    """Runs on the same images. `rows`: label of a method -> its runs, which differ only in seed and held-out domain.

    `counts`: source domain -> training images of each class, collected over the runs.
    """

    name: str
    classes: tuple[str, ...]
    domains: tuple[str, ...]
    counts: ImageCounts
    rows: Mapping[str, tuple[Run, ...]]

    @cached_property
    def held_out(self) -> tuple[str, ...]:
        """The held-out domains of all runs, in the order of the dataset; runs on all domains come last."""
        names = {run.task.held_out: run.held_out for runs in self.rows.values() for run in runs}
        return tuple(names[d] for d in (*self.domains, None) if d in names)

    @property
    def held_out_only(self) -> tuple[str, ...]:
        """As `held_out`, without runs that were trained on all domains: averages are over these."""
        return tuple(name for name in self.held_out if name in self.domains)

    def averaged(self, label: str) -> tuple[Run, ...]:
        """The runs that an average of this row is over: each held-out domain once for each seed that has all of them.

        Runs that were trained on all domains count only if there are no others.
        """
        needed = set(self.held_out_only or self.held_out)
        runs = [run for run in self.rows[label] if run.held_out in needed]
        done: dict[int, set[str]] = {}
        for run in runs:
            done.setdefault(run.seed, set()).add(run.held_out)
        return tuple(run for run in runs if done[run.seed] == needed)

    @property
    def has_average(self) -> bool:
        """Whether some row has a seed with every held-out domain."""
        return any(self.averaged(label) for label in self.rows)

    def comparable(self) -> Dataset:
        """The runs with those held-out domains that every row has: a mean over others would compare unlike tasks.

        All runs if every row has the same ones, or if there is no common one. Runs that were trained on all domains
        count only if there are no others; a row that has nothing else keeps them.
        """
        needed = set(self.held_out_only or self.held_out)
        per_row = [found for runs in self.rows.values() if (found := {run.held_out for run in runs} & needed)]
        common = set.intersection(*per_row) if per_row else set()
        if not common or all(domains == common for domains in per_row):
            return self
        kept = {
            label: tuple(run for run in runs if run.held_out in common) or runs for label, runs in self.rows.items()
        }
        return replace(self, rows=kept)

    def class_images(self) -> IntArray:
        """(known source domains, C): training images, in the order of `counts`."""
        return np.asarray(list(self.counts.values()), dtype=np.int64).reshape(-1, len(self.classes))
