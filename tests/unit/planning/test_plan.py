"""The plan of a run: what is chosen for which images, what the user gives is kept, and a series of estimates."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import ltds
from ltds.core.durations import parse_duration, say_duration
from ltds.core.errors import CheckpointError, ConfigError, DataError, TrainingError
from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.datasets import find_recipe
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.engine.assemble import assemble
from ltds.engine.session import Session
from ltds.planning import begin, choose, class_texts, network, plan, stages
from ltds.planning.facts import DatasetFacts, dataset_facts
from ltds.planning.plan import is_planned, plan_run
from ltds.planning.run_plan import Choice, RunPlan
from ltds.planning.series import RunSeries
from ltds.planning.timing import ForwardOnly, StepTiming
from toy import toy_session

FACTS = DatasetFacts(
    images=1000,
    classes=10,
    sources=3,
    smallest_domain=200,
    smallest_domain_name="ink",
    largest_class=300,
    smallest_class=4,
    missing_pairs=0,
    shorter_side=227,
)
TINY = {"backbone.name": "tiny", "run.threads": 1, "run.device": "cpu", "data.size": 16, "data.batch_size": 4}
SHORT = {**TINY, "schedule.epochs": 1, "schedule.steps_per_epoch": 2}


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of two domains and three classes, whose colour tells the class."""
    monkeypatch.chdir(tmp_path)
    for domain, count in (("day", 8), ("night", 7)):
        for label, name in enumerate(("ant", "bee", "cat")):
            for i in range(count):
                rng = numpy_generator(0, "tests/photos", label, i)
                pixels = rng.integers(0, 60, size=(20, 24, 3)).astype(np.uint8)
                pixels[:, :, label] += np.uint8(120 if domain == "day" else 60)
                file = tmp_path / "photos" / domain / name / f"{i}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(file)
    return tmp_path / "photos"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("1h30m", 5400), ("2 h", 7200), (30, 30)]
)
def test_durations(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "10m!", "-5m", "0s", 0, float("inf")])
def test_no_durations(text: str | float) -> None:
    with pytest.raises(ConfigError, match="argument 'budget'"):
        parse_duration(text)


def test_durations_are_said_as_people_do() -> None:
    assert [say_duration(s) for s in (0.2, 40, 400, 9000)] == ["1 second", "40 seconds", "7 minutes", "2.5 hours"]


@pytest.mark.parametrize(
    ("change", "embeddings", "method"),
    [
        ({}, "from names", "ltds"),
        ({}, "", "bsce"),
        ({"missing_pairs": 1}, "", "dc"),
        ({"missing_pairs": 1, "smallest_class": 100}, "", "dc"),
        ({"sources": 1}, "from names", "bsce"),
        ({"sources": 1, "smallest_class": 100}, "from names", "agg"),
        ({"smallest_class": 100}, "", "agg"),
    ],
)
def test_the_method_follows_tail_domains_and_embeddings(change: dict[str, int], embeddings: str, method: str) -> None:
    name, reason = choose.choose_method(replace(FACTS, **change), embeddings)  # type: ignore[arg-type]
    assert name == method
    assert "training images a class" in reason


@pytest.mark.parametrize(
    ("side", "learning", "on_cpu", "size"),
    [
        (227, "pretrained", True, 96),
        (227, "pretrained", False, 224),
        (100, "scratch", True, 96),
        (20, "pretrained", True, 64),
        (20, "scratch", True, 16),
    ],
)
def test_the_size_follows_the_median_image(side: int, learning: network.Learning, on_cpu: bool, size: int) -> None:
    chosen = choose.choose_size(replace(FACTS, shorter_side=side), {}, learning, on_cpu)
    assert chosen is not None
    assert chosen.settings["data.size"] == size


def test_the_batch_follows_the_smallest_domain() -> None:
    def size(facts: DatasetFacts, times: int = 1) -> Any:
        chosen = choose.choose_batch(facts, {}, times, "pretrained", on_cpu=True)
        return chosen and (chosen.settings["data.batch_size"], "'ink'" in chosen.reason)

    assert size(FACTS) == (12, False)
    assert size(replace(FACTS, smallest_domain=7)) == (7, True)
    assert size(replace(FACTS, smallest_domain=7), times=2) == (3, True)
    assert size(replace(FACTS, smallest_domain=1)) == (2, True)  # training then says what is missing


