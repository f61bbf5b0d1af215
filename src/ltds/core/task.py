"""Task: which domains are sources, what each of them holds, which classes are open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import DataError


@dataclass(frozen=True, eq=False)
class Task:
    """A leave-one-domain-out problem: K source domains, one held out, C classes.

    `counts` (K,C) are training images n_c^d of each source, in the order of `sources`.
    `held_out` is None where a model is trained on every domain. `trained_in_test`: test images of the sources that are
    training images too, of a dataset whose protocol wants it so (PACS-ODG).
    """

    name: str
    classes: tuple[str, ...]
    domains: tuple[str, ...]
    held_out: str | None
    counts: NDArray[np.int64]
    trained_in_test: int = 0

    def __post_init__(self) -> None:
        if self.counts.shape != (len(self.sources), len(self.classes)):
            raise DataError(
                f"Expected the counts of task '{self.name}' to have shape (sources, classes) = "
                f"({len(self.sources)}, {len(self.classes)}), but got {self.counts.shape}. "
                "Build the task with Manifest.task(held_out)."
            )

    @property
    def sources(self) -> tuple[str, ...]:
        """The domains to train on, in the manifest's order."""
        return tuple(d for d in self.domains if d != self.held_out)

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """(K,C): class c has training images in source d."""
        return self.counts > 0

    @cached_property
    def seen_in_domain(self) -> NDArray[np.bool_]:
        """(all domains, C): as `seen`, with a row of False for the held-out domain."""
        full = np.zeros((len(self.domains), len(self.classes)), dtype=np.bool_)
        full[[self.domains.index(s) for s in self.sources]] = self.seen
        return full

    @cached_property
    def class_counts(self) -> NDArray[np.int64]:
        """(C,): training images of each class over all sources, n_c."""
        pooled: NDArray[np.int64] = self.counts.sum(axis=0)
        return pooled

    @cached_property
    def open_classes(self) -> tuple[int, ...]:
        """The classes that no source domain trains on: O = Y minus Y^tr."""
        return tuple(int(c) for c in np.flatnonzero(self.class_counts == 0))

    @cached_property
    def known_classes(self) -> tuple[int, ...]:
        """The classes that some source domain trains on: Y^tr."""
        return tuple(int(c) for c in np.flatnonzero(self.class_counts))

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "classes": list(self.classes),
            "domains": list(self.domains),
            "held_out": self.held_out,
            "counts": self.counts.tolist(),
            "trained_in_test": self.trained_in_test,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Task:
        """The task that `to_dict` described; LookupError, TypeError, ValueError or OverflowError for anything else."""
        texts = [
            data["name"],
            *data["classes"],
            *data["domains"],
            *([] if data["held_out"] is None else [data["held_out"]]),
        ]
        if not all(isinstance(text, str) for text in texts) or not all(
            map(_is_list, (data["classes"], data["domains"]))
        ):
            raise TypeError("names that are not text")
        for kind in ("classes", "domains"):
            if len(set(data[kind])) < len(data[kind]):
                raise ValueError(f"{kind} with the same name")
        counts = np.asarray(data["counts"], dtype=np.int64).reshape(-1, len(data["classes"]))
        if (counts < 0).any():
            raise ValueError("counts below 0")
        return cls(
            name=data["name"],
            classes=tuple(data["classes"]),
            domains=tuple(data["domains"]),
            held_out=data["held_out"],
            counts=counts,
            trained_in_test=data.get("trained_in_test", 0),  # not in files from before there was one
        )


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)
