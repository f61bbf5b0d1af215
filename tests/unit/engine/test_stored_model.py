"""What is stored about a model: test results with the images that they rest on, and the dataset it was trained on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ltds.data.manifest import Manifest
from ltds.engine.model_record import ModelRecord
from ltds.engine.stored_model import StoredModel, scores_of
from toy import toy_config


def a_class(shot: str, images: int) -> dict[str, Any]:
    return {"class": f"{shot}{images}", "shot": shot, "images": images, "accuracy": 0.5, "train_images": 7}


def test_shot_groups_count_their_own_classes_and_images() -> None:
    domain = {
        "accuracy": 0.6,
        "macro_accuracy": 0.5,
        "many": 0.9,
        "medium": 0.7,
        "few": None,
        "auroc": 0.8,
        "known_images": 33,
        "open_images": 4,
        "ece": 0.1,
    }
    metrics = {
        "summary": {"acc_u": 0.6, "many": 0.9, "medium": 0.7, "few": None},
        "per_domain": {"wax": domain},
        "per_class": [a_class("many", 10), a_class("many", 11), a_class("medium", 12), a_class("open", 4)],
    }
    scores = scores_of(metrics)
    assert scores["per_shot"] == {
        "many": {"accuracy": 0.9, "classes": 2, "images": 21},
        "medium": {"accuracy": 0.7, "classes": 1, "images": 12},
        "few": {"accuracy": None, "classes": 0, "images": 0},
    }
    assert scores["per_domain"] == {"wax": {name: value for name, value in domain.items() if name != "ece"}}
    assert scores["summary"] is metrics["summary"]


def test_the_dataset_that_a_model_was_trained_on(toy: Manifest) -> None:
    """By its identity; a model of an early version has recorded the checksum of the rows, or nothing."""
    small, large = (replace(toy, provenance={"builder": "toy", "config": {"size": size}}) for size in (16, 32))
    assert small.checksum == large.checksum

    def trained_on(recorded: str) -> list[bool | None]:
        record = cast("ModelRecord", None)
        stored = StoredModel(toy_config(toy), toy.task("wax"), record, None, {}, recorded)
        return [stored.trained_on(manifest) for manifest in (small, large)]

    assert trained_on(small.identity) == [True, False]
    assert trained_on(small.checksum) == [True, True]
    assert trained_on("0" * 64) == [False, False]
    assert trained_on("") == [None, None]