def test_what_the_user_gives_is_not_chosen() -> None:
    given: Mapping[str, Any] = {
        "data": {"size": 32, "batch_size": 8, "augmentation": {"scale": [0.3, 1.0]}},
        "backbone": {"name": "tiny"},
        "optimizer": {"name": "adamw"},
        "averaging": "none",
    }
    assert choose.choose_size(FACTS, given, "scratch", True) is None
    assert choose.choose_size(FACTS, {}, "features", True) is None
    crops = choose.choose_size(FACTS, {"data": {"size": 96}}, "stages", True)
    assert crops is not None
    assert (crops.settings, crops.shown) == ({"data.cached_variants": 4}, "96 pixels")
    assert choose.choose_batch(FACTS, given, 1, "scratch", True) is None
    assert choose.choose_optimizer(given, "pretrained") is None
    assert choose.choose_averaging(given, 100, "features") is None
    decays = [choose.choose_averaging({}, steps, "scratch") for steps in (10, 50, 200, 5000)]
    assert [c and c.settings["averaging.decay"] for c in decays] == [0.5, 0.8, 0.95, 0.99]
    for schedule, keep in (({}, "last"), ({"keep": "best"}, None), ({"patience": 3}, None)):
        on_features = choose.choose_averaging({"schedule": schedule}, 100, "features")
        assert on_features is not None
        assert on_features.settings.get("schedule.keep") == keep
    chosen = choose.choose_optimizer({"schedule": {"decay": "cosine"}}, "pretrained")
    assert chosen is not None
    assert "schedule.milestones" not in chosen.settings


def chosen_settings(choice: Choice | None) -> dict[str, Any]:
    return {} if choice is None else choice.settings


@pytest.mark.parametrize(
    ("own", "left"),
    [
        ({"weight_decay": 0.001}, {"optimizer.name": "sgd", "optimizer.lr": 0.01, "schedule.milestones": [0.8]}),
        ({"name": "sgd"}, {"optimizer.lr": 0.01, "schedule.milestones": [0.8]}),
        ({"lr": 0.2}, {"optimizer.name": "sgd", "schedule.milestones": [0.8]}),
        ({"name": "adamw", "lr": 0.001}, {}),
    ],
)
def test_one_setting_of_the_optimizer_leaves_the_others_to_the_plan(own: dict[str, Any], left: dict[str, Any]) -> None:
    assert chosen_settings(choose.choose_optimizer({"optimizer": own}, "pretrained")) == left


@pytest.mark.parametrize(
    ("own", "left"),
    [
        ({"start": 0.5}, {"averaging.name": "ema", "averaging.decay": 0.9, "schedule.keep": "last"}),
        ({"name": "ema"}, {"averaging.decay": 0.9, "schedule.keep": "last"}),
        ({"decay": 0.7}, {"averaging.name": "ema", "schedule.keep": "last"}),
        ({"name": "swad"}, {}),
        ({"tolerance": 0.2}, {}),
        ("ema", {}),
    ],
)
def test_one_setting_of_the_averaging_leaves_the_others_to_the_plan(own: Any, left: dict[str, Any]) -> None:
    assert chosen_settings(choose.choose_averaging({"averaging": own}, 100, "features")) == left


def test_a_given_size_leaves_crops_and_first_layers_to_the_plan(toy: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "pretrained_is_installed", lambda: False)

    def planned(**data: Any) -> tuple[str, Any]:
        given = {"data": data}
        chosen = network.choose_network(toy, given, 600, on_cpu=True)
        layer = RunPlan(tuple(plan.shared_choices(FACTS, given, chosen, 1, True))).layer
        return layer["backbone"]["stem"], layer.get("data", {}).get("augmentation")

    assert planned(size=32) == ("small", {"scale": [0.5, 1.0]})
    assert planned(size=224, augmentation={"flip": 0.0}) == ("imagenet", {"scale": [0.5, 1.0]})
    assert planned(size=64, augmentation={"scale": [0.1, 1.0]}) == ("medium", None)
    assert planned() == ("medium", {"scale": [0.5, 1.0]})  # 96 pixels


@pytest.mark.parametrize(
    ("own", "name", "learning"),
    [
        ({"width": 32}, "resnet10", "scratch"),
        ({"batchnorm": "fixed"}, "efficientnet-lite0", "pretrained"),
    ],
)
def test_one_setting_of_the_backbone_leaves_its_name_to_the_plan(
    toy: Manifest, monkeypatch: pytest.MonkeyPatch, own: dict[str, Any], name: str, learning: str
) -> None:
    monkeypatch.setattr(network, "pretrained_is_installed", lambda: True)
    chosen = network.choose_network(toy, {"backbone": own}, 600, on_cpu=True)
    assert chosen.learning == learning
    assert chosen_settings(chosen.choice)["backbone.name"] == name


