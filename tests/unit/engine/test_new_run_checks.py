"""What a new run is refused for, and that runs from before such a rule can be resumed and used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ltds.benchmarking.cells import cells_of
from ltds.benchmarking.grid import Grid
from ltds.core.errors import ConfigError, DataError
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.engine.config import resolve
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.new_run_checks import check_new_run_on
from ltds.engine.start import refuse_existing, resume_run, train_new_run
from ltds.planning.begin import begin_run
from ltds.planning.run_plan import Choice, RunPlan
from toy import recorded, toy_config, toy_session, write_dataset, write_linked_dataset

FROZEN = {"name": "resnet10", "weights": "resnet10.pth", "frozen": 1}  # no such file: nothing is read before
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "fixed backbone": (
        {"optimizer": {"backbone_lr_scale": 0.0}},
        r"backbone_lr_scale to be above 0, .* set backbone\.frozen=4; .* backbone\.batchnorm=fixed",
    ),
    "last weights of swad": (
        {"averaging": "swad", "schedule": {"keep": "last"}},
        r"Expected schedule\.keep=best with averaging\.name=swad, .* but got 'last'",
    ),
    "too few epochs for swad": (
        {"averaging": "swad", "schedule": {"epochs": 2}},
        r"start_patience to be at most the number of epochs \(schedule\.epochs=2\), but got 3\. .* averaging\.name=ema",
    ),
    "frozen stages mixed": (
        {
            "method": {"mixstyle": {"p": 0.5, "stages": [1]}},
            "backbone": FROZEN,
        },
        r"method\.mixstyle\.stages to be stages that learn, from 2 on with backbone\.frozen=1",
    ),
}


@pytest.mark.parametrize(("settings", "message"), REFUSED.values(), ids=list(REFUSED))
def test_new_runs_are_refused_before_anything_is_written(
    toy: Manifest, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(ConfigError, match=message):
        train_new_run(run, toy_config(toy, **settings), toy)
    with pytest.raises(ConfigError, match=message):
        begin_run(run.path, toy, [toy_config(toy, **settings).to_dict()])
    with pytest.raises(ConfigError, match=message):
        cells_of(Grid(data="toy", methods=("agg",), settings=settings), run.path, lambda _: toy)
    assert not run.path.exists()


def test_runs_of_before_are_resumed_and_loaded(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, optimizer={"backbone_lr_scale": 0.0}, schedule={"epochs": 2, "steps_per_epoch": 1})
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=1)
    resume_run(run)
    assert load_model(run.path).classes == toy.classes


def test_augmentation_of_frozen_stages_needs_variants(toy: Manifest, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"data": {"augmentation": {"flip": 0.0}}, "backbone": FROZEN}
    message = r"data\.augmentation to be left out with backbone\.frozen=1 and data\.cached_variants=1, .*flip=0\.0"
    with pytest.raises(ConfigError, match=message):
        train_new_run(RunDirectory(tmp_path / "run"), toy_config(toy, **settings), toy)
    grid = Grid(data="toy", methods=("agg",), settings=settings)
    with pytest.raises(ConfigError, match=message):
        cells_of(grid, tmp_path, lambda _: toy)
    planned = {"agg": RunPlan((Choice("network", {"data.cached_variants": 4}, "four variants", "for this test"),))}
    assert len(cells_of(grid, tmp_path, lambda _: toy, plan=lambda *_: planned)) == 9, "a plan adds variants"
    assert not any(tmp_path.iterdir())


def test_augmentation_of_a_recipe_is_left_alone(toy: Manifest) -> None:
    """It is for whole networks."""
    bestiary, layer = replace(toy, name="bestiary"), {"backbone": FROZEN, "data": {"root": str(toy.root)}}
    config = resolve(layer, dataset=bestiary)
    assert config.data.augmentation.scale == (0.5, 1.0)
    check_new_run_on(bestiary, config)
    check_new_run_on(toy, toy_config(toy, backbone=FROZEN))
    with pytest.raises(ConfigError, match=r"data\.augmentation to be left out"):
        check_new_run_on(bestiary, resolve(layer, {"data": {"augmentation": {"flip": 0.0}}}, dataset=bestiary))


VALIDATED: dict[str, tuple[str, dict[str, Any], str]] = {  # method, settings, what the message names
    "patience": ("agg", {"schedule": {"patience": 1}}, r"schedule\.patience=1, which ends a phase"),
    "tau": ("tau-norm", {}, r"method 'tau-norm', which chooses a setting .* or use another method\."),
    "swad": ("agg", {"averaging": {"name": "swad"}}, r"averaging\.name=swad, .* or use averaging\.name=ema\."),
}


@pytest.mark.parametrize(("method", "settings", "named"), VALIDATED.values(), ids=list(VALIDATED))
def test_what_is_chosen_on_validation_images_needs_some_of_known_classes(
    toy: Manifest, tmp_path: Path, method: str, settings: dict[str, Any], named: str
) -> None:
    """A grid is refused as a whole, before another method is trained for hours."""
    config = toy_config(toy, method, **settings)
    check_new_run_on(toy, config)
    val, fox = SPLITS.index("val"), toy.classes.index("fox")
    none = replace(toy, split_ids=np.where(toy.split_ids == val, SPLITS.index("test"), toy.split_ids))
    only_open = replace(none, split_ids=np.where((toy.labels == fox) & (toy.domain_ids == 0), val, none.split_ids))
    message = f"validation images of known classes in the source domains for {named}"
    for manifest in (none, only_open):
        with pytest.raises(DataError, match=message):
            train_new_run(RunDirectory(tmp_path / "run"), config, manifest)
    with pytest.raises(ConfigError, match=message):
        cells_of(Grid(data="toy", methods=("crt", method), settings=settings), tmp_path, lambda _: none)
    assert not any(tmp_path.iterdir())
    check_new_run_on(none, toy_config(toy, "ncm"))


@pytest.mark.parametrize("estimate", ["none", "full"])
def test_too_few_domains_are_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, estimate: str
) -> None:
    """Features of all images may take an hour."""
    toy = write_dataset(tmp_path / "data")
    alone = {"ink": 0, "oil": 1, "wax": 1}
    two = replace(toy, domains=("ink", "oil"), domain_ids=np.array([alone[toy.domains[d]] for d in toy.domain_ids]))
    two.write()
    monkeypatch.setattr("ltds.planning.begin.plan_run", None)  # is not called
    given = {"method": {"name": "boda"}, **({} if estimate == "full" else {"data": {"held_out": "oil"}})}
    message = r"Expected at least 2 source domains for boda with these settings, but the task has 1 \((ink|oil)\)\."
    with pytest.raises(ConfigError, match=message):
        begin_run(tmp_path / "run", two, [given], estimate=estimate)
    grid = Grid(data="toy", methods=("agg", "boda"))
    with pytest.raises(ConfigError, match=message):
        cells_of(grid, tmp_path, lambda _: two, plan=lambda *_: pytest.fail("planned"))  # type: ignore[arg-type]


@pytest.mark.parametrize("estimate", ["none", "one"])
def test_a_run_records_the_held_out_domain_as_the_dataset_spells_it(tmp_path: Path, estimate: str) -> None:
    stored, typed = "Z\u00fcrich", "Zu\u0308rich"  # as a terminal gives it, and a file name of a Mac
    data = replace(write_dataset(tmp_path / "data"), domains=("ink", "oil", stored))
    data.write()
    quick = {"data": {"held_out": typed, "size": 16, "batch_size": 8}, "backbone": {"name": "tiny"}}
    quick |= {"schedule": {"epochs": 1, "steps_per_epoch": 1}, "run": {"threads": 1, "device": "cpu"}}
    said: list[str] = []
    run = begin_run(tmp_path / "run", data, [quick], estimate=estimate, say=said.append)
    held = run if estimate == "none" else RunDirectory(tmp_path / "run" / f"estimate-{stored}")
    assert (held.read_config()["data"]["held_out"], held.read_task().held_out) == (stored, stored)
    assert held.read_task().sources == ("ink", "oil")
    assert any(f"'{stored}'" in line for line in said)


def test_a_folder_with_something_else_is_refused_and_left_as_it_is(toy: Manifest, tmp_path: Path) -> None:
    """A typed `--out runs` for `--out runs/first` mixed a run with others, and removed their unfinished files."""
    unfinished = tmp_path / "runs" / "first" / "checkpoints" / ".last.safetensors.0123456789ab.part"
    unfinished.parent.mkdir(parents=True)
    unfinished.write_bytes(b"being written")
    with pytest.raises(
        ConfigError, match=r"new or empty folder, but it holds something else, such as 'first'"
    ) as error:
        train_new_run(RunDirectory(tmp_path / "runs"), toy_config(toy, "agg"), toy)
    assert error.value.arguments == ("out",)
    assert unfinished.read_bytes() == b"being written"


@pytest.mark.parametrize(
    "left", ["plan.json", "task.json", "environment.json", "FAILED.json", ".DS_Store", "checkpoints"]
)
def test_what_a_killed_start_leaves_does_not_matter(toy: Manifest, tmp_path: Path, left: str) -> None:
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    (run.path / left).mkdir() if left == "checkpoints" else (run.path / left).write_text("{}")
    refuse_existing(run)


def test_a_file_in_the_place_of_the_run_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(DataError, match="a folder that can be written to"):
        refuse_existing(RunDirectory(tmp_path / "run"))


def test_images_that_were_moved_are_told_from_damaged_ones(tmp_path: Path) -> None:
    """A resumed run advised to delete the line of every image from the manifest."""
    images, data = write_linked_dataset(tmp_path)
    run = recorded(session := toy_session(data), tmp_path / "run")
    train(session, run, stop_after=2)
    images.root.rename(tmp_path / "moved")
    with pytest.raises(DataError, match=r"leads to '.*photos', where nothing is any more\. Move the images back"):
        resume_run(run)
    (tmp_path / "moved").rename(images.root)
    resume_run(run)
    assert run.done
