"""Accuracy in each domain: where it was held out, and where it was trained on."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ltds.evaluation.class_groups import known_mask
from ltds.reporting.dataset import Dataset
from ltds.reporting.result_table import TableCell
from ltds.reporting.run import Run
from ltds.reporting.sample_size import Sample, half_width


@dataclass(frozen=True)
class DomainRow:
    """One domain: its test images, and for each method the accuracy where it was never seen, and trained on."""

    domain: str
    images: int
    never_seen: tuple[TableCell, ...]
    trained_on: tuple[TableCell, ...]


def domain_rows(dataset: Dataset, labels: Sequence[str]) -> list[DomainRow]:
    """A row for each domain with test images; empty if no run recorded them."""
    rows = []
    for domain in dataset.domains:
        never = [_cell(domain, (run for run in dataset.rows[m] if run.task.held_out == domain)) for m in labels]
        trained = [_cell(domain, (run for run in dataset.rows[m] if run.task.held_out != domain)) for m in labels]
        counted = [cell.sample.images for cell in (*never, *trained) if cell.sample]
        if counted:
            rows.append(DomainRow(domain, max(counted), tuple(never), tuple(trained)))
    return rows


def source_accuracy(dataset: Dataset, label: str) -> float | None:
    """Mean accuracy in percent on the domains that a run was trained on, averaged over the runs that Acc-U is over.

    None if the test images of these domains include training images: then it says nothing.
    """
    of_runs = [_of_sources(run) for run in dataset.averaged(label) if not run.task.trained_in_test]
    known = [value for value in of_runs if value is not None]
    return statistics.fmean(known) if known else None


def _of_sources(run: Run) -> float | None:
    known = [value for value, _ in (_accuracy(run, domain) for domain in run.task.sources) if value is not None]
    return statistics.fmean(known) if known else None


def _cell(domain: str, runs: Iterable[Run]) -> TableCell:
    """Mean over runs, each held-out domain counted once; the spread over them would not be one over seeds."""
    known: dict[str, list[float]] = {}
    images: list[int] = []
    for run in runs:
        value, tested = _accuracy(run, domain)
        if value is not None:
            known.setdefault(run.held_out, []).append(value)
            images.append(tested)
    if not known:
        return TableCell(None, None, 0)
    mean, fewest = statistics.fmean(map(statistics.fmean, known.values())), min(images)
    return TableCell(mean, None, len(images), sample=Sample(fewest, half_width(mean, fewest)))


def _accuracy(run: Run, domain: str) -> tuple[float | None, int]:
    """Accuracy in percent over the test images of known classes in this domain, and their number."""
    if run.test_images is None or run.metrics.pairs is None:
        return None, 0
    place = run.task.domains.index(domain)
    known = known_mask(run.task)
    pairs = zip(run.metrics.pairs.accuracy[place], run.test_images[place].tolist(), known, strict=True)
    counted = [(share, images) for share, images, is_known in pairs if is_known and share is not None and images]
    total = sum(images for _, images in counted)
    return (100 * sum(share * images for share, images in counted) / total, total) if total else (None, 0)