def test_a_run_with_one_setting_of_the_averaging_has_the_planned_rest(photos: Path) -> None:
    settings = {**SHORT, "averaging.start": 0.5, "optimizer.weight_decay": 0.001}
    config = ltds.train("photos", held_out="night", method="agg", settings=settings).read_config()
    assert config["averaging"] | {"name": "ema", "decay": 0.5, "start": 0.5} == config["averaging"]
    assert config["schedule"]["milestones"] == [0.6, 0.9]
    with pytest.raises(ConfigError, match="start has no effect"):
        ltds.train("photos", held_out="night", method="agg", settings={**settings, "averaging.name": "swad"})


def test_a_planned_run_too_short_for_swad_is_refused_before_anything_is_written(photos: Path) -> None:
    settings = {**TINY, "schedule.steps_per_epoch": 1000, "averaging.name": "swad"}
    with pytest.raises(ConfigError, match=r"start_patience to be at most the number of epochs \(schedule\.epochs=1\)"):
        ltds.train("photos", method="agg", settings=settings, out="run", estimate="full")
    assert not Path("run").exists()


def test_settings_of_the_method_never_contradict_the_user() -> None:
    assert choose.choose_method_settings("ltds", {}, "features") == {
        "method.inner_lr": 0.01,
        "method.weights.augmentation": 0.0,
    }
    plain = {"method": {"name": "ltds", "meta_test_domains": 0}}  # inner_lr would have no effect
    assert "method.inner_lr" not in choose.choose_method_settings("ltds", plain, "pretrained")
    given = {"method": {"joint_forward": False, "weights": {"z2s": 0.2}}}
    assert choose.choose_method_settings("ltds", given, "pretrained") == {
        "method.inner_lr": 0.01,
        "method.temperature": 0.2,
    }
    assert choose.choose_method_settings("agg", {}, "pretrained") == {"method.joint_forward": True}
    assert choose.choose_method_settings("mixstyle", {}, "pretrained") == {}  # it always takes all domains in one pass
    assert choose.choose_method_settings("ltds", {}, "scratch") == {"method.temperature": 0.2}
    assert choose.choose_method_settings("agg", {}, "scratch") == {}


@pytest.mark.parametrize(
    ("name", "own", "learning", "classes", "chosen"),
    [
        ("ltds", {}, "scratch", 3, {"method.neighbours": 3}),
        ("ltds", {}, "scratch", 6, {}),
        ("ltds", {"neighbours": 4}, "scratch", 3, {}),  # refused with a sentence of its own
        ("ltds", {}, "pretrained", 3, {}),  # without augmentation there are no neighbours
        ("ltds", {"weights": {"augmentation": 0.5}}, "pretrained", 3, {"method.neighbours": 3}),
        ("ltds-paper", {}, "features", 3, {"method.neighbours": 3}),
        ("ltds-hidden-names", {}, "scratch", 6, {}),
        ("agg", {}, "scratch", 3, {}),
    ],
)
def test_neighbours_are_not_more_than_the_classes(
    toy: Manifest, name: str, own: dict[str, Any], learning: network.Learning, classes: int, chosen: dict[str, int]
) -> None:
    rows = np.flatnonzero(toy.labels < classes)
    columns = {column: getattr(toy, column)[rows] for column in ("labels", "domain_ids", "split_ids")}
    paths = tuple(toy.paths[row] for row in rows)
    manifest = replace(toy, classes=toy.classes[:classes], paths=paths, **columns)
    given = {"method": {"name": name, **own}}
    settings = choose.choose_method_settings(name, given, learning)
    assert choose.choose_neighbours(name, given, settings, manifest) == chosen


def test_hidden_names_have_the_classes_of_the_sources_as_neighbours(toy: Manifest) -> None:
    chosen = choose.choose_neighbours("ltds-hidden-names", {}, {"method.neighbours": 6}, toy)
    assert chosen == {"method.neighbours": 5}, "'fox' is in one domain only, which may be held out"


def test_a_plan_for_three_classes_from_scratch_can_be_trained(photos: Path) -> None:
    settings = {**SHORT, "averaging.start": 0.5}
    run = ltds.train("photos", out="r", method="ltds", settings=settings)
    assert run.read_config()["method"]["neighbours"] == 3
    assert json.loads(run.plan_file.read_text())["choices"]


