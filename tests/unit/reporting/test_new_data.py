"""The page of a model on another dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ltds.engine.other_data import Judged, _numbers, _scores
from ltds.evaluation.openset import auroc
from ltds.evaluation.threshold_table import threshold_table
from ltds.reporting.formats.html.new_data_page import render_new_data
from ltds.reporting.new_data import (
    auroc_sentence,
    headline_sentences,
    macro_sentence,
    most_confident_mistakes,
    share_cell,
    shown_columns,
    threshold_rows,
)
from ltds.reporting.new_data_advice import new_data_advice

EVIL = "<script>alert(1)</script>"


def metrics_of(judged: list[Judged], threshold: float | None = 1.0) -> dict:
    names = {"domain": dict.fromkeys(j.domain for j in judged), "truth": dict.fromkeys(j.truth for j in judged)}
    return {
        "data": {"name": "new & site", "split": "all", "images": len(judged), "skipped": 0, "seen_in_training": 0},
        "unknown": {
            "threshold": threshold,
            "rule": "largest logit",
            "split": "val",
            "auroc": auroc(_scores(judged)),
            "thresholds": threshold_table(_scores(judged), threshold),
        },
        "classes": {
            "matched": list(dict.fromkeys(j.truth for j in judged if j.known)),
            "open": [],
            "missing": ["never seen here"],
            "spelled_differently": [],
        },
        "overall": _numbers(judged),
        "per_domain": {d: _numbers([j for j in judged if j.domain == d]) for d in names["domain"]},
        "per_class": {c: _numbers([j for j in judged if j.truth == c]) for c in names["truth"]},
    }


def images(
    count: int,
    truth: str,
    best: str,
    *,
    domain: str = "north",
    label: str = "",
    known: bool = True,
    scores: tuple[float, float] = (0.7, 0.7),
) -> list[Judged]:
    """`scores`: the lowest and the highest; evenly spaced between."""
    said = (label or best, best)
    score = np.linspace(*scores, count)
    return [
        Judged(f"{truth}/{i}.png", truth, domain, *said, 0.5 + i / 1000, float(score[i]), known, label == "unknown")
        for i in range(count)
    ]


def test_the_headline_counts_images_and_names_what_is_too_few() -> None:
    judged = [*images(300, "cat", "cat"), *images(100, "cat", "dog"), *images(4, EVIL, "cat", known=False)]
    main, more = headline_sentences(metrics_of(judged))
    assert (
        main == "On the images of new & site, the model is right for 75 of 100 (400 images of classes that it knows)."
    )
    assert more == [
        "It says 'unknown' to 0 of 100 of these images, although it knows their class.",
        "Of 100 images of classes that it does not know, it calls 0 unknown, as it should (4 images: too few to rely "
        "on it).",
    ]
    assert "never says 'unknown'" in headline_sentences(metrics_of(judged, None))[1][0]
    assert headline_sentences(metrics_of(images(3, "emu", "cat", known=False)))[0].startswith("new & site has no image")


def test_advice_follows_from_the_numbers() -> None:
    judged = [
        *images(200, "cat", "cat"),
        *images(200, "dog", "dog", label="unknown"),
        *images(100, "fox", "cat", domain="south"),
    ]
    said = {one.action: one.reason for one in new_data_advice(metrics_of(judged))}
    assert said == {
        "Try a lower threshold for 'unknown'.": (
            "It would be right for 80 of 100 images, but says 'unknown' so often that 40 are left."
        ),
        "Look at the images of south first.": "The model is right for 0 of 100 images on south.",
        "Add images of the weakest classes to the training images.": "They are: fox (0 of 100).",
    }
    few = [one.action for one in new_data_advice(metrics_of(images(9, "cat", "cat")))]
    assert few == ["Collect more images before you decide anything."]


def test_a_lower_threshold_is_only_advised_with_its_cost() -> None:
    """It calls fewer images unknown, also those for which that is right."""
    rejected = images(200, "dog", "dog", label="unknown", scores=(0.45, 0.69))
    judged = [*images(200, "cat", "cat", scores=(0.9, 0.9)), *rejected]
    rejected = images(80, "emu", "cat", label="unknown", known=False, scores=(0.45, 0.69))
    opened = [*rejected, *images(20, "emu", "cat", known=False, scores=(0.8, 0.8))]
    said = {one.action: one.reason for one in new_data_advice(metrics_of([*judged, *opened], 0.7))}
    assert said["Try a lower threshold for 'unknown'."].endswith(
        "so often that 50 are left. It then calls fewer images of unknown classes unknown, too: now 80 of 100."
    )
    named = images(930, "emu", "cat", known=False, scores=(0.69, 0.95))
    said = {one.action: one.reason for one in new_data_advice(metrics_of([*judged, *rejected[:70], *named]))}
    assert said == {
        "Do not rely on 'unknown' for images like these.": (
            "It says so to 50 of 100 images whose class it knows, and to 7 of 100 whose class it does not know. No "
            "threshold helps: its score hardly tells them apart (AUROC 43 %, where 50 % is a coin toss)."
        )
    }


def test_a_threshold_that_is_too_high_is_no_reason_to_give_up() -> None:
    """All images are called unknown, but some threshold separates them: the advice was not to rely on 'unknown'."""
    known = images(100, "cat", "cat", label="unknown", scores=(0.5, 0.9))
    opened = images(100, "emu", "cat", label="unknown", known=False, scores=(0.1, 0.4))
    metrics = metrics_of([*known, *opened], 0.95)
    (advice,) = new_data_advice(metrics)
    assert advice.action == "Try a lower threshold for 'unknown', such as 0.3850."
    assert advice.reason.startswith(
        "Of 100 images whose class it knows, it would name 100 right, now 0; of 100 others, it would call 95 unknown, "
        "now 100. The table of thresholds has more. Choose one on half of your images"
    )
    assert auroc_sentence(metrics).startswith("AUROC of the score: 100.0 %, on 100 known images: how often")


def test_a_threshold_that_is_too_low_is_raised() -> None:
    known = images(100, "cat", "cat", scores=(0.5, 0.9))
    opened = images(90, "emu", "cat", known=False, scores=(0.1, 0.4))
    (advice,) = new_data_advice(metrics_of([*known, *opened], 0.05))
    assert advice.action == "Try a higher threshold for 'unknown', such as 0.5200."
    assert "name 95 right, now 100; of 100 others, it would call 100 unknown, now 0." in advice.reason
    assert list(new_data_advice(metrics_of([*known, *opened], None))) == [], "there is nothing to be lower than"


@pytest.mark.parametrize(
    ("lowest", "advised"),
    [(0.10, "Do not rely"), (0.30, "Do not rely"), (0.56, "Try a lower threshold for 'unknown'.")],
)
def test_unknown_is_given_up_only_where_its_score_tells_nothing(lowest: float, advised: str) -> None:
    """The scores of open images are from .5 to .9. The interval of the AUROC is 8 points to each side."""
    known = images(100, "cat", "cat", label="unknown", scores=(lowest, lowest + 0.4))
    opened = images(100, "emu", "cat", label="unknown", known=False, scores=(0.5, 0.9))
    metrics = metrics_of([*known, *opened], 0.99)
    (advice,) = new_data_advice(metrics)
    assert advice.action.startswith(advised)
    assert (metrics["unknown"]["auroc"] <= 0.58) == (advised == "Do not rely")


def test_few_images_do_not_tell_that_no_threshold_helps() -> None:
    known = images(100, "cat", "cat", label="unknown", scores=(0.5, 0.9))
    opened = images(20, "emu", "cat", label="unknown", known=False, scores=(0.6, 0.9))
    metrics = metrics_of([*known, *opened], 0.99)
    assert [advice.action for advice in new_data_advice(metrics)] == ["Try a lower threshold for 'unknown'."]
    assert "%‡, on 20 open images of 1 class" in auroc_sentence(metrics)


def test_the_mean_over_classes_says_what_it_rests_on() -> None:
    judged = [
        *images(12, "cat", "cat"),
        *images(6, "dog", "dog"),
        *images(6, "dog", "cat"),
        *images(9, "emu", "cat", known=False),
    ]
    assert macro_sentence(metrics_of(judged)) == (
        "Mean over classes of the accuracy (macro accuracy): 75.0 %‡ over 2 of 3 classes, 24 images; chance alone "
        "moves it by about 16 points."
    )
    many = [*images(400, "cat", "cat"), *images(400, "dog", "cat")]
    assert " 50.0 % over 2 of 3 classes, 800 images; " in macro_sentence(metrics_of(many))
    assert macro_sentence(metrics_of(images(9, "emu", "cat", known=False))) == ""


def test_the_table_of_thresholds_has_shares_with_their_images(tmp_path: Path) -> None:
    judged = [*images(40, "cat", "cat", scores=(0.5, 0.9)), *images(20, "emu", "cat", known=False, scores=(0.1, 0.4))]
    metrics = metrics_of(judged, 0.95)
    columns = [column for column in shown_columns(metrics) if column.key != "accuracy"]
    rows = threshold_rows(metrics, columns)
    assert len(rows) == 11
    assert rows[-1].name == "0.9500 (in use)"
    assert [cell.mean for cell in rows[-1].cells] == [0, 100, 100]
    assert {(row.known_images, row.open_images) for row in rows} == {(40, 20)}
    assert all(row.cells[2].too_few for row in rows), "20 images"
    page = render_new_data(metrics, judged, tmp_path, "model")
    assert '<th scope="row" data-value="0.9500 (in use)">' in page
    assert "which are quantiles of their scores. AUROC of the score: 100.0 %‡, on 20 open images" in page
    only_open = metrics_of(judged[40:], 0.95)
    assert "(in use)" in render_new_data(only_open, judged[40:], tmp_path, "model")


def test_columns_without_images_are_left_out() -> None:
    metrics = metrics_of(images(50, "cat", "cat"))
    assert [column.key for column in shown_columns(metrics)] == ["accuracy", "named_right", "known_called_unknown"]
    assert share_cell(metrics["overall"], shown_columns(metrics)[0]).mean == 100


def test_the_surest_mistakes_come_first_and_at_most_two_of_a_kind() -> None:
    opened = [*images(1, "emu", "cat", known=False), *images(1, "yak", "cat", label="unknown", known=False)]
    judged = [*images(5, "cat", "dog"), *opened]
    found = most_confident_mistakes(judged, 18, 2)
    assert [(one.path, one.truth) for one in found] == [
        ("cat/4.png", "cat"),
        ("cat/3.png", "cat"),
        ("emu/0.png", "emu"),
    ]


def test_unknown_for_a_known_class_is_no_confident_mistake() -> None:
    judged = [*images(5, "cat", "dog", label="unknown"), *images(1, "fox", "dog")]
    assert [one.truth for one in most_confident_mistakes(judged, 18, 2)] == ["fox"]


def test_the_page_escapes_names_and_shows_pictures(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    for i in range(40):
        Image.new("RGB", (80, 80), (i, 0, 0)).save(tmp_path / "cat" / f"{i}.png")
    judged = [*images(40, "cat", EVIL), *images(100, "dog", "dog")]
    page = render_new_data(metrics_of(judged), judged, tmp_path, EVIL)
    assert EVIL not in page
    assert page.count('<li><img src="data:image/jpeg;base64,') == 2  # two of a kind; 80 pixels are a photograph
    assert page.count("<script>") == 1
    assert '<td data-value="0.0"' in page
    assert 'title="of 100 images of classes that it knows' in page


def test_a_known_class_called_unknown_is_no_rejection() -> None:
    judged = [*images(3, "unknown", "unknown"), *images(1, "unknown", "unknown", label="unknown")]
    judged += images(2, "emu", "unknown", known=False)
    numbers = _numbers(judged)
    assert (numbers["named_right"], numbers["known_called_unknown"], numbers["open_called_unknown"]) == (0.75, 0.25, 0)
    assert [one.truth for one in most_confident_mistakes(judged, 9, 9)] == ["emu", "emu"]
