"""The page of a model on another dataset."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from ltds.engine.other_data import Judged, _numbers
from ltds.reporting.formats.html.new_data_page import render_new_data
from ltds.reporting.new_data import (
    headline_sentences,
    most_confident_mistakes,
    new_data_advice,
    share_cell,
    shown_columns,
)

EVIL = "<script>alert(1)</script>"


def metrics_of(judged: list[Judged], threshold: float | None = 1.0) -> dict:
    names = {"domain": dict.fromkeys(j.domain for j in judged), "truth": dict.fromkeys(j.truth for j in judged)}
    return {
        "data": {"name": "new & site", "split": "all", "images": len(judged), "skipped": 0, "seen_in_training": 0},
        "unknown": {"threshold": threshold, "rule": "largest logit", "split": "val"},
        "classes": {"matched": [], "open": [], "missing": [], "spelled_differently": []},
        "overall": _numbers(judged),
        "per_domain": {d: _numbers([j for j in judged if j.domain == d]) for d in names["domain"]},
        "per_class": {c: _numbers([j for j in judged if j.truth == c]) for c in names["truth"]},
    }


def images(
    count: int, truth: str, best: str, *, domain: str = "north", label: str = "", known: bool = True
) -> list[Judged]:
    said = (label or best, best)
    return [
        Judged(f"{truth}/{i}.png", truth, domain, *said, 0.5 + i / 1000, 0.7, known, label == "unknown")
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
    judged = [*images(200, "cat", "cat"), *images(200, "dog", "dog", label="unknown")]
    rejected = images(80, "emu", "cat", label="unknown", known=False)
    opened = [*rejected, *images(20, "emu", "cat", known=False)]
    said = {one.action: one.reason for one in new_data_advice(metrics_of([*judged, *opened]))}
    assert said["Try a lower threshold for 'unknown'."].endswith(
        "so often that 50 are left. It then calls fewer images of unknown classes unknown, too: now 80 of 100."
    )
    named = images(930, "emu", "cat", known=False)
    said = {one.action: one.reason for one in new_data_advice(metrics_of([*judged, *rejected[:70], *named]))}
    assert said == {
        "Do not rely on 'unknown' for images like these.": (
            "It says so to 50 of 100 images whose class it knows, but only to 7 of 100 whose class it does not know."
        )
    }


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