def test_one_class_is_refused_before_anything_is_computed(photos: Path) -> None:
    for domain in ("day", "night"):
        for name in ("bee", "cat"):
            shutil.rmtree(photos / domain / name)
    said: list[str] = []
    with pytest.raises(DataError, match=r"have only 'ant'\. Two classes are needed: add images of another one"):
        ltds.train("photos", out="r", say=said.append)
    assert said == []
    found = ltds.check(photos)
    assert any("only one class ('ant'), but two classes are needed" in text for text in found.problems)
    assert found.training is None


def test_the_time_decides_about_the_steps() -> None:
    timing, forward_only = StepTiming(step=0.5, image=0.01), ForwardOnly(20, 50)
    assert timing.run(100, 10, forward_only) == pytest.approx(5 + 50 + 0.01 * (20 * 11 + 100))
    assert plan._affordable(100, timing, 600, forward_only, 1.0)[0] == 100
    fewer, reason = plan._affordable(5000, timing, 600, forward_only, 1.0)
    assert timing.run(fewer, plan.EPOCHS, forward_only) <= 600 < timing.run(fewer + 2, plan.EPOCHS, forward_only)
    assert "5000 would suit" in reason
    assert plan._affordable(5000, timing, 1, forward_only, 1.0)[0] == plan.FEWEST_STEPS


def test_what_a_method_looks_at_between_steps_takes_time_as_well(toy: Manifest) -> None:
    """boda sees all training images once an epoch, from a tenth of the run on."""
    session = toy_session(toy, "boda", schedule={"epochs": 10, "steps_per_epoch": 3})
    train, val, test = (len(session.rows(split)) for split in ("train", "val", "test"))
    assert ForwardOnly.of(session) == ForwardOnly(val, test, fitted=9 * train)
    assert ForwardOnly.of(toy_session(toy, "agg")) == ForwardOnly(val, test)
    timing = StepTiming(step=0.5, image=0.1)
    longer = timing.run(30, 10, ForwardOnly.of(session)) - timing.run(30, 10, ForwardOnly(val, test))
    assert longer == pytest.approx(0.1 * 9 * train)
    assert timing.steps_within(600, 10, ForwardOnly.of(session)) < timing.steps_within(600, 10, ForwardOnly(val, test))


def test_facts_of_the_toy(toy: Manifest) -> None:
    facts = dataset_facts(toy, "wax")
    assert (facts.images, facts.sources, facts.classes) == (38, 2, 5)
    assert (facts.smallest_domain, facts.smallest_domain_name) == (16, "oil")
    assert (facts.largest_class, facts.smallest_class, facts.shorter_side) == (17, 1, 16)


def test_published_datasets_keep_their_recipes(toy: Manifest) -> None:
    assert is_planned(toy)
    assert is_planned(replace(toy, provenance={"builder": "folder"}))
    called_so = replace(toy, name="bestiary", provenance={"builder": "lists"})
    assert is_planned(called_so)
    assert find_recipe(called_so).settings == {}
    assert not is_planned(replace(toy, provenance={"builder": "pacs-odg"}))
    assert not is_planned(replace(toy, name="bestiary"))


def test_a_plan_measures_and_fills_in_the_rest(toy: Manifest) -> None:
    given = {"data": {"held_out": "wax"}, "backbone": {"name": "tiny"}, "run": {"threads": 1, "device": "cpu"}}
    made, config = plan_run(toy, given, budget=3600)
    assert config.method_name == "ltds"  # the toy has attributes
    assert config.data.size == 16
    assert config.averaging.name == "ema"
    assert made.steps == config.schedule.epochs * config.schedule.steps_per_epoch == plan.LENGTHS["scratch"].fewest
    assert made.seconds >= made.steps * made.seconds_per_step > 0
    assert [choice.what for choice in made.choices] == [
        "method",
        "image size",
        "batch",
        "learning",
        "length",
        "averaging",
    ]
    assert any("measured here" in line for line in made.lines())
    given["schedule"] = {"epochs": 2}
    short, config = plan_run(toy, given, budget=3600)
    assert config.schedule.epochs == 2
    assert short.steps == 2 * config.schedule.steps_per_epoch == 2 * 2  # 38 images in batches of 2 x 12


