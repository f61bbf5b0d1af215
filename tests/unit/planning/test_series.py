"""A series of runs is on one dataset, and belongs to one command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import ltds
from ltds.core.errors import CheckpointError, ConfigError, DataError
from ltds.core.locks import locked
from ltds.core.runs import RunDirectory
from ltds.data.features import write_features
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.planning import begin
from ltds.planning.series import RunSeries
from toy import toy_config, write_dataset

SHORT = {
    "backbone.name": "tiny",
    "run.threads": 1,
    "run.device": "cpu",
    "data.size": 16,
    "data.batch_size": 4,
    "schedule.epochs": 1,
    "schedule.steps_per_epoch": 2,
}
ON_FEATURES = {name: value for name, value in SHORT.items() if name not in ("backbone.name", "data.size")}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    monkeypatch.chdir(tmp_path)
    return write_dataset(tmp_path / "data")


def series(data: Manifest, method: str = "agg", **arguments: Any) -> RunDirectory:
    return ltds.train(data, out="r", method=method, **{"settings": SHORT, "estimate": "full", **arguments})


def forget_runs(*names: str) -> None:
    """As if they had never begun."""
    for name in names:
        shutil.rmtree(Path("r") / name)


def replace_images(data: Manifest) -> None:
    for path in data.paths:
        with Image.open(data.root / path) as image:
            pixels = np.asarray(image)
        Image.fromarray(255 - pixels).save(data.root / path)


def replace_rows(data: Manifest) -> None:
    header = json.loads((data.root / "manifest.json").read_text())
    del header["checksum"]
    (data.root / "manifest.json").write_text(json.dumps(header))
    rows = (data.root / "manifest.csv").read_text().splitlines()
    (data.root / "manifest.csv").write_text("\n".join(rows[:-1]) + "\n")


def replace_attributes(data: Manifest) -> None:
    file = data.root / "semantics" / "attributes.csv"
    file.write_text(file.read_text().replace("fox,4,0,1", "fox,4,0,0.9"))


@pytest.mark.parametrize(
    ("change", "method", "said"),
    [
        (
            replace_images,
            "agg",
            r"Expected the images that 'r' .* others under the same names\. Restore the images, or",
        ),
        (replace_rows, "agg", r"Expected the dataset that 'r' .* has other images, classes or splits\."),
        (replace_attributes, "ltds", r"Expected the class embeddings that 'r' .* have changed since\."),
    ],
)
def test_a_series_does_not_go_on_with_other_data(
    data: Manifest, change: Callable[[Manifest], None], method: str, said: str
) -> None:
    series(data, method)
    forget_runs("estimate-wax", "final")
    change(data)
    with pytest.raises(CheckpointError, match=said):
        ltds.train(resume="r")
    assert sorted(path.name for path in Path("r").iterdir()) == ["estimate-ink", "estimate-oil", "series.json"]
    content = json.loads(Path("r/series.json").read_text())
    del content["data"]
    Path("r/series.json").write_text(json.dumps(content))
    assert ltds.train(resume="r").done, "a series from before its data was recorded goes on"


def test_a_series_does_not_go_on_with_other_features(data: Manifest) -> None:
    def write(seed: int) -> None:
        values = np.random.default_rng(seed).normal(size=(len(data), 8)).astype(np.float32)
        write_features(Path("features.npz"), values, data.paths)

    write(0)
    series(data, settings=ON_FEATURES, features="features.npz")
    forget_runs("final")
    unfinished = RunDirectory(Path("r/estimate-wax"))
    unfinished.done_file.unlink()
    shutil.rmtree(unfinished.last_checkpoint.parent)  # without one, the run itself does not notice
    unfinished.journal_file.unlink()
    write(1)
    with pytest.raises(CheckpointError, match=r"Expected the features that 'r' was started with.*holds others now"):
        ltds.train(resume="r")
    write(0)
    assert ltds.train(resume="r").done


def test_a_series_is_not_begun_where_another_command_has_begun_one(
    data: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_run = begin.plan_run

    def rival(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(begin, "plan_run", plan_run)
        series(data, "bsce")
        return plan_run(*arguments, **options)

    for estimate in ("full", "none"):
        monkeypatch.setattr(begin, "plan_run", rival)
        with pytest.raises(ConfigError, match="it holds a series of runs") as caught:
            series(data, "agg", estimate=estimate)
        assert caught.value.resume == Path("r")
        runs = json.loads(Path("r/series.json").read_text())["runs"]
        assert {run["method"]["name"] for run in runs.values()} == {"bsce"}
        assert not RunDirectory(Path("r")).exists
        shutil.rmtree("r")


def test_a_series_has_one_process_at_a_time(data: Manifest) -> None:
    with locked(Path("r")), pytest.raises(CheckpointError, match="another process is training in it"):
        series(data)
    assert not Path("r").exists()
    series(data)
    with locked(Path("r")):
        assert ltds.train(resume="r").done, "nothing is left to train"
        forget_runs("final")
        with pytest.raises(CheckpointError, match="another process is training in it"):
            ltds.train(resume="r")


def written(data: Manifest, **changes: Any) -> Manifest:
    """The dataset with other splits, in a folder of its own: others are not trained on."""
    other = replace(data, root=Path("other"), **changes)
    other.root.mkdir(exist_ok=True)
    other.write()
    return other


@pytest.mark.parametrize(("estimate", "held_out"), [("full", None), ("one", "oil")])
def test_an_estimate_whose_final_model_cannot_be_trained_is_refused_at_once(
    data: Manifest, estimate: str, held_out: str | None
) -> None:
    external = np.where(data.domain_ids == data.domains.index("oil"), SPLITS.index("test"), data.split_ids)
    with pytest.raises(DataError, match=r"but 'oil' has none\. Hold out 'oil' without an estimate") as caught:
        series(written(data, split_ids=external), estimate=estimate, held_out=held_out)
    assert caught.value.arguments == ("estimate=none", "held_out=oil")
    all_trained = np.zeros_like(data.split_ids)
    with pytest.raises(DataError, match=r"test images, on which the final model of an estimate is tested") as caught:
        series(written(data, split_ids=all_trained, whole_held_out=True), estimate=estimate, held_out=held_out)
    assert caught.value.arguments == ("estimate=none", f"held_out={held_out or 'ink'}")
    with pytest.raises(DataError, match="Mark some with the split 'test'"):  # no domain can be tested either
        series(written(data, split_ids=all_trained), estimate=estimate, held_out=held_out)
    assert not Path("r").exists()


def test_folders_of_domains_differ_on_every_disk(data: Manifest) -> None:
    """In more than upper and lower case, and none of their names is too long."""
    domains = ["Rain", "rain", "RAIN", "雨" * 84, "雨" * 83 + "雪"]
    runs = RunSeries.create(Path("s"), toy_config(data), domains, data)
    names = list(runs.configs)
    assert len({name.casefold() for name in names}) == len(domains) + 1
    assert all(len(name.encode()) < 128 for name in names)
    assert [config["data"]["held_out"] for config in runs.configs.values()] == [*domains, ""]
