"""What a model card tells of test results: each number with the classes and images that it rests on."""

from __future__ import annotations

from typing import Any

from ltds.engine.stored_model import scores_of


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