def test_a_loss_that_explodes_in_the_measurement_is_not_said_to_be_of_a_run(photos: Path) -> None:
    with pytest.raises(TrainingError) as caught:
        ltds.train(photos, out="run", method="agg", settings={**SHORT, "optimizer.lr": 1e30})
    assert re.fullmatch(
        r"Expected a finite loss at step 2, but the term .* became \w+\. This happened while steps were "
        r"measured, before the run began, and nothing of it was written\. Set a smaller optimizer\.lr\.",
        str(caught.value),
    )
    assert not Path("run").exists()


@pytest.mark.parametrize("runs", [1, 2])
def test_what_is_computed_before_training_is_taken_from_the_budget(
    toy: Manifest, monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    clock = [0.0]

    def slow_assemble(*arguments: Any) -> Session:
        clock[0] += 560  # as frozen stages of many images take
        return assemble(*arguments)

    monkeypatch.setattr(plan, "time", SimpleNamespace(perf_counter=lambda: clock[0]), raising=False)
    monkeypatch.setattr(plan, "assemble", slow_assemble)
    monkeypatch.setattr(plan, "measure", lambda session: StepTiming(step=0.5, image=0.0))
    given = {"data": {"held_out": "wax"}, "backbone": {"name": "tiny"}, "run": {"threads": 1, "device": "cpu"}}
    made, _ = plan_run(toy, given, budget=600, runs=runs)
    assert runs * 5 + runs * 20 * 0.5 <= made.seconds <= 40
    (length,) = [choice for choice in made.choices if choice.what == "length"]
    assert f"the time ({40 // runs} seconds for this run)" in length.reason


def test_a_plan_as_lines_and_as_tables() -> None:
    chosen = Choice("batch", {"data.batch_size": 4, "data.size": 16}, "4 images", "few images")
    made = RunPlan((chosen,), steps=10, seconds_per_step=0.5, seconds=120)
    assert made.layer == {"data": {"batch_size": 4, "size": 16}}
    assert made.lines() == [
        "  batch   4 images  few images",
        "  time    about 2 minutes  10 steps of 0.50 s, measured here, and the evaluation",
    ]
    assert made.to_dict()["choices"][0]["settings"] == chosen.settings


def test_embeddings_of_the_dataset_come_first(toy: Manifest, tmp_path: Path) -> None:
    assert class_texts.find_embeddings(toy).source == "from the dataset's attributes"
    bare = replace(toy, root=tmp_path)
    assert class_texts.find_embeddings(replace(bare, classes=("0", "1", "2", "3", "4", "5"))).why.startswith("some")
    (tmp_path / "semantics").mkdir()
    (tmp_path / "semantics" / "a.npz").write_bytes(b"")
    assert class_texts.find_embeddings(bare) == ("'a.npz' of the dataset", "", "")
    (tmp_path / "semantics" / "minilm.npz").write_bytes(b"")
    assert class_texts.find_embeddings(bare).table == str(tmp_path / "semantics" / "minilm.npz")


def test_without_the_extras_no_embeddings_and_no_pretrained_network(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_texts, "find_spec", lambda name: None)
    monkeypatch.setattr(network, "find_spec", lambda name: None)
    assert "pip install" in class_texts.find_embeddings(replace(toy, root=tmp_path)).why
    chosen = network.choose_network(toy, {}, 600, on_cpu=True)
    assert chosen.learning == "scratch"
    assert chosen.choice is not None
    assert chosen.choice.settings == {"backbone.name": "resnet10"}
    assert choose.choose_stem(32) == {"backbone.stem": "small"}


@pytest.mark.parametrize(
    ("given", "on_cpu", "learning"),
    [
        ({"data": {"features": "x.npz"}}, True, "features"),
        ({"backbone": {"name": "resnet18", "weights": "x.pth"}}, True, "pretrained"),
        ({"backbone": {"name": "resnet18", "weights": "x.pth", "frozen": 2}}, True, "stages"),
        ({"backbone": {"name": "tiny"}}, True, "scratch"),
        ({}, False, "pretrained"),
        ({"data": {"size": 64}}, True, "pretrained"),  # whoever names a size wants to train on images
    ],
)
def test_what_is_trained(
    toy: Manifest, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], on_cpu: bool, learning: str
) -> None:
    monkeypatch.setattr(network, "find_spec", lambda name: name)
    assert network.choose_network(toy, given, 600, on_cpu=on_cpu).learning == learning


