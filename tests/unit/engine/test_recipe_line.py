"""A recipe follows the size of the images, and a run says what its recipe set before it trains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ltds.data.datasets import find_recipe
from ltds.data.manifest import Manifest
from ltds.engine.config import resolve
from ltds.engine.recipe_line import recipe_line


def bestiary(toy: Manifest, **built: Any) -> Manifest:
    return replace(toy, name="bestiary", provenance={"builder": "bestiary", "config": built})


def line(manifest: Manifest, **given: Any) -> str:
    given = {"data": {"root": "x"}} | given
    return recipe_line(manifest, (given, resolve(given, dataset=manifest)))


def test_the_recipe_takes_the_size_of_the_images(toy: Manifest) -> None:
    large = bestiary(toy, size=64)
    assert resolve({"data": {"root": "x"}}, dataset=large).data.size == 64
    assert resolve({"data": {"root": "x", "size": 48}}, dataset=large).data.size == 48
    assert resolve({"data": {"root": "x"}}, dataset=bestiary(toy, size=32)).data.size == 32
    assert find_recipe(bestiary(toy, size=32)) == find_recipe("bestiary")
    for odd in ({}, {"size": "large"}, {"size": None}):
        assert find_recipe(bestiary(toy, **odd)).settings["data"]["size"] == 32
    assert find_recipe(replace(toy, provenance={"config": {"size": 64}})).settings == {}, "no recipe, no size"
    assert find_recipe(replace(toy, name="bestiary", provenance={"config": "by hand"})) == find_recipe("bestiary")


def test_a_run_says_what_the_recipe_set(toy: Manifest) -> None:
    assert line(bestiary(toy, size=32)) == (
        "From the recipe for 'bestiary': data.size=32, data.batch_size=32, data.augmentation.scale=[0.5, 1.0], "
        "backbone.stem=medium, backbone.width=24, optimizer.lr=0.2, schedule.epochs=120, schedule.steps_per_epoch=20, "
        "schedule.milestones=[0.6, 0.9], averaging.name=ema, averaging.decay=0.99, averaging.start=0.3. "
        "A setting that you give replaces it."
    )
    assert line(toy) == ""


def test_what_the_user_gives_is_not_the_recipe_s(toy: Manifest) -> None:
    large = bestiary(toy, size=64)
    assert "found for images of 32 pixels; these have 64, so data.size is set to 64." in line(large)
    said = line(large, data={"root": "x", "size": 32}, averaging="none", optimizer={"lr": 0.2})
    assert not any(word in said for word in ("data.size", "averaging", "optimizer.lr"))
    assert "data.batch_size=32" in said
    assert "backbone" not in line(large, backbone={"name": "resnet18"}), "the recipe suits another network"


@pytest.mark.parametrize(
    ("schedule", "decay"),
    [({}, 0.99), ({"epochs": 50}, 0.99), ({"epochs": 6}, 0.917), ({"epochs": 1, "steps_per_epoch": 1}, 0.5)],
)
def test_a_short_run_averages_over_fewer_steps(toy: Manifest, schedule: dict[str, int], decay: float) -> None:
    """With the recipe's hundred steps, a run of 120 evaluated an average of weights that had learned little."""
    manifest = bestiary(toy, size=32)
    assert resolve({"data": {"root": "x"}, "schedule": schedule}, dataset=manifest).averaging.decay == decay
    assert f"averaging.decay={decay}" in line(manifest, schedule=schedule)
    given = {"data": {"root": "x"}, "schedule": schedule, "averaging": {"decay": 0.98}}
    assert resolve(given, dataset=manifest).averaging.decay == 0.98
    given["averaging"] = "swad"
    assert resolve(given, dataset=manifest).averaging.name == "swad"


def test_a_cosine_takes_the_length_of_the_recipe_and_not_its_milestones(toy: Manifest) -> None:
    given = {"data": {"root": "x"}, "schedule": {"decay": "cosine"}}
    schedule = resolve(given, dataset=bestiary(toy)).schedule
    assert (schedule.epochs, schedule.steps_per_epoch) == (120, 20)
    assert schedule.milestones == resolve({"data": {"root": "x"}}).schedule.milestones


@pytest.mark.parametrize(("method", "takes"), [("ltds", True), ("agg", False)])
def test_settings_of_the_method_are_said_where_it_takes_them(toy: Manifest, method: str, takes: bool) -> None:
    assert ("method.temperature=0.2" in line(bestiary(toy, size=32), method={"name": method})) == takes


def test_one_line_for_many_runs(toy: Manifest) -> None:
    """As a benchmark prints it: what only some methods, or some variants, take from the recipe is marked."""
    manifest = bestiary(toy, size=32)
    tables: list[dict[str, Any]] = [
        {"data": {"root": "x"}, "method": {"name": name}, "optimizer": optimizer}
        for name in ("ltds", "agg")
        for optimizer in ({}, {"lr": 0.1})
    ]
    said = recipe_line(manifest, *((given, resolve(given, dataset=manifest)) for given in tables))
    assert "data.size=32, data.batch_size=32," in said
    assert "optimizer.lr=0.2 (some runs)," in said
    assert "method.temperature=0.2 (ltds)." in said
