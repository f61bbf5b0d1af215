"""The plan of a run: every setting that the user leaves open, chosen for the dataset, the machine and the time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ltds.core.config import merge, nested
from ltds.core.durations import say_duration
from ltds.core.progress import SILENT, Progress, Say, say_nothing
from ltds.data.datasets import BUILDERS, OWN_IMAGES
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.config import RunConfig, resolve
from ltds.engine.device import choose_device
from ltds.engine.threads import threads_restored
from ltds.methods.registry import find_method
from ltds.planning import choose
from ltds.planning.class_texts import FoundEmbeddings, find_embeddings
from ltds.planning.facts import DatasetFacts, dataset_facts
from ltds.planning.network import ChosenNetwork, Learning, choose_network
from ltds.planning.run_plan import Choice, Given, RunPlan
from ltds.planning.stages import VARIANTS, StageWork
from ltds.planning.timing import ForwardOnly, StepTiming, measure

EPOCHS = 10  # how often a planned run is validated
FEWEST_STEPS = 20
DEFAULT_BUDGET = 600.0
# Training images from which on the last stage of a pretrained network is trained instead of a network on features: with
# the 2,300 to 3,200 of PACS-ODG this gained 7 points in unseen domains, with about 530 of PACS 3, and one domain lost 6
# (docs/own-data.md).
ENOUGH_FOR_A_STAGE = 2000


class Passes(NamedTuple):
    """How often a run sees the training images, and the limits on its steps."""

    passes: int
    fewest: int
    most: int


LENGTHS: dict[Learning, Passes] = {
    "features": Passes(30, 500, 3000),
    "stages": Passes(5, 300, 2000),
    "pretrained": Passes(10, 200, 2000),
    "scratch": Passes(40, 400, 6000),
}


def is_planned(manifest: Manifest) -> bool:
    """Whether runs on this dataset are planned: datasets of the user are, published ones keep their recipes.

    By its builder, where it is known: a folder of the user's images may be called pacs.
    """
    builder = manifest.provenance.get("builder", "")
    return builder in OWN_IMAGES or (manifest.name not in BUILDERS and builder not in BUILDERS)


@threads_restored()
def plan_run(
    manifest: Manifest,
    given: Given,
    *,
    budget: float = DEFAULT_BUDGET,
    runs: int = 1,
    progress: Progress = SILENT,
    say: Say = say_nothing,
) -> tuple[RunPlan, RunConfig]:
    """A plan for what `given` (the user's settings, as nested tables) leaves open, and the settings of the run.

    Takes a few real steps to measure the time. Class embeddings and features are computed first if they are needed.
    `runs`: how many runs with these settings share the budget, in seconds. What is computed first, and the measurement,
    are taken from it.
    """
    started = time.perf_counter()
    held_out = given.get("data", {}).get("held_out") or None
    facts = dataset_facts(manifest, held_out)
    on_cpu = choose_device(given.get("run", {}).get("device", "auto")).type == "cpu"
    work, images = _stage_work(manifest, facts, given, runs), needs_images(given)
    network = choose_network(
        manifest, given, budget, on_cpu=on_cpu, images=images, stage_work=work, progress=progress, say=say
    )
    method = _method_choice(manifest, facts, given, network.learning)
    name = method.settings.get("method.name") or _method_name(given)
    shared = shared_choices(facts, given, network, find_method(name).method.batches_per_step, on_cpu)
    precision = choose.choose_gpu_precision(given, on_cpu)
    choices = [method, *shared, *([precision] if precision else [])]

    def settle(steps: Choice | None) -> tuple[RunPlan, RunConfig]:
        return settle_plan(manifest, given, choices, steps, network.learning)

    wanted = wanted_steps(facts, given, settle(None)[1].data.batch_size, network.learning)
    _, trial = settle(steps_choice(given, wanted, ""))
    say("Measuring a few steps ...")
    session = assemble(trial, manifest, progress)
    timing, forward_only = measure(session), ForwardOnly.of(session)
    whole = session.steps / (trial.schedule.epochs * trial.schedule.steps_per_epoch)  # phases beyond the first
    del session
    left = (budget - (time.perf_counter() - started)) / runs
    steps, reason = _affordable(wanted, timing, left, forward_only, whole)
    plan, config = settle(steps_choice(given, steps, reason))
    total = round(config.schedule.epochs * config.schedule.steps_per_epoch * whole)
    seconds = runs * timing.run(total, config.schedule.epochs, forward_only)
    return replace(plan, steps=total, seconds_per_step=timing.step, seconds=seconds), config


def settle_plan(
    manifest: Manifest, given: Given, choices: list[Choice], steps: Choice | None, learning: Learning
) -> tuple[RunPlan, RunConfig]:
    """The plan of these choices, the length and an averaging that suits it; and the settings of the run."""
    folder = {"data": {"root": str(manifest.root.resolve())}}
    plan = RunPlan((*choices, *([steps] if steps else [])))
    schedule = resolve(plan.layer, given, folder, dataset=manifest).schedule
    averaging = choose.choose_averaging(given, schedule.epochs * schedule.steps_per_epoch, learning)
    plan = RunPlan((*plan.choices, *([averaging] if averaging else [])))
    return plan, resolve(plan.layer, given, folder, dataset=manifest)


def shared_choices(
    facts: DatasetFacts, given: Given, network: ChosenNetwork, batches_per_step: int, on_cpu: bool
) -> list[Choice]:
    """The network, the size of images, the batch and the learning rate, where the user leaves them open."""
    learning, backbone = network.learning, network.choice
    size = choose.choose_size(facts, given, learning, on_cpu)
    if backbone is not None and learning == "scratch" and "stem" not in given.get("backbone", {}):
        data = merge(nested(size.settings) if size else {}, given)["data"]
        backbone = replace(backbone, settings={**backbone.settings, **choose.choose_stem(data["size"])})
    choices = (
        backbone,
        size,
        choose.choose_batch(facts, given, batches_per_step, learning, on_cpu),
        choose.choose_optimizer(given, learning),
    )
    return [choice for choice in choices if choice is not None]


def _method_choice(manifest: Manifest, facts: DatasetFacts, given: Given, learning: Learning) -> Choice:
    name = _method_name(given)
    if name:
        return Choice("method", settings_of_method(manifest, name, given, learning), name, "as you asked")
    asked = given.get("semantics", {}).get("table")
    found = FoundEmbeddings("as you asked") if asked else find_embeddings(manifest)
    name, reason = choose.choose_method(facts, found.source)
    if found.why and facts.sources >= 2:
        reason = f"{reason}: {found.why}"
    settings = {"method.name": name, **_suited_settings(manifest, name, given, learning)}
    if found.table and name == "ltds":
        settings["semantics.table"] = found.table
    return Choice("method", settings, name, reason)


def settings_of_method(manifest: Manifest, name: str, given: Given, learning: Learning) -> dict[str, Any]:
    """Settings for a method that the user chose; class embeddings are made if it uses them and the dataset has none."""
    settings = _suited_settings(manifest, name, given, learning)
    layer = merge({"data": {"root": str(manifest.root)}}, given, {"method": {"name": name}})
    if given.get("semantics", {}).get("table") or not find_method(name).method.uses_embeddings(resolve(layer).method):
        return settings
    table = find_embeddings(manifest).table
    return {**settings, "semantics.table": table} if table else settings


def _suited_settings(manifest: Manifest, name: str, given: Given, learning: Learning) -> dict[str, Any]:
    """Settings of the method that suit the network and the number of classes."""
    settings = choose.choose_method_settings(name, given, learning)
    return {**settings, **choose.choose_neighbours(name, given, settings, manifest)}


def _method_name(given: Given) -> str:
    method = given.get("method", {})
    return str(method.get("name", "") if isinstance(method, Mapping) else method)


def needs_images(given: Given) -> bool:
    """Whether the user's method works inside a network for images: MixStyle mixes its feature maps."""
    name, own = _method_name(given), given.get("method", {})
    if not name:
        return False
    mixing = merge(find_method(name).settings, own if isinstance(own, Mapping) else {}).get("mixstyle", {})
    return bool(mixing.get("p") if isinstance(mixing, Mapping) else mixing)


def _stage_work(manifest: Manifest, facts: DatasetFacts, given: Given, runs: int) -> StageWork | None:
    """What training the last stage of a network would take; None where it does not pay or was not measured.

    That is with few images, and for methods whose steps are known to take more than one pass. A method from outside
    does not say: it gets the network of the methods that it is compared with, and its steps are measured.
    """
    name = _method_name(given)
    if facts.images < ENOUGH_FOR_A_STAGE or (name and find_method(name).passes not in ("K", "")):
        return None
    chosen = choose.choose_batch(facts, given, 1, "stages", on_cpu=True)
    batch_size = chosen.settings["data.batch_size"] if chosen else int(given["data"]["batch_size"])
    steps = wanted_steps(facts, given, batch_size, "stages")
    counts = {split: len(manifest.rows(split)) for split in ("train", "val", "test")}
    return StageWork(
        frozen=len(manifest) + (VARIANTS - 1) * counts["train"],
        learned=runs * steps * facts.sources * batch_size,
        predicted=runs * (counts["val"] * (EPOCHS + 1) + counts["test"]),
    )


def wanted_steps(facts: DatasetFacts, given: Given, batch_size: int, learning: Learning) -> int:
    """Steps that suit the number of images, without a look at the time; what the user gives is kept."""
    schedule = given.get("schedule", {})
    one_pass = math.ceil(facts.images / (facts.sources * batch_size))
    if "epochs" in schedule:
        return int(schedule["epochs"]) * int(schedule.get("steps_per_epoch", one_pass))
    rule = LENGTHS[learning]
    return min(rule.most, max(rule.fewest, rule.passes * one_pass))


def _affordable(
    wanted: int, timing: StepTiming, budget: float, forward_only: ForwardOnly, whole: float
) -> tuple[int, str]:
    """The steps that the time allows, and the reason."""
    fit = int(timing.steps_within(budget, EPOCHS, forward_only) / whole)
    available = say_duration(max(1.0, budget))
    if fit >= wanted:
        return wanted, f"enough for these images; the time ({available} for this run) would allow {fit}"
    if fit >= FEWEST_STEPS:
        return fit, f"what fits into the time ({available} for this run); {wanted} would suit these images"
    return FEWEST_STEPS, f"the fewest that make sense: the time ({available} for this run) is too short"


def steps_choice(given: Given, steps: int, reason: str) -> Choice | None:
    """The schedule that makes this many steps, or nearly, with what the user gives."""
    schedule = given.get("schedule", {})
    if "epochs" in schedule and "steps_per_epoch" in schedule:
        return None
    if "epochs" in schedule:
        per_epoch = max(1, steps // int(schedule["epochs"]))
        total = per_epoch * int(schedule["epochs"])
        return Choice("length", {"schedule.steps_per_epoch": per_epoch}, f"{total} steps", reason)
    per_epoch = int(schedule.get("steps_per_epoch", max(1, steps // EPOCHS)))
    epochs = max(1, steps // per_epoch)
    settings = {"schedule.epochs": epochs, "schedule.steps_per_epoch": per_epoch}
    return Choice("length", settings, f"{epochs * per_epoch} steps", reason)