@pytest.mark.parametrize(
    ("method", "images", "pays"),
    [
        ("", 2000, True),
        ("ltds", 2000, True),
        ("ltds", 1999, False),
        ("daml", 2000, False),
        ("epi-fcr", 2000, False),
        ("ltds.methods.agg:Agg", 2000, True),  # named as a class from outside is
    ],
)
def test_the_work_of_a_last_stage(toy: Manifest, method: str, images: int, pays: bool) -> None:
    facts = replace(dataset_facts(toy, "wax"), images=images)
    given: dict[str, Any] = {"data": {"batch_size": 4}, "method": {"name": method} if method else {}}
    work = plan._stage_work(toy, facts, given, runs=7)
    train, val, test = (len(toy.rows(split)) for split in ("train", "val", "test"))
    steps = 5 * 2000 // (2 * 4)  # five passes over the images of two sources
    expected = stages.StageWork(len(toy) + 3 * train, 7 * steps * 2 * 4, 7 * (11 * val + test))
    assert work == (expected if pays else None)  # daml and epi-fcr take several passes in a step
    assert stages.StagePace(0.1, 0.01, 0.001).seconds(stages.StageWork(10, 200, 5000)) == pytest.approx(1 + 2 + 5)


@pytest.mark.parametrize(
    ("given", "allowed", "learning"),
    [({}, 1.0, "stages"), ({}, 0.7, "features"), ({"data": {"features": "x.npz"}}, 1.0, "features")],
)
def test_the_last_stage_is_trained_where_the_time_allows(
    toy: Manifest, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], allowed: float, learning: str
) -> None:
    monkeypatch.setattr(network, "find_spec", lambda name: name)
    monkeypatch.setattr(network, "measure_stages", lambda name: stages.StagePace(0.1, 0.1, 0.1))
    monkeypatch.setattr(network, "_computed_size", lambda *arguments: 224)
    work = stages.StageWork(100, 600, 100)  # 80 seconds, of 80 % of the budget
    chosen = network.choose_network(toy, given, 100 * allowed + 1e-9, on_cpu=True, stage_work=work)
    assert chosen.learning == learning
    without = network.choose_network(toy, given, 1e9, on_cpu=True)  # a comparison must not depend on the time
    assert without.learning == "features"


