"""The plan of a comparison: the same for every method, the same again when the grid is continued, and never imposed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ltds.benchmarking import runner
from ltds.benchmarking.cells import GridCell, cells_of
from ltds.benchmarking.grid import Grid
from ltds.benchmarking.runner import run_cells
from ltds.benchmarking.status import cell_status, read_index
from ltds.core.config import parse
from ltds.core.errors import ConfigError
from ltds.data.manifest import Manifest
from ltds.planning import network
from ltds.planning.comparison import plan_comparison
from ltds.planning.run_plan import Choice, RunPlan

METHODS = ("agg", "ltds", "daml")


@pytest.fixture(autouse=True)
def _nothing_pretrained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "pretrained_is_installed", lambda: False)


def planned(manifest: Manifest, **given: Any) -> dict[str, dict[str, Any]]:
    return layers(plan_comparison(manifest, given, {name: {} for name in METHODS}, [{}], manifest.domains))


def layers(plans: Mapping[str, RunPlan]) -> dict[str, dict[str, Any]]:
    return {name: plan.layer for name, plan in plans.items()}


def test_only_settings_of_the_methods_differ(toy: Manifest) -> None:
    plans = planned(toy, run={"device": "cpu"})
    assert list(plans) == list(METHODS)
    shared = [{group: table for group, table in plan.items() if group != "method"} for plan in plans.values()]
    assert shared[0] == shared[1] == shared[2]
    assert plans["ltds"]["method"] == {"temperature": 0.2}
    # The fewest training images of a source, in any of the three tasks, shared by the two batches of a step of daml.
    assert shared[0]["data"]["batch_size"] == toy.counts("train").sum(axis=1).min() // 2
    assert shared[0]["backbone"]["name"] == "resnet10"
    assert shared[0]["averaging"]["name"] == "ema"


def test_what_the_user_gives_is_kept(toy: Manifest) -> None:
    given = {"data": {"batch_size": 3, "size": 24}, "schedule": {"epochs": 2, "steps_per_epoch": 5}}
    own = {"agg": {}, "ltds": {"method": {"temperature": 0.5}}}
    plans = plan_comparison(toy, given, own, [{}], ["ink"])
    for plan in layers(plans).values():
        assert not {"batch_size", "size"} & plan.get("data", {}).keys()
        assert plan["schedule"].keys() == {"milestones"}
    assert "temperature" not in plans["ltds"].layer.get("method", {})
    grid = parse(
        Grid, {"data": "toy", "methods": ["agg", "ltds"], "settings": given, "by_method": {"ltds": own["ltds"]}}
    )
    cells = cells_of(grid, Path("out"), lambda _: toy, plan=lambda *_: plans)
    assert {cell.config.data.batch_size for cell in cells} == {3}
    assert {cell.config.data.size for cell in cells} == {24}
    assert {cell.config.schedule.epochs * cell.config.schedule.steps_per_epoch for cell in cells} == {10}
    assert {cell.config.averaging.name for cell in cells} == {"ema"}
    assert {cell.config.to_dict()["method"]["temperature"] for cell in cells if cell.method == "ltds"} == {0.5}


def test_the_same_grid_gets_the_same_runs_again(toy: Manifest) -> None:
    grid = parse(Grid, {"data": "toy", "methods": METHODS, "seeds": [0, 1]})
    said: list[str] = []
    plan = partial(plan_comparison, say=said.append)
    first, again = (cells_of(grid, Path("out"), lambda _: toy, plan=plan) for _ in range(2))
    assert [cell.run.path for cell in first] == [cell.run.path for cell in again]
    assert len(first) == 3 * 3 * 2
    assert sum("for all runs" in line for line in said) == 2, "once for each grid, not for each seed"
    unplanned = cells_of(grid, Path("out"), lambda _: toy)
    assert not {cell.run.path for cell in first} & {cell.run.path for cell in unplanned}


def test_a_method_that_works_on_images_decides_for_all(toy: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "pretrained_is_installed", lambda: True)
    given = {"run": {"device": "cpu"}}
    plans = layers(plan_comparison(toy, given, {"agg": {}, "mixstyle": {}}, [{}], ["ink"]))
    assert plans["agg"]["backbone"] == plans["mixstyle"]["backbone"]
    assert plans["agg"]["backbone"]["weights"] == "imagenet"
    assert "features" not in plans["agg"]["data"]
    mixed = layers(plan_comparison(toy, given, {"agg": {}}, [{}, {"method": {"mixstyle": {"p": 0.5}}}], ["ink"]))
    assert mixed["agg"]["backbone"] == plans["agg"]["backbone"], "one variant needs images, so all have them"


def test_variants_differ_in_nothing_but_their_settings(toy: Manifest) -> None:
    tables = {"plain": {}, "decayed": {"optimizer": {"weight_decay": 0.01}}}
    grid = parse(Grid, {"data": "toy", "methods": ["agg"], "seeds": [0], "held_out": ["ink"], "variants": tables})
    cells = {
        cell.variant: cell.config.to_dict() for cell in cells_of(grid, Path("o"), lambda _: toy, plan=plan_comparison)
    }
    assert cells["decayed"]["optimizer"].pop("weight_decay") == 0.01
    cells["plain"]["optimizer"].pop("weight_decay")
    assert cells["decayed"] == cells["plain"]


def test_each_cell_knows_what_was_chosen_for_it_and_why(toy: Manifest) -> None:
    tables = {"plain": {}, "fast": {"optimizer": {"lr": 0.3}, "averaging": "none", "data": {"batch_size": 3}}}
    words = {"data": "toy", "methods": ["agg", "ltds"], "seeds": [0], "held_out": ["ink"], "variants": tables}
    cells = cells_of(parse(Grid, words), Path("o"), lambda _: toy, plan=plan_comparison)
    found = {
        cell.method: {choice["what"]: choice for choice in cell.plan["choices"]}
        for cell in cells
        if cell.plan is not None
    }
    assert found.keys() == {"agg (plain)", "ltds (plain)", "agg (fast)", "ltds (fast)"}
    plain, fast = found["ltds (plain)"], found["ltds (fast)"]
    assert list(plain) == ["method", "network", "image size", "batch", "learning", "length", "averaging"]
    assert (plain["method"]["settings"], plain["method"]["reason"]) == ({"method.temperature": 0.2}, "as you asked")
    assert found["agg (plain)"] == plain | {"method": plain["method"] | {"settings": {}, "shown": "agg"}}
    assert plain["batch"]["reason"].startswith("of each of 2 source domains in a step")
    assert list(fast) == ["method", "network", "image size", "learning", "length"]
    assert fast["learning"]["settings"] == {"optimizer.name": "sgd", "schedule.milestones": [0.6, 0.9]}
    assert fast["learning"]["shown"] == "optimizer.name=sgd, schedule.milestones=[0.6, 0.9]"
    assert {cell.plan is None for cell in cells_of(parse(Grid, words), Path("o"), lambda _: toy)} == {True}


class IdleExecutor:
    """Trains nothing, and looks which plans are there before it would."""

    def __init__(self) -> None:
        self.plans: list[Any] = []

    def submit(self, cells: Iterable[GridCell]) -> Iterator[GridCell]:
        for cell in cells:
            self.plans.append(json.loads(cell.run.plan_file.read_text()))
            yield cell


def test_plans_are_written_before_training(toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "prepare_shared_data", lambda *_: None)
    words = {"data": "toy", "methods": ["agg"], "seeds": [0, 1], "held_out": ["ink"]}
    cells = cells_of(parse(Grid, words), tmp_path, lambda _: toy, plan=plan_comparison)
    executor = IdleExecutor()
    assert list(run_cells(cells, executor, tmp_path)) == cells
    assert executor.plans == [cell.plan for cell in cells]
    assert [cell_status(cell).state for cell in read_index(tmp_path)] == ["waiting", "waiting"]


def test_mistakes_are_found_before_anything_is_planned_or_imported(toy: Manifest) -> None:
    tables = {"data": "toy", "methods": ["agg", "evil_module:Method"], "settings": {"optimizer": {"lrr": 1}}}
    with pytest.raises(ConfigError, match=r"(?s)agg: .*lrr.*evil_module") as caught:
        cells_of(parse(Grid, tables), Path("o"), lambda _: toy, trust=[], plan=lambda *_: pytest.fail("planned"))
    assert "evil_module" in str(caught.value)
    assert "evil_module" not in sys.modules


def test_a_plan_may_make_the_class_embeddings(toy: Manifest, tmp_path: Path) -> None:
    bare = replace(toy, root=tmp_path)
    grid = parse(Grid, {"data": "toy", "methods": ["ltds"], "seeds": [0], "held_out": ["ink"]})
    with pytest.raises(ConfigError, match="Expected class embeddings"):
        cells_of(grid, Path("o"), lambda _: bare)
    table = str(toy.root / "semantics" / "attributes.csv")
    made = RunPlan((Choice("method", {"semantics.table": table}, "ltds", "as you asked"),))
    (cell,) = cells_of(grid, Path("o"), lambda _: bare, plan=lambda *_: {"ltds": made})
    assert cell.config.semantics.table == table


def test_of_one_domain_nothing_is_held_out(toy: Manifest) -> None:
    rows = toy.domain_ids == 0
    kept = [path for path, kept in zip(toy.paths, rows, strict=True) if kept]
    alone = replace(
        toy,
        domains=toy.domains[:1],
        paths=tuple(kept),
        labels=toy.labels[rows],
        domain_ids=toy.domain_ids[rows],
        split_ids=toy.split_ids[rows],
    )
    grid = parse(Grid, {"data": "toy", "methods": ["agg"], "seeds": [0]})
    (cell,) = cells_of(grid, Path("o"), lambda _: alone, plan=plan_comparison)
    assert cell.held_out == ""


def test_a_dataset_with_a_recipe_is_not_planned(toy: Manifest) -> None:
    with pytest.raises(ConfigError, match=r"Expected argument 'plan' only for .* but 'bestiary' has its own settings"):
        planned(replace(toy, name="bestiary"))
