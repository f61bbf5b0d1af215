"""A check as one self-contained HTML page: no script, no file besides it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ltds.core.text import printable
from ltds.evaluation.metrics import FEW_IMAGES
from ltds.planning.check.report import DataCheck
from ltds.planning.check.words import margin

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px; display: block; overflow-x: auto; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.problem { border-left: 4px solid #b00020; padding-left: .8rem; }
.caution { border-left: 4px solid #b58900; padding-left: .8rem; }
.none { color: #aaa; }
"""


TITLE = "ltds data check: "  # its beginning
HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>'
MARKS = (f"<title>{TITLE}", f"{HEAD}Check of ")  # of a page, now and before it had this title


def html_page(check: DataCheck) -> str:
    """The page: verdict first, then findings, domains, and images of each pair."""
    title = f"Check of {check.name}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{check.images:,} images, {len(check.classes)} classes, {len(check.domains)} domains.</p>",
        "<h2>Verdict</h2>",
        "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in check.verdict) + "</ul>",
        "<h2>Findings</h2>",
        *(f'<p class="{finding.level}">{escape(finding.text)}</p>' for finding in check.findings),
        "" if check.findings else "<p>Nothing to repair, nothing to beware of.</p>",
        "<h2>Domains</h2>",
        "<p>If a domain is held out, its test images are those below; an accuracy on n images has a margin of up to "
        f"98/√n points, and means nothing below {FEW_IMAGES} images. The probe is a linear classifier on "
        f"{escape(check.probed_on)}.</p>",
        _domains(check),
        *_distances(check),
        "<h2>Images of each class and domain</h2>",
        _pairs(check),
    ]
    head = f"{HEAD}{TITLE}{escape(check.name)}</title><style>{STYLE}</style></head>"
    page = f"{head}<body>{''.join(parts)}</body></html>\n"
    return printable(page)


def _domains(check: DataCheck) -> str:
    evidence = {e.domain: e for e in check.evidence}
    probes = {p.domain: p for p in check.probes}
    rows = []
    for domain, counts in zip(check.domains, check.counts, strict=True):
        e, p = evidence.get(domain), probes.get(domain)
        rows.append(
            [
                domain,
                f"{sum(counts):,}",
                f"{sum(n > 0 for n in counts)}",
                f"{e.known}" if e else "",
                f"{e.open}" if e else "",
                margin(e) if e else "",
                f"{100 * p.known:.0f} %" if p else "",
                f"{100 * p.unseen:.0f} %" if p else "",
            ]
        )
    header = ["domain", "images", "classes", "test images", "open images", "margin", "probe: known", "probe: unseen"]
    return _table(header, rows)


def _distances(check: DataCheck) -> list[str]:
    if len(check.domains) < 2:
        return []
    rows = [
        [domain, *("" if value is None else f"{value:.2f}" for value in row)]
        for domain, row in zip(check.domains, check.distances, strict=True)
    ]
    return [
        "<h2>How far domains lie apart</h2>",
        "<p>1 means: another domain changes an image as much as another class does.</p>",
        _table(["", *check.domains], rows),
    ]


def _pairs(check: DataCheck) -> str:
    order = {name: check.classes.index(name) for name in check.class_counts}
    rows = [
        [name, *(str(row[index]) for row in check.counts), str(check.class_counts[name])]
        for name, index in order.items()
    ]
    return _table(["class", *check.domains, "all"], rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td{_class(cell)}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _class(cell: str) -> str:
    return ' class="none"' if cell == "0" else ""