def test_a_planned_last_stage_learns(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs the extra 'efficientnet'")
    monkeypatch.setattr(plan, "ENOUGH_FOR_A_STAGE", 10)
    said: list[str] = []
    settings = {"schedule.epochs": 1, "schedule.steps_per_epoch": 2, "run.threads": 1}
    arguments: dict[str, Any] = {"method": "bsce", "device": "cpu", "budget": "1h", "settings": settings}
    run = ltds.train("photos", held_out="night", say=said.append, **arguments)
    config = run.read_config()
    assert (config["backbone"]["frozen"], config["data"]["size"], config["data"]["cached_variants"]) == (3, 160, 4)
    assert config["schedule"]["keep"] == "last"
    assert any("last stage" in line for line in said)
    assert any("160 pixels" in line and "4 crops" in line for line in said)
    assert not any("Computing features" in line for line in said)
    assert len(ltds.load_model(run.path, device="cpu").predict(["photos/day/ant/0.png"])) == 1


def test_frozen_stages_alone_leave_the_network_to_the_plan(photos: Path) -> None:
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs the extra 'efficientnet'")
    settings = {
        "schedule.epochs": 1,
        "schedule.steps_per_epoch": 1,
        "run.threads": 1,
        "backbone.frozen": 4,
        "data.size": 64,
    }
    lines: list[str] = []
    run = ltds.train("photos", held_out="night", method="agg", device="cpu", settings=settings, say=lines.append)
    why = "backbone.frozen without a backbone.name means this one; its ImageNet weights are installed here"
    choices = json.loads(run.plan_file.read_text())["choices"]
    assert [choice["what"] for choice in choices[:2]] == ["method", "network"]
    assert (choices[1]["shown"], choices[1]["reason"]) == ("efficientnet-lite0, pretrained", why)
    assert any(line.startswith("  network ") and line.endswith(why) for line in lines)
    backbone, data = run.read_config()["backbone"], run.read_config()["data"]
    assert (backbone["name"], backbone["weights"], backbone["frozen"]) == ("efficientnet-lite0", "imagenet", 4)
    assert (data["size"], data["cached_variants"]) == (64, 4)


def test_half_precision_is_for_gpus() -> None:
    chosen = choose.choose_gpu_precision({}, on_cpu=False)
    assert chosen is not None
    assert chosen.settings == {"run.precision": "auto"}
    assert choose.choose_gpu_precision({}, on_cpu=True) is None
    assert choose.choose_gpu_precision({"run": {"precision": "float32"}}, on_cpu=False) is None


def test_mixstyle_needs_images() -> None:
    assert plan.needs_images({"method": {"name": "mixstyle"}})
    assert plan.needs_images({"method": {"name": "agg", "mixstyle": {"p": 0.1}}})
    assert not plan.needs_images({"method": {"name": "agg"}})
    assert not plan.needs_images({})


def test_the_features_fit_into_the_time() -> None:
    assert [network.affordable_size(0.1, 1000, s) for s in (100, 60, 40, 1)] == [224, 160, 128, 96]


def test_on_a_cpu_features_are_computed_once(photos: Path) -> None:
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs the extra 'efficientnet'")
    said: list[str] = []
    settings = {"schedule.epochs": 1, "schedule.steps_per_epoch": 2, "run.threads": 1}
    arguments: dict[str, Any] = {"method": "bsce", "device": "cpu", "budget": "2m", "settings": settings}
    run = ltds.train("photos", held_out="night", say=said.append, **arguments)
    assert any("Computing features" in line for line in said)
    assert run.read_config()["backbone"]["name"] == "adapter"
    (file,) = Path("data/photos/features").glob("*.npz")
    written = file.stat().st_mtime_ns
    said.clear()
    ltds.train("photos", held_out="day", say=said.append, **arguments)
    assert not any("Computing features" in line for line in said)
    assert file.stat().st_mtime_ns == written
    assert len(ltds.load_model(run.path, device="cpu").predict(["photos/day/ant/0.png"])) == 1


def test_training_from_a_folder_says_what_it_does(photos: Path) -> None:
    said: list[str] = []
    run = ltds.train("photos", held_out="night", method="agg", settings=SHORT, say=said.append)
    assert run.path == Path("runs/photos")
    text = "\n".join(said)
    assert "photos: 45 images of 3 classes in 2 domains" in text
    assert "'night' is held out: none of its images is used in training; all 21 of them are test images" in text
    assert "agg" in text
    assert "measured here" in text
    assert run.read_metrics()["per_domain"]["night"]["known_images"] == 21
    recorded = json.loads(run.plan_file.read_text())
    assert recorded["steps"] == 2
    assert run.read_config()["averaging"]["name"] == "ema"
    assert ltds.train("photos", held_out="night", method="agg", settings=SHORT).path == Path("runs/photos-2")


def test_an_estimate_holds_out_each_domain_and_can_be_continued(photos: Path) -> None:
    said: list[str] = []
    arguments: dict[str, Any] = {"method": "bsce", "settings": SHORT, "say": said.append}
    final = ltds.train("photos", out="r", estimate="full", **arguments)
    assert final.path == Path("r/final")
    assert final.read_task().held_out is None
    runs = [RunDirectory(Path("r") / name) for name in ("estimate-day", "estimate-night")]
    assert [run.read_task().held_out for run in runs] == ["day", "night"]
    assert any("Held out in turn, for an honest estimate: 'day', 'night'" in line for line in said)
    assert any("3 runs of about" in line for line in said)
    with pytest.raises(ConfigError, match="holds a series of runs"):
        ltds.train("photos", out="r", estimate="full", **arguments)
    final.done_file.unlink()
    journal = runs[0].journal_file.read_bytes()
    plan = runs[1].plan_file.read_text()
    shutil.rmtree(runs[1].path)  # as if it had never begun
    assert ltds.train(resume="r").done
    assert runs[1].done
    assert runs[1].plan_file.read_text() == plan == final.plan_file.read_text()
    assert runs[0].journal_file.read_bytes() == journal
    (Path("r") / "series.json").write_text('{"format": 1, "runs": {"../x": {}}}')
    with pytest.raises(CheckpointError, match="list the runs of a series"):
        RunSeries.read(Path("r"))
    (Path("r") / "series.json").write_text('{"format": 1, "runs": {}}')
    assert RunSeries.read(Path("r")).plan is None, "written before plans were kept there"
    (Path("r") / "series.json").write_text('{"format": 1, "runs": {}, "plan": 3}')
    with pytest.raises(CheckpointError, match="list the runs of a series"):
        RunSeries.read(Path("r"))


def test_one_domain_is_not_held_out_in_turn(toy: Manifest) -> None:
    assert begin.describe_test(toy, "wax", ["wax"]).startswith("Held out, for an honest estimate: 'wax'. Then")


def test_the_remedy_for_an_estimate_without_a_domain_is_one_that_works(photos: Path) -> None:
    with pytest.raises(ConfigError, match="Name one, or choose 'full'") as caught:
        ltds.train("photos", out="r", settings=SHORT, estimate="one")
    assert caught.value.arguments == ("held_out",)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"estimate": "some"}, "one of full, one, none"),
        ({"estimate": "one"}, "Expected a held-out domain"),
        ({"estimate": "full", "held_out": "day"}, "Expected no held-out domain"),
        ({"budget": "soon"}, "a time such as 90s"),
        ({"held_out": "dusk"}, "Choices: day, night"),
    ],
)
def test_requests_that_cannot_be_met(photos: Path, arguments: dict[str, str], said: str) -> None:
    with pytest.raises((ConfigError, DataError), match=said):
        ltds.train("photos", out="r", settings=SHORT, **arguments)  # type: ignore[arg-type]
    assert not Path("r").exists()


