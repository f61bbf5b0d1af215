"""Beginning a run: say what will happen, choose what the user left open, then train."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.config import merge
from ltds.core.durations import say_duration
from ltds.core.errors import ConfigError, TrainingInterrupted
from ltds.core.progress import SILENT, Progress, Say, say_nothing
from ltds.core.runs import SERIES_FILE, RunDirectory
from ltds.core.text import count, few
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig, resolve
from ltds.engine.extraction import warn_of_changed_images
from ltds.engine.new_run_checks import check_new_run, check_new_run_on
from ltds.engine.recipe_line import recipe_line
from ltds.engine.start import train_new_run
from ltds.engine.trainable import require_sources
from ltds.planning.facts import hardest_task
from ltds.planning.feasible import require_trainable
from ltds.planning.implied import implied_network, with_implied_names
from ltds.planning.plan import DEFAULT_BUDGET, is_planned, plan_run
from ltds.planning.run_plan import RunPlan
from ltds.planning.series import RunSeries, estimated_domains, require_new, series_locked


def begin_run(
    out: Path | None,
    manifest: Manifest,
    layers: list[dict[str, Any]],
    *,
    budget: float | None = None,
    estimate: str = "none",
    trust: Iterable[str] | None = None,
    progress: Progress = SILENT,
    say: Say = say_nothing,
) -> RunDirectory:
    """Train one run in `out`, or with an estimate a series of runs in folders of `out`; returns the (final) run.

    `out=None` takes a new folder, chosen only after planning, because another command may start a run meanwhile. An
    interrupt says which (`TrainingInterrupted`).
    """
    given = _as_spelled(merge(*layers), manifest)
    implied = None
    if is_planned(manifest):
        implied, given = implied_network(given), with_implied_names(given)
    settled = resolve(given, _folder(manifest), dataset=manifest, trust=trust)  # refuses mistakes at once
    check_new_run(settled)
    held_out = settled.data.held_out or None
    domains = estimated_domains(estimate, held_out, manifest) if estimate != "none" else []
    require_trainable(manifest, held_out, domains)
    left_out = [*domains, None] if domains else [held_out]  # by each run
    for domain in left_out:
        require_sources(settled, manifest, domain)
    if features := settled.data.features:
        warn_of_changed_images(Path(features), manifest)
    for line in describe_data(manifest):
        say(line)
    say(describe_test(manifest, held_out, domains))
    if not all(_is_validated(manifest, domain) for domain in left_out):
        say(
            "The source domains have no validation image, on which the threshold for 'unknown' is chosen: the model "
            "will always name a class, unless you give a threshold when you use it."
        )
    plan, config = _plan(manifest, given, settled, domains, budget, progress, say)
    if implied is not None:  # which the plan took for the user's own
        plan = plan.with_network(implied)
    check_new_run(config)  # of a length that the plan chose
    check_new_run_on(manifest, config)
    out = new_run_folder(manifest.name) if out is None else out
    _say_plan(plan, given, len(domains) + 1, say)
    if line := recipe_line(manifest, (given, config)):
        say(line)
    say(f"Training in '{out}'")
    record = plan.to_dict() if plan.choices else None
    try:
        if domains:
            with series_locked(out):
                series = RunSeries.create(out, config, domains, manifest, record)
                return series.train(manifest, progress=progress, say=say)
        require_new(out)  # planning takes minutes, in which another command may have begun one
        run = RunDirectory(out)
        train_new_run(run, config, manifest, progress, plan=record)
        return run
    except KeyboardInterrupt as interrupt:
        raise TrainingInterrupted(out) from interrupt


def new_run_folder(name: str) -> Path:
    """runs/NAME, or the first of runs/NAME-2, runs/NAME-3, ... that is not there yet."""
    folder, number = Path("runs") / name, 1
    while folder.exists():
        number += 1
        folder = Path("runs") / f"{name}-{number}"
    return folder


def describe_data(manifest: Manifest) -> list[str]:
    """What the dataset holds, and what was left out of it."""
    counts = {split: len(manifest.rows(split)) for split in ("train", "val", "test")}
    left_out = list(manifest.provenance.get("left_out") or ())
    lines = [
        f"{manifest.name}: {len(manifest):,} images of {len(manifest.classes)} classes in "
        f"{count(len(manifest.domains), 'domain')}, split into {counts['train']:,} for training, "
        f"{counts['val']:,} for validation and {counts['test']:,} for test; dataset in '{manifest.root}'"
    ]
    if left_out:
        lines.append(f"Left out, as they cannot be decoded: {few(left_out, 3)}")
    return [*lines, *manifest.provenance.get("notes", ())]


def describe_test(manifest: Manifest, held_out: str | None, domains: list[str]) -> str:
    """What is held out and what the test can tell, in a sentence."""
    if domains:
        names = ", ".join(f"'{domain}'" for domain in domains)
        turns = " in turn" if len(domains) > 1 else ""
        return f"Held out{turns}, for an honest estimate: {names}. Then the final model trains on every domain."
    if held_out is None and len(manifest.domains) == 1:
        return (
            "No domain is held out: there is only one, and the model is tested on other images of it. How it does on a "
            "new domain is not measured; to measure it, add images of a second domain."
        )
    if held_out is None:
        return (
            "No domain is held out: the model trains on every domain and is tested on other images of the same "
            "domains. How it does on a new domain is not measured; the estimate 'full' would measure it."
        )
    tested = int(np.count_nonzero(manifest.domain_ids[manifest.test_rows(held_out)] == manifest.domain_index(held_out)))
    whole = "all " if manifest.whole_held_out else ""
    return f"'{held_out}' is held out: none of its images is used in training; {whole}{tested} of them are test images."


def _is_validated(manifest: Manifest, held_out: str | None) -> bool:
    """Whether a domain that the run trains on has an image for validation."""
    return any(len(manifest.rows("val", domain)) for domain in manifest.domains if domain != held_out)


def _plan(
    manifest: Manifest,
    given: dict[str, Any],
    settled: RunConfig,
    domains: list[str],
    budget: float | None,
    progress: Progress,
    say: Say,
) -> tuple[RunPlan, RunConfig]:
    """The plan and the settings; for datasets with a recipe, an empty plan and the recipe's settings."""
    if not is_planned(manifest):
        if budget is not None:
            raise ConfigError(
                f"Expected argument 'budget' only for images of your own, but '{manifest.name}' has its own settings. "
                "Leave it out, or set schedule.epochs.",
                settings=["schedule.epochs"],
            )
        return RunPlan(), settled
    runs = len(domains) + 1
    if domains:  # settings that suit every run
        given = merge(given, {"data": {"held_out": hardest_task(manifest, domains)}})
    seconds = DEFAULT_BUDGET if budget is None else budget
    return plan_run(manifest, given, budget=seconds, runs=runs, progress=progress, say=say)


def _say_plan(plan: RunPlan, given: dict[str, Any], runs: int, say: Say) -> None:
    if not plan.choices:
        if "method" not in given:
            say("No method is named: training 'agg', the plain baseline. The command 'ltds methods' lists the others.")
        return
    say("Chosen for these images; a setting that you give replaces the choice:")
    for line in plan.lines():
        say(line)
    if runs > 1:
        say(f"{runs} runs of about {say_duration(plan.seconds / runs)} each; '{SERIES_FILE}' lists them.")


def _as_spelled(given: dict[str, Any], manifest: Manifest) -> dict[str, Any]:
    """The settings with the held-out domain as the dataset spells it, so that the run records this spelling."""
    data = given.get("data")
    held_out = data.get("held_out") if isinstance(data, Mapping) else None
    return merge(given, {"data": {"held_out": manifest.own_spelling(held_out)}}) if isinstance(held_out, str) else given


def _folder(manifest: Manifest) -> dict[str, Any]:
    return {"data": {"root": str(manifest.root.resolve())}}
