"""A check on one screen, as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ltds.core.text import printable
from ltds.planning.check.report import DataCheck
from ltds.planning.check.words import margin

WIDTH, MOST_ROWS = 100, 12


def check_lines(check: DataCheck) -> Iterator[str]:
    """What one needs to know at a glance: sizes, numbers for each domain, findings, verdict."""
    return map(printable, _lines(check))


def _lines(check: DataCheck) -> Iterator[str]:
    splits = ", ".join(f"{n:,} {split}" for split, n in check.splits.items())
    kinds = f"{len(check.classes)} classes, {len(check.domains)} domains"
    yield f"{check.name}: {check.images:,} images, {kinds} ({splits})"
    sizes = list(check.class_counts.items())
    shown = sizes if len(sizes) <= 8 else [*sizes[:4], ("...", 0), *sizes[-3:]]
    yield "images per class: " + ", ".join(name if name == "..." else f"{name} {n}" for name, n in shown)
    missing = len(check.missing_pairs)
    pairs = len(check.classes) * len(check.domains)
    yield f"{missing} of {pairs} domain-class pairs are empty; the median shorter side is {check.shorter_side} pixels"
    yield ""
    yield from _table(check)
    for title, level in (("Problems", "problem"), ("Worth knowing", "caution")):
        texts = [finding.text for finding in check.findings if finding.level == level]
        if texts:
            yield ""
            yield f"{title}:"
            yield from (line for text in texts for line in _bullet(text))
    yield ""
    yield "Verdict:"
    yield from (line for text in check.verdict for line in _bullet(text))


def _table(check: DataCheck) -> Iterator[str]:
    """A row for each domain: images, classes, what a test on it would rest on, and the probe."""
    width = max([len(domain) for domain in check.domains] + [8])
    evidence = {e.domain: e for e in check.evidence}
    probes = {p.domain: p for p in check.probes}
    yield f"{'domain':<{width}}  images  classes  if held out: test  open   margin  probe known  unseen  nearest domain"
    for index, domain in enumerate(check.domains[:MOST_ROWS]):
        row = check.counts[index]
        line = f"{domain:<{width}}  {sum(row):>6}  {sum(n > 0 for n in row):>7}"
        e, p = evidence.get(domain), probes.get(domain)
        line += f"  {e.known:>17}  {e.open:>4}  {margin(e):>7}" if e else " " * 34
        line += f"  {100 * p.known:>9.0f} %  {100 * p.unseen:>4.0f} %" if p else " " * 21
        yield f"{line}  {_nearest(check, index)}".rstrip()
    if len(check.domains) > MOST_ROWS:
        yield f"... and {len(check.domains) - MOST_ROWS} more domains"


def _nearest(check: DataCheck, index: int) -> str:
    others = [(d, check.domains[i]) for i, d in enumerate(check.distances[index]) if i != index and d is not None]
    return f"{min(others)[1]} ({min(others)[0]:.1f})" if others else ""


def _bullet(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)
