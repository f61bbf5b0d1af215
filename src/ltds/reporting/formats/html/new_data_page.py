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
    auroc_sentence,
    headline_sentences,
    macro_sentence,
    most_confident_mistakes,
    share_rows,
    shown_classes,
    shown_columns,
    threshold_rows,
)
from ltds.reporting.new_data_advice import new_data_advice
from ltds.reporting.result_table import TOO_FEW

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
    at_thresholds = [column for column in columns if column.key != "accuracy"]  # which none of them changes
    main, more = headline_sentences(metrics)
    unknown = metrics["unknown"]
    rows = {name: share_rows(metrics[name], columns) for name in ("per_domain", "per_class")}
    macro, auroc = macro_sentence(metrics), auroc_sentence(metrics)
    cells = [cell for of_kind in rows.values() for row in of_kind for cell in row.cells]
    few = any(cell.too_few for cell in cells) or TOO_FEW in macro + auroc
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
        thresholds=threshold_rows(metrics, at_thresholds),
        threshold_columns=at_thresholds,
        auroc=auroc,
        macro=macro,
        few=ABOUT_FEW_IMAGES if few else "",
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
