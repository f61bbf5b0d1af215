"""The plan of a comparison: what a grid of runs leaves open, chosen for the images, the same for every method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ltds.core.config import merge
from ltds.core.errors import ConfigError
from ltds.core.progress import SILENT, Progress, Say, say_nothing
from ltds.data.manifest import Manifest
from ltds.engine.device import choose_device
from ltds.methods.registry import find_method
from ltds.planning.facts import dataset_facts, hardest_task
from ltds.planning.network import choose_network
from ltds.planning.plan import (
    DEFAULT_BUDGET,
    is_planned,
    needs_images,
    settings_of_method,
    settle_plan,
    shared_choices,
    steps_choice,
    wanted_steps,
)
from ltds.planning.run_plan import Choice, Given, RunPlan


def plan_comparison(
    manifest: Manifest,
    given: Given,
    by_method: Mapping[str, Given],
    variants: Sequence[Given],
    domains: Sequence[str],
    *,
    progress: Progress = SILENT,
    say: Say = say_nothing,
) -> dict[str, RunPlan]:
    """The plan of each method's runs, for what the user leaves open.

    `given`: the settings of all runs; `by_method` and `variants`: what single methods and variants have besides them.
    The plan suits all of them, and every domain of `domains` that is held out in turn, so that nothing but what the
    user varies is compared; only a method's own settings differ. Unlike the plan of one run it measures no steps: the
    same grid must get the same settings again, or it could not be continued.
    """
    if not is_planned(manifest):
        raise ConfigError(
            f"Expected argument 'plan' only for images of your own, but '{manifest.name}' has its own settings. "
            "Leave it out."
        )
    facts = dataset_facts(manifest, hardest_task(manifest, domains))
    on_cpu = choose_device(given.get("run", {}).get("device", "auto")).type == "cpu"
    tables = {name: merge(given, own, {"method": {"name": name}}) for name, own in by_method.items()}
    images = any(needs_images(merge(table, changes)) for table in tables.values() for changes in variants)
    network = choose_network(
        manifest, given, DEFAULT_BUDGET, on_cpu=on_cpu, images=images, repeatable=True, progress=progress, say=say
    )
    batches = max(find_method(name).method.batches_per_step for name in tables)
    choices = shared_choices(facts, given, network, batches, on_cpu)
    first = next(iter(tables.values()))
    _, config = settle_plan(manifest, first, choices, None, network.learning)
    steps = wanted_steps(facts, given, config.data.batch_size, network.learning)
    length = steps_choice(given, steps, "enough for these images")
    plan, _ = settle_plan(manifest, first, choices, length, network.learning)
    of_methods = {name: settings_of_method(manifest, name, table, network.learning) for name, table in tables.items()}
    lines = plan.lines() + [f"  {name}: {_listed(settings)}" for name, settings in of_methods.items() if settings]
    if lines:
        say(f"Chosen for the images of {manifest.name}, for all runs; a setting that you give replaces the choice:")
    for line in lines:
        say(line)
    return {
        name: RunPlan((Choice("method", settings, name, "as you asked"), *plan.choices))
        for name, settings in of_methods.items()
    }


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
