"""`ltds.check`: look at a folder of images, a list of them or a dataset, and say what is wrong and how to start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import DataError
from ltds.core.progress import SILENT, Progress
from ltds.core.text import is_utf8, printable
from ltds.data.datasets.opening import raw_images
from ltds.data.datasets.raw import open_or_preview
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.planning.check.duplicates import near_duplicates
from ltds.planning.check.features import network_features, probe_rows
from ltds.planning.check.looking import EXTREME, TINY, ImageLooks, look_at
from ltds.planning.check.missing import missing_images
from ltds.planning.check.names import spelling_variants
from ltds.planning.check.probe import DomainProbe, probe_distances, probe_domains
from ltds.planning.check.readable import without_unreadable
from ltds.planning.check.report import Across, DataCheck, DomainEvidence, DuplicatePair
from ltds.planning.check.words import findings, verdict
from ltds.planning.choose import choose_method
from ltds.planning.class_texts import FoundEmbeddings, find_embeddings
from ltds.planning.facts import dataset_facts, facts_of_trained_domains, hardest_task, test_only_domains
from ltds.planning.feasible import way_to_train
from ltds.planning.network import pretrained_is_installed
from ltds.planning.plan import is_planned

MOST_IMAGES = 20_000  # of a larger dataset, this many are looked at


def check(data: str | Path | Manifest, *, progress: Progress = SILENT) -> DataCheck:
    """Look at images before training on them; nothing is written.

        found = ltds.check("photos")
        print(found.verdict, found.problems)

    Args:
        data: A folder of images sorted as domain/class/*, a list of images (.csv), the folder of a dataset, "bestiary",
            or a Manifest.
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
    """
    source = "a manifest" if isinstance(data, Manifest) else str(data)
    raw = raw_images(data)
    whole = _opened(data, progress)
    missing = missing_images(whole, raw)
    looks = _looks(whole, source, progress)
    not_utf8 = _not_utf8(whole)
    unreadable = {whole.paths[row]: why for row, why in looks.unreadable.items()}
    manifest, looks = without_unreadable(whole, raw, looks)
    found = DataCheck(
        name=manifest.name,
        source=source,
        classes=manifest.classes,
        domains=manifest.domains,
        counts=_counts(manifest),
        splits={split: len(manifest.rows(split)) for split in SPLITS},
        unreadable=unreadable,
        missing=missing,
        not_utf8=not_utf8,
        unreadable_classes=tuple(name for name in whole.classes if name not in manifest.classes),
        unreadable_domains=tuple(name for name in whole.domains if name not in manifest.domains),
        class_variants=tuple(map(tuple, spelling_variants(manifest.classes))),
        domain_variants=tuple(map(tuple, spelling_variants(manifest.domains))),
        evidence=tuple(_evidence(manifest)),
        notes=tuple(whole.provenance.get("notes", ())),
        test_only=test_only_domains(manifest),
        is_built=raw is None,
        **_compared(manifest, looks, progress),
        **_recommended(manifest, trainable=not not_utf8 and not missing and (raw is not None or not unreadable)),
        **_seen(manifest, looks),
    )
    found = replace(found, findings=tuple(findings(found)))
    return replace(found, verdict=tuple(verdict(found)))


class _SeenFields(TypedDict):
    """What looking at single images gives."""

    looked_at: int
    shorter_side: int
    tiny: tuple[str, ...]
    extreme: tuple[str, ...]
    grey: int
    narrow: dict[str, int]
    duplicates: tuple[DuplicatePair, ...]


class _ComparedFields(TypedDict):
    """What comparing domains gives."""

    distances: tuple[tuple[float | None, ...], ...]
    probes: tuple[DomainProbe, ...]
    probed_on: str


class _RecommendedFields(TypedDict):
    """How to start."""

    method: str
    method_reason: str
    training: dict[str, str] | None


def _looks(whole: Manifest, source: str, progress: Progress) -> ImageLooks:
    """What the images look like, all of them or a sample; an error if none can be read."""
    rows = list(range(len(whole)))
    if len(rows) > MOST_IMAGES:
        rows = probe_rows(rows, (whole.labels * len(whole.domains) + whole.domain_ids).tolist(), MOST_IMAGES)
    looks = look_at([whole.root / whole.paths[row] for row in rows], rows, progress)
    if not looks.images:
        raise DataError(
            f"Expected '{source}' to hold images that can be read, but got {len(rows)} that cannot: "
            f"{next(iter(looks.unreadable.values()))}. Copy them again from their source."
        )
    return looks


def _not_utf8(manifest: Manifest) -> tuple[str, ...]:
    """The names with other bytes, which a build refuses."""
    names = chain([manifest.name], manifest.classes, manifest.domains, manifest.paths)
    return tuple(printable(name) for name in names if not is_utf8(name))


def _seen(manifest: Manifest, looks: ImageLooks) -> _SeenFields:
    sides = [(manifest.paths[r], min(i.width, i.height), max(i.width, i.height)) for r, i in looks.images.items()]
    return {
        "looked_at": len(looks.images),
        "shorter_side": int(np.median([shorter for _, shorter, _ in sides])),
        "tiny": tuple(path for path, shorter, _ in sides if shorter < TINY),
        "extreme": tuple(path for path, shorter, longer in sides if longer > EXTREME * shorter),
        "grey": sum(image.grey for image in looks.images.values()),
        "narrow": {manifest.paths[r]: i.narrow for r, i in looks.images.items() if i.narrow is not None},
        "duplicates": tuple(_duplicates(manifest, looks)),
    }


def _compared(manifest: Manifest, looks: ImageLooks, progress: Progress) -> _ComparedFields:
    features, rows, kind = _features(manifest, looks, progress)
    labels, domains = manifest.labels[rows], manifest.domain_ids[rows]
    return {
        "distances": _distances(features, labels, domains, len(manifest.domains)),
        "probes": _probes(features, labels, domains, manifest.domains),
        "probed_on": kind,
    }


def _recommended(manifest: Manifest, *, trainable: bool) -> _RecommendedFields:
    """`trainable`: training would not stop at unreadable images or names."""
    training = way_to_train(manifest)
    method, reason = _method(manifest, training)
    command = _command(manifest, method, training) if trainable else None
    return {"method": method, "method_reason": reason, "training": command}


def _command(manifest: Manifest, method: str, training: dict[str, str] | None) -> dict[str, str] | None:
    """What to say to train as recommended: with the method's name where training would not choose it by itself."""
    return training if training is None or is_planned(manifest) else {"method": method, **training}


def _opened(data: str | Path | Manifest, progress: Progress) -> Manifest:
    """The dataset, or the one that would be built; without any training images it is for evaluation only."""
    if isinstance(data, Manifest):
        return data
    manifest = open_or_preview(data, progress)
    return replace(manifest, evaluated_only=not len(manifest.rows("train")))  # refuses what only evaluation allows


def _method(manifest: Manifest, training: dict[str, str] | None) -> tuple[str, str]:
    """The method to start with, and why; none without training images, or with one class only.

    It is the one that `training` uses: the runs of an estimate share the method of the one with the fewest images.
    """
    if not len(manifest.rows("train")) or len(manifest.classes) < 2:
        return "", ""
    facts, counted = facts_of_trained_domains(manifest), ""
    embeddings = _embeddings(manifest)
    if "estimate" in (training or {}):
        hardest = hardest_task(manifest, manifest.domains)
        fewer = dataset_facts(manifest, hardest)
        if choose_method(fewer, embeddings.source)[0] != choose_method(facts, embeddings.source)[0]:
            facts, counted = fewer, f" (counted without '{hardest}', which one of the runs holds out)"
    method, reason = choose_method(facts, embeddings.source)
    why = f": {embeddings.why}" if embeddings.why and facts.sources >= 2 else ""
    return method, f"{reason}{why}{counted}"


def _embeddings(manifest: Manifest) -> FoundEmbeddings:
    """The class embeddings that training would have: only a plan makes some."""
    if is_planned(manifest) or (manifest.root / "semantics").is_dir():
        return find_embeddings(manifest, make=False)
    return FoundEmbeddings("", why="the command 'ltds data embed' makes some")


def _counts(manifest: Manifest) -> tuple[tuple[int, ...], ...]:
    total = sum(manifest.counts(split) for split in SPLITS)
    return tuple(tuple(int(n) for n in row) for row in np.asarray(total))


def _features(
    manifest: Manifest, looks: ImageLooks, progress: Progress
) -> tuple[NDArray[np.float32], NDArray[np.int64], str]:
    """Features of some images for the probe, their rows, and in words what features they are."""
    readable = sorted(looks.images)
    pairs = manifest.labels * len(manifest.domains) + manifest.domain_ids
    if pretrained_is_installed():
        rows = probe_rows(readable, pairs[readable].tolist())
        features = network_features([manifest.root / manifest.paths[row] for row in rows], progress)
        return features, np.array(rows, np.int64), "features of a pretrained network"
    simple = np.stack([looks.images[row].features for row in readable])
    return simple, np.array(readable, np.int64), "colours and edges"


def _distances(
    features: NDArray[np.float32], labels: NDArray[np.int64], domains: NDArray[np.int64], count: int
) -> tuple[tuple[float | None, ...], ...]:
    table = probe_distances(features, labels, domains, count)
    return tuple(tuple(None if np.isnan(value) else round(float(value), 3) for value in row) for row in table)


def _probes(
    features: NDArray[np.float32], labels: NDArray[np.int64], domains: NDArray[np.int64], names: tuple[str, ...]
) -> tuple[DomainProbe, ...]:
    return tuple(probe_domains(features, labels, domains, names)) if len(names) > 1 else ()


def _duplicates(manifest: Manifest, looks: ImageLooks) -> Iterator[DuplicatePair]:
    trained = len(manifest.rows("train")) > 0
    for a, b in near_duplicates(looks.images):
        if manifest.paths[a] != manifest.paths[b]:  # a protocol that tests on training images says so itself
            yield DuplicatePair(manifest.paths[a], manifest.paths[b], tuple(_across(manifest, a, b, trained)))


def _across(manifest: Manifest, a: int, b: int, trained: bool) -> Iterator[Across]:
    """What two images that are nearly the same lie across; splits matter only where something is trained."""
    splits = {SPLITS[manifest.split_ids[row]] for row in (a, b)}
    if manifest.labels[a] != manifest.labels[b]:
        yield "classes"
    if splits == {"train", "test"}:
        yield "splits"
    if splits == {"val", "test"} and trained:
        yield "validation"
    if manifest.domain_ids[a] != manifest.domain_ids[b]:
        yield "domains"


def _evidence(manifest: Manifest) -> Iterator[DomainEvidence]:
    """What each domain would be measured on if it were held out; domains that cannot be are left out."""
    if len(manifest.domains) < 2:
        return
    for index, domain in enumerate(manifest.domains):
        try:
            task = manifest.task(domain)
        except DataError:
            continue
        rows = manifest.test_rows(domain)
        tested = manifest.labels[rows[manifest.domain_ids[rows] == index]]
        is_open = np.isin(tested, task.open_classes)
        names = tuple(task.classes[c] for c in np.unique(tested[is_open]))
        yield DomainEvidence(domain, int((~is_open).sum()), int(is_open.sum()), names)