def test_a_budget_for_a_recipe_is_refused(toy: Manifest, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="only for images of your own, but 'bestiary'"):
        ltds.train(replace(toy, name="bestiary"), out=tmp_path / "r", budget="1m", settings=SHORT)


def test_a_manifest_that_is_not_in_its_folder_is_refused(toy: Manifest, tmp_path: Path) -> None:
    """A run on it could not be resumed: that reads the dataset from its folder."""
    other = np.where(toy.split_ids == SPLITS.index("val"), SPLITS.index("train"), toy.split_ids)
    for unwritten in (replace(toy, split_ids=other), replace(toy, root=tmp_path)):
        with pytest.raises(DataError, match=r"Write it first, .* dataclasses\.replace\(manifest, root=folder\)"):
            ltds.train(unwritten, out=tmp_path / "r", settings=SHORT)


def test_one_domain_trains_without_a_held_out_one(photos: Path) -> None:
    said: list[str] = []
    run = ltds.train("photos/day", settings=SHORT, say=said.append)
    assert run.read_config()["method"]["name"] == "agg"
    (line,) = (line for line in said if line.startswith("No domain is held out"))
    assert line.endswith("not measured; to measure it, add images of a second domain."), "an estimate is refused"
    with pytest.raises(ConfigError, match="at least two domains"):
        ltds.train("photos/day", out="r", estimate="full", settings=SHORT)


@pytest.mark.parametrize(
    ("validated", "arguments", "said"),
    [
        (("ink", "oil", "wax"), {}, False),
        ((), {}, True),
        (("wax",), {}, False),
        (("wax",), {"held_out": "wax"}, True),
        (("wax", "oil"), {"estimate": "full"}, False),
        (("wax",), {"estimate": "full"}, True),
    ],
)
def test_a_run_without_validation_images_says_what_it_lacks(
    toy: Manifest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    validated: tuple[str, ...],
    arguments: dict[str, str],
    said: bool,
) -> None:
    def stop(*_: object) -> None:
        raise ConfigError("far enough")

    monkeypatch.setattr(begin, "_plan", stop)
    kept = np.isin(toy.domain_ids, [toy.domains.index(domain) for domain in validated])
    splits = np.where(~kept & (toy.split_ids == SPLITS.index("val")), SPLITS.index("train"), toy.split_ids)
    lines: list[str] = []
    data = replace(toy, split_ids=splits, root=tmp_path)
    data.write()
    with pytest.raises(ConfigError, match="far enough"):
        ltds.train(data, out=tmp_path / "run", say=lines.append, **arguments)  # type: ignore[arg-type]
    assert any("will always name a class" in line for line in lines) == said


@pytest.mark.parametrize(
    "other",
    [
        {"data": "bestiary"},
        {"out": "runs/other"},
        {"config": "other.toml"},
        {"budget": "5m"},
        {"estimate": "full"},
        {"settings": {"optimizer.lr": 0.1}},
        {"seed": 0},
        {"features": "f.npz"},
        {"tensorboard": True},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_run_is_resumed_with_its_own_settings_only(other: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Expected argument 'resume' alone, but got others with it"):
        ltds.train(resume="r", **other)
    with pytest.raises(CheckpointError, match=r"'r"):
        ltds.train(resume="r", settings={}, trust=["a"], ranks=2)
