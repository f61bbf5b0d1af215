"""The plan of a comparison: what a grid of runs leaves open, chosen for the images, the same for every method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ltds.core.config import merge, nested
from ltds.core.errors import ConfigError
from ltds.core.progress import SILENT, Progress
from ltds.data.manifest import Manifest
from ltds.engine.device import choose_device
from ltds.methods.registry import find_method
from ltds.planning.choices import Given
from ltds.planning.facts import dataset_facts
from ltds.planning.network import choose_network
from ltds.planning.plan import (
    DEFAULT_BUDGET,
    is_planned,
    needs_images,
    settings_of_method,
    settled,
    shared_choices,
    steps_choice,
    wanted_steps,
)


def plan_comparison(
    manifest: Manifest,
    given: Given,
    domains: Sequence[str],
    *,
    by_method: Mapping[str, Given],
    progress: Progress = SILENT,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, dict[str, Any]]:
    """The settings of each method's runs that the user leaves open: `given` for all, `by_method` those of each method.

    They suit every domain of `domains` that is held out in turn. Network, batch and number of steps are those that all
    methods can have, so that nothing but the methods is compared. Unlike the plan of one run, it measures no time:
    the same grid must get the same settings again, or it could not be continued.
    """
    if not is_planned(manifest):
        raise ConfigError(
            f"Expected argument 'plan' only for images of your own, but '{manifest.name}' has a recipe. Leave it out."
        )
    hardest = max(domains, key=lambda domain: len(manifest.rows("train", domain)) if domain else 0)
    facts = dataset_facts(manifest, hardest or None)
    on_cpu = choose_device(given.get("run", {}).get("device", "auto")).type == "cpu"
    whole = {name: merge(given, {"method": {**own, "name": name}}) for name, own in by_method.items()}
    images = any(map(needs_images, whole.values()))
    network = choose_network(manifest, given, DEFAULT_BUDGET, on_cpu=on_cpu, images=images, progress=progress, say=say)
    batches = max(find_method(name).method.batches_per_step for name in whole)
    choices = shared_choices(facts, given, network, batches, on_cpu)
    first = next(iter(whole.values()))
    _, config = settled(manifest, first, choices, None, network.learning)
    length = steps_choice(given, wanted_steps(facts, given, config, network.learning), "enough for these images")
    plan, _ = settled(manifest, first, choices, length, network.learning)
    own = {name: settings_of_method(manifest, name, tables, network.learning) for name, tables in whole.items()}
    say("Chosen for these images, the same for every method; a setting that you give replaces the choice:")
    for line in [*plan.lines(), *(f"  {name}: {_listed(settings)}" for name, settings in own.items() if settings)]:
        say(line)
    return {name: merge(plan.layer, nested(settings)) for name, settings in own.items()}


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
