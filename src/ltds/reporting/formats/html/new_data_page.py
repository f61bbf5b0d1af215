"""The page of a model on another dataset: the answer, each domain and class, and pictures of its worst mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ltds.core.files import write_text
from ltds.core.text import score_text
from ltds.evaluation.mistakes import SAME, SHOWN
from ltds.evaluation.thumbnails import thumbnail
from ltds.reporting.formats.html.mistakes import ConfusedPair, MistakePicture, MistakesView, picture_url
from ltds.reporting.formats.html.template import render_template
from ltds.reporting.legend import ABOUT_FEW_IMAGES
from ltds.reporting.new_data import (
    JudgedImage,
    headline_sentences,
    most_confident_mistakes,
    new_data_advice,
    share_rows,
    shown_classes,
    shown_columns,
)

PAGE = "report.html"
PAIRS = 10


def write_new_data_page(
    folder: Path, metrics: Mapping[str, Any], judged: Sequence[JudgedImage], root: Path, model: str
) -> Path:
    """Write report.html into `folder`. `root`: the folder to which the paths of the judged images belong."""
    file = folder / PAGE
    write_text(file, render_new_data(metrics, judged, root, model))
    return file


def render_new_data(metrics: Mapping[str, Any], judged: Sequence[JudgedImage], root: Path, model: str) -> str:
    """The HTML of the page."""
    columns = shown_columns(metrics)
    main, more = headline_sentences(metrics)
    unknown = metrics["unknown"]
    rows = {name: share_rows(metrics[name], columns) for name in ("per_domain", "per_class")}
    cells = [cell for of_kind in rows.values() for row in of_kind for cell in row.cells]
    return render_template(
        "new_data.html.j2",
        name=metrics["data"]["name"],
        model=model,
        data=metrics["data"],
        unknown=unknown,
        threshold="" if unknown["threshold"] is None else score_text(unknown["threshold"]),
        classes=shown_classes(metrics["classes"]),
        headline=main,
        more=more,
        advice=list(new_data_advice(metrics)),
        columns=columns,
        domains=rows["per_domain"],
        per_class=rows["per_class"],
        overall=share_rows({"all": metrics["overall"]}, columns),
        macro=metrics["overall"]["macro_accuracy"],
        few=ABOUT_FEW_IMAGES if any(cell.too_few for cell in cells) else "",
        mistakes=_mistakes(judged, root, model),
    )


def _mistakes(judged: Sequence[JudgedImage], root: Path, model: str) -> MistakesView:
    known = [one for one in judged if one.known]
    images = Counter(one.truth for one in known)
    confused = Counter((one.truth, one.best) for one in known if one.best != one.truth)
    ordered = sorted(confused.items(), key=lambda item: (-item[1], item[0]))[:PAIRS]
    pictures = []
    for one in most_confident_mistakes(judged, SHOWN, SAME):
        small = thumbnail(root / one.path)
        if small is not None:
            shown = (one.truth, one.best, one.domain, 100 * one.confidence, one.known)
            pictures.append(MistakePicture(picture_url(small), *shown))
    return MistakesView(
        model,
        "",
        len(known),
        sum(confused.values()),
        tuple(ConfusedPair(truth, best, count, images[truth]) for (truth, best), count in ordered),
        tuple(pictures),
        "",
    )
