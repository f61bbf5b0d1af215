"""Findings and verdict: what the numbers of a check mean, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ltds.core.text import count, few, printable
from ltds.data.decode import narrow_note
from ltds.evaluation.metrics import FEW_IMAGES
from ltds.planning.check.report import Across, DataCheck, DomainEvidence, Finding

STRONG, MODERATE = 0.15, 0.05  # drops of accuracy on an unseen domain
RARE = 20  # images of a class below which more of them are the first thing to collect


def findings(check: DataCheck) -> Iterator[Finding]:
    """Everything that is wrong or worth knowing, problems first."""
    yield from (Finding("problem", printable(text)) for text in _problems(check))
    yield from (Finding("caution", printable(text)) for text in _cautions(check))


def _problems(check: DataCheck) -> Iterator[str]:
    if check.missing:
        be, lines = ("is", "its line") if len(check.missing) == 1 else ("are", "their lines")
        yield (
            f"{count(len(check.missing), 'image')} of the list {be} missing, so training would stop: "
            f"{few(check.missing)}. Correct or delete {lines}"
        )
    missing = set(check.missing)
    damaged = [f"{path} ({why})" for path, why in check.unreadable.items() if path not in missing]
    if damaged:
        then = ", so training on this dataset would stop" if check.is_built else " and would be left out"
        yield f"{count(len(damaged), 'image')} cannot be read{then}: {few(damaged)}"
    for word, lost in (("class", check.unreadable_classes), ("domain", check.unreadable_domains)):
        if lost:
            have = "has" if len(lost) == 1 else "have"
            names = few([f"'{name}'" for name in lost])
            yield f"{count(len(lost), word)} {have} no image that can be read: {names}"
    if check.not_utf8:
        be = "is" if len(check.not_utf8) == 1 else "are"
        yield (
            f"{count(len(check.not_utf8), 'name')} of files and folders {be} not UTF-8, so no dataset can be "
            f"built: {few(check.not_utf8)}. Rename them, for example with the program convmv"
        )
    if not check.splits["train"]:
        yield "No image is for training, so nothing can be trained on this data. A trained model can be evaluated on it"
    elif len(check.classes) < 2:
        yield f"There is only one class ('{check.classes[0]}'), but two classes are needed: add images of another one"
    yield from _copies(check)
    for what, groups in (("classes", check.class_variants), ("domains", check.domain_variants)):
        for group in groups:
            names = " and ".join(f"'{name}'" for name in group)
            yield f"The {what} {names} differ in case, spacing or encoding only: rename them if they are the same"
    if len(check.test_only) > 1 and check.splits["train"]:
        yield (
            f"{len(check.test_only)} domains have no training images: {few(check.test_only)}. A run can hold out one "
            "of them only: give the others training images, or leave them out"
        )
    if check.splits["train"] and not check.splits["test"] and check.training is None:
        yield "No image is left for a test, so no model can be measured: add images"


def _copies(check: DataCheck) -> Iterator[str]:
    wordings: dict[Across, tuple[str, str, str]] = {
        "classes": ("carries", "carry", "two different classes, so one label is wrong"),
        "splits": ("lies", "lie", "in training and in test, so the test is too easy"),
        "validation": ("lies", "lie", "in validation and in test, so the test is a little too easy"),
        "domains": ("lies", "lie", "in two domains, so a held-out domain would not be new"),
    }
    for kind, (one, several, words) in wordings.items():
        pairs = [f"{d.first} = {d.second}" for d in check.duplicates if kind in d.across]
        if pairs:
            verb = one if len(pairs) == 1 else several
            yield f"{count(len(pairs), 'pair')} of near-identical images {verb} {words}: {few(pairs, 2)}"


def _cautions(check: DataCheck) -> Iterator[str]:
    if check.looked_at < check.images:
        yield (
            f"Only {check.looked_at:,} of {check.images:,} images were looked at, a sample of each class and domain: "
            "damaged images and copies among the others are not found"
        )
    narrow = narrow_note(check.narrow.values()) if check.narrow else None
    yield from (note for note in check.notes if note != narrow)
    if narrow is not None:
        yield f"{narrow}: {few(list(check.narrow))}"
    if check.splits["train"]:
        yield from _cautions_for_training(check)
    if check.tiny:
        yield f"{count(len(check.tiny), 'image')} smaller than 32 pixels: {few(check.tiny)}"
    if check.extreme:
        yield f"{count(len(check.extreme), 'image')} more than four times as long as wide: {few(check.extreme)}"
    if 0 < check.grey < check.looked_at:
        yield f"{check.grey} of {check.looked_at} images are grey only"
    weak = [e for e in check.evidence if e.known < FEW_IMAGES]
    if weak:
        names = few([f"{e.domain} ({e.known} images)" for e in weak])
        yield f"An accuracy on these held-out domains would mean nothing, with fewer than {FEW_IMAGES} images: {names}"
    opened = [e for e in check.evidence if 0 < e.open < FEW_IMAGES]
    if opened:
        names = few([f"{e.domain} ({e.open} images of {few(e.open_classes, 2)})" for e in opened])
        yield f"Open-set numbers (H, AUROC) would mean nothing where these are held out: {names}"
    if check.evidence and not any(e.open for e in check.evidence):
        yield "Every class is in two or more domains, so no class is open and there are no open-set numbers (H, AUROC)"


def _cautions_for_training(check: DataCheck) -> Iterator[str]:
    if len(check.domains) < 2:
        yield (
            f"There is only one domain ('{check.domains[0]}'): nothing can be held out, so how a model does in a new "
            "place cannot be measured. Sort the images by site, camera or source if you know it"
        )
    if len(check.test_only) == 1:
        yield f"'{check.test_only[0]}' has no training images, so this domain can only be held out"
    if not check.splits["test"] and check.training is not None:
        yield "No image is left for a test inside the domains, so only a run that holds out a domain can be measured"
    if not check.splits["val"]:
        yield (
            "No image is for validation, on which the threshold for 'unknown' is chosen, so a model would always name "
            "a class. Add images"
        )
    alone = [f"{name} ({domain})" for name, domain in check.single_domain_classes.items()]
    if alone:
        yield (
            f"{count(len(alone), 'class')} in one domain only, so a model may learn the domain instead of the class: "
            f"{few(alone)}"
        )
    single = [name for name, n in check.class_counts.items() if n < 3]
    if single:
        yield f"{count(len(single), 'class')} with one or two images, too few for training and test: {few(single)}"


def verdict(check: DataCheck) -> Iterator[str]:
    """How long the tail, how strong the shift, how to start and what to collect, a sentence each."""
    if len(check.classes) > 1:
        yield _tail(check)
        yield _shift(check)
    if not check.splits["train"]:
        yield "Nothing can be trained on this data: it has no training images. Evaluate a trained model on it."
        return
    if len(check.classes) < 2:
        yield "Nothing can be trained on this data yet: it has one class, and a model chooses among two or more."
        return
    yield f"Start with the method '{check.method}': {check.method_reason}."
    yield _collect(check)


def _tail(check: DataCheck) -> str:
    sizes = check.class_counts
    (largest, most), (smallest, least) = (list(sizes.items())[i] for i in (0, -1))
    ratio = f"'{largest}' has {most} images, '{smallest}' {least} (ratio {check.ratio:.0f})"
    if check.ratio < 3:
        return f"Classes are about even: {ratio}."
    degree = "slightly long-tailed" if check.ratio < 10 else "long-tailed" if check.ratio < 50 else "very long-tailed"
    return f"The classes are {degree}: {ratio}."


def _shift(check: DataCheck) -> str:
    if not check.probes:
        return "The shift between domains could not be measured: that takes two domains that share two classes."
    known, unseen = (float(np.mean([getattr(p, name) for p in check.probes])) for name in ("known", "unseen"))
    worst = min(check.probes, key=lambda p: p.unseen)
    drop = known - unseen
    degree = "strong" if drop >= STRONG else "moderate" if drop >= MODERATE else "small"
    text = (
        f"The shift between domains is {degree}: a simple classifier on {check.probed_on} is right for "
        f"{100 * known:.0f} of 100 images of known domains, and for {100 * unseen:.0f} of 100 of a domain that it has "
        "not seen (classes weighted equally)"
    )
    if drop >= MODERATE and len(check.probes) > 1:
        text += f"; hardest is '{worst.domain}' with {100 * worst.unseen:.0f}"
    return f"{text}."


def _collect(check: DataCheck) -> str:
    wishes = []
    rare = [f"{name} ({n})" for name, n in reversed(check.class_counts.items()) if n < RARE]
    if rare:
        wishes.append(f"images of the rare classes {few(rare)}")
    alone = [f"{name} outside '{domain}'" for name, domain in check.single_domain_classes.items()]
    if alone:
        wishes.append(f"images of {few(alone)}")
    weak = [e.domain for e in check.evidence if e.known < 3 * FEW_IMAGES]
    if weak:
        wishes.append(f"more images of the domains {few(weak)}, so that a test on them means something")
    if len(check.domains) < 3:
        wishes.append("another domain (site, camera, source): with three or more, methods can learn what domains share")
    if not wishes:
        return "Nothing is missing that should be collected first; a further domain always helps."
    return f"Collect next: {'; '.join(wishes)}."


def margin(evidence: DomainEvidence) -> str:
    """The margin of an accuracy on these test images, as a cell of a table."""
    return f"± {evidence.margin:.0f}" if evidence.known >= FEW_IMAGES else "too few"
