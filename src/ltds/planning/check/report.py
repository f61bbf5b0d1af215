"""DataCheck: what was found, as data, and the findings and the verdict in plain words."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ltds.core.text import printable
from ltds.planning.check.probe import DomainProbe

FORMAT = 2  # 1: "across" of near-duplicates was one word
WRITER = "ltds data check"
KEYS = {"format", "source", "counts", "near_duplicates", "domain_distances", "probe"}  # before there was "written_by"
Across = Literal["classes", "splits", "validation", "domains"]


@dataclass(frozen=True)
class Finding:
    """A sentence about the data. A problem should be repaired before training; a caution should be known."""

    level: Literal["problem", "caution"]
    text: str


@dataclass(frozen=True)
class DomainEvidence:
    """What a run that holds out this domain would be measured on: images of known and of open classes."""

    domain: str
    known: int
    open: int
    open_classes: tuple[str, ...]

    @property
    def margin(self) -> float:
        """Half the width of the widest 95 % interval of the accuracy, in points."""
        return 98 / math.sqrt(self.known) if self.known else 100.0


@dataclass(frozen=True)
class DuplicatePair:
    """Two images that are nearly the same, and all that makes that matter.

    `across`: "splits" for training and test, "validation" for validation and test, two "domains", two "classes".
    """

    first: str
    second: str
    across: tuple[Across, ...]


@dataclass(frozen=True)
class DataCheck:
    """The outcome of a check. `counts` (D,C): images of each domain and class, in all splits.

    Numbers are without the `unreadable` images; `unreadable_classes` and `unreadable_domains` have no others.
    `missing`: paths of a list without a file, at which training would stop.
    `is_built`: it is a dataset, of which training leaves nothing out, not a folder or a list of images.
    `test_only`: domains without training images. `training`: arguments for the most informative training that these
    images allow; None if they allow none. `method`: the one to start with; "" without any training images. `narrow`:
    16-bit images that use a small part of their range, with their largest value. `not_utf8`: names that no manifest can
    hold.
    """

    name: str
    source: str
    classes: tuple[str, ...]
    domains: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    splits: dict[str, int]
    looked_at: int
    shorter_side: int
    unreadable: dict[str, str]
    tiny: tuple[str, ...]
    extreme: tuple[str, ...]
    grey: int
    narrow: dict[str, int]
    duplicates: tuple[DuplicatePair, ...]
    class_variants: tuple[tuple[str, ...], ...]
    domain_variants: tuple[tuple[str, ...], ...]
    evidence: tuple[DomainEvidence, ...]
    distances: tuple[tuple[float | None, ...], ...]
    probes: tuple[DomainProbe, ...]
    probed_on: str
    method: str
    method_reason: str
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    not_utf8: tuple[str, ...] = ()
    test_only: tuple[str, ...] = ()
    training: dict[str, str] | None = None
    unreadable_classes: tuple[str, ...] = ()
    unreadable_domains: tuple[str, ...] = ()
    is_built: bool = False
    findings: tuple[Finding, ...] = field(default=())
    verdict: tuple[str, ...] = field(default=())

    @property
    def images(self) -> int:
        return sum(map(sum, self.counts))

    @property
    def class_counts(self) -> dict[str, int]:
        """Images of each class, the largest first."""
        totals = [sum(row[c] for row in self.counts) for c in range(len(self.classes))]
        return dict(sorted(zip(self.classes, totals, strict=True), key=lambda item: -item[1]))

    @property
    def ratio(self) -> float:
        """Images of the largest class over those of the smallest."""
        sizes = list(self.class_counts.values())
        return sizes[0] / max(1, sizes[-1])

    @property
    def missing_pairs(self) -> list[tuple[str, str]]:
        """(domain, class) without an image."""
        return [
            (domain, name)
            for domain, row in zip(self.domains, self.counts, strict=True)
            for name, count in zip(self.classes, row, strict=True)
            if not count
        ]

    @property
    def single_domain_classes(self) -> dict[str, str]:
        """Classes that live in one domain only, with that domain; none where there is one domain."""
        if len(self.domains) < 2:
            return {}
        present = {
            name: [d for d, row in zip(self.domains, self.counts, strict=True) if row[c]]
            for c, name in enumerate(self.classes)
        }
        return {name: found[0] for name, found in present.items() if len(found) == 1}

    @property
    def problems(self) -> list[str]:
        """What should be repaired before training."""
        return [finding.text for finding in self.findings if finding.level == "problem"]

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON."""
        content: dict[str, Any] = _printable(self._content())
        return content

    def _content(self) -> dict[str, Any]:
        return {
            "written_by": WRITER,
            "format": FORMAT,
            "name": self.name,
            "source": self.source,
            "images": self.images,
            "classes": list(self.classes),
            "domains": list(self.domains),
            "counts": [list(row) for row in self.counts],
            "splits": self.splits,
            "ratio": round(self.ratio, 2),
            "missing_pairs": [list(pair) for pair in self.missing_pairs],
            "single_domain_classes": self.single_domain_classes,
            "looked_at": self.looked_at,
            "shorter_side": self.shorter_side,
            "unreadable": self.unreadable,
            "missing": list(self.missing),
            "not_utf8": list(self.not_utf8),
            "unreadable_classes": list(self.unreadable_classes),
            "unreadable_domains": list(self.unreadable_domains),
            "tiny": list(self.tiny),
            "extreme_aspect": list(self.extreme),
            "grey": self.grey,
            "narrow_16_bit": self.narrow,
            "near_duplicates": [
                {"first": d.first, "second": d.second, "across": list(d.across)} for d in self.duplicates
            ],
            "class_name_variants": [list(group) for group in self.class_variants],
            "domain_name_variants": [list(group) for group in self.domain_variants],
            "held_out": [
                {
                    "domain": e.domain,
                    "known_images": e.known,
                    "open_images": e.open,
                    "open_classes": list(e.open_classes),
                    "margin": round(e.margin, 1),
                }
                for e in self.evidence
            ],
            "domain_distances": [list(row) for row in self.distances],
            "probe": {
                "features": self.probed_on,
                "domains": [
                    {
                        "domain": p.domain,
                        "known": round(p.known, 4),
                        "unseen": round(p.unseen, 4),
                        "drop": round(p.drop, 4),
                        "images": p.images,
                    }
                    for p in self.probes
                ],
            },
            "findings": [{"level": f.level, "text": f.text} for f in self.findings],
            "verdict": list(self.verdict),
            "method": self.method,
            "notes": list(self.notes),
            "test_only_domains": list(self.test_only),
            "training": self.training,
        }


def is_stored_check(file: Path) -> bool:
    """Whether a file is the JSON of a check, of this version or of an earlier one."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and (content.get("written_by") == WRITER or content.keys() >= KEYS)


def _printable(value: Any) -> Any:
    """JSON values with names that every file can hold."""
    match value:
        case str():
            return printable(value)
        case dict():
            return {printable(name): _printable(part) for name, part in value.items()}
        case list():
            return [_printable(part) for part in value]
        case _:
            return value
