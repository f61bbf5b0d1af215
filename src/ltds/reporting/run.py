"""Run: the content of one finished run directory, read and checked once."""

from __future__ import annotations

import itertools
import math
import shlex
import statistics
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.added import ADDED, as_before
from ltds.core.errors import CheckpointError
from ltds.core.runs import RunDirectory
from ltds.core.task import Task
from ltds.evaluation.arrays import IntArray
from ltds.evaluation.openset import OpenSetScores
from ltds.evaluation.table import PredictionTable
from ltds.reporting.journal_file import STEPS, read_journal
from ltds.reporting.metrics_file import RunMetrics, read_metrics
from ltds.reporting.used_files import EMBEDDINGS, used_files


@dataclass(frozen=True)
class DeployedRule:
    """An image is called unknown if its softened confidence, with this temperature, is below the threshold.

    `images`: on how many correctly classified validation images it was chosen, None where that was not recorded.
    """

    threshold: float
    temperature: float
    images: int | None

    def scores(self, table: PredictionTable, task: Task) -> OpenSetScores:
        """The scores that are compared with the threshold."""
        return OpenSetScores.of_known_classes(table.logits, table.labels, task.open_classes, self.temperature)


@dataclass(frozen=True)
class Run:
    """A finished, evaluated run. `problem`: a sentence, if a comparison with it is less reliable."""

    directory: RunDirectory
    method: str
    seed: int
    task: Task
    config: dict[str, Any]
    metrics: RunMetrics
    environment: dict[str, Any]
    journal_lines: int = STEPS  # of each kind that are read
    problem: str = ""

    @cached_property
    def journal(self) -> tuple[dict[str, Any], ...]:
        """The lines of the journal, thinned out; empty without a journal. Read on first use."""
        return tuple(read_journal(self.directory.journal_file, self.journal_lines))

    @cached_property
    def test_images(self) -> IntArray | None:
        """(all domains, C) test images of each pair; None if the run did not record them."""
        pairs = self.metrics.pairs
        return np.asarray(pairs.images, dtype=np.int64) if pairs and pairs.images else None

    @cached_property
    def deployed_rule(self) -> DeployedRule | None:
        """When its model says "unknown"; None if it never does, or in metrics that do not say."""
        choice = self.metrics.choices.get("h_fixed", {})
        threshold, temperature, images = (choice.get(name) for name in ("threshold", "temperature", "images"))
        if not (isinstance(threshold, float) and isinstance(temperature, float)):
            return None
        return DeployedRule(threshold, temperature, images if isinstance(images, int) else None)

    @cached_property
    def step_seconds(self) -> tuple[float, ...]:
        """Seconds of the steps in `journal`, sorted."""
        steps = (line.get("seconds") for line in self.journal if line.get("kind") == "step")
        return tuple(sorted(float(s) for s in steps if isinstance(s, int | float) and math.isfinite(s)))

    @cached_property
    def step_quartiles(self) -> tuple[float, float, float] | None:
        """First quartile, median and third quartile of the seconds of a step; None if no step is recorded."""
        known = self.step_seconds
        if not known:
            return None
        return known[(len(known) - 1) // 4], statistics.median(known), known[3 * (len(known) - 1) // 4]

    @property
    def path(self) -> Path:
        return self.directory.path

    @property
    def command(self) -> str:
        """The command that made the run, as typed in a shell; empty if not recorded."""
        command = self.environment.get("command", "")
        return shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")

    @property
    def commit(self) -> str:
        """The commit of the code that made the run; empty if not recorded."""
        return str(self.environment.get("commit") or "")

    @property
    def held_out(self) -> str:
        """The name of the held-out domain, or words for a model that was trained on all domains."""
        return apart_from(self.task.domains, "none held out") if self.task.held_out is None else self.task.held_out

    @property
    def knows_open_names(self) -> bool:
        """Whether embeddings of open classes took part in its training: other methods do not know of these classes."""
        method = self.config.get("method", {})
        hidden = isinstance(method, dict) and method.get("hide_open_names") is True
        return bool(self.environment.get("semantics")) and bool(self.task.open_classes) and not hidden

    def settings(self) -> dict[str, Any]:
        """Dotted settings that the seeds of one experiment share: without data folder and held-out domain.

        Of [run] only what changes results. Also without settings that older runs do not have, where they mean "as
        before". Files that settings name are each a `UsedFile`, which is known by its content.
        """
        given = _flat({name: value for name, value in self.config.items() if name != "run"})
        other = ("data.root", "data.held_out", "method.name", EMBEDDINGS)
        shared = {k: v for k, v in given.items() if k not in other} | self._numerics()
        return {k: v for k, v in shared.items() if not as_before(k, v)} | used_files(given, self.environment)

    def _numerics(self) -> dict[str, Any]:
        """The settings of [run] that change results, as the run was made: precision "auto", torchrun's ranks.

        Ranks are a text such as "1, then 2" where the run was resumed with another number.
        """
        asked = self.config["run"]
        made = {
            name: self.environment.get(name) or asked.get(name, ADDED[f"run.{name}"]) for name in ("precision", "ranks")
        }
        made["ranks"] = _in_turn(made["ranks"], self.environment.get("resumed"))
        several = made["ranks"] != 1  # with one rank, sync_batchnorm has no effect
        made["sync_batchnorm"] = several and asked.get("sync_batchnorm", False)
        return {f"run.{name}": value for name, value in made.items()}


def apart_from(domains: Collection[str], words: str) -> str:
    """Words that stand where others are domains; in brackets where a domain is called so."""
    while words in domains:
        words = f"({words})"
    return words


def read_run(directory: RunDirectory) -> Run:
    """The run in this directory; a CheckpointError with one sentence if it cannot be reported."""
    if not directory.done and (failure := directory.failure()) is not None:
        raise CheckpointError(f"'{directory.path}' is left out because it failed: {failure.get('error', 'unknown')}")
    if not directory.done:
        raise CheckpointError(
            f"'{directory.path}' is left out because it is unfinished. Resume the run to finish it.",
            resume=directory.path,
        )
    try:
        config, task = directory.read_config(), directory.read_task()
        method, seed = str(config["method"]["name"]), int(config["run"]["seed"])
    except (LookupError, TypeError, ValueError) as error:
        reason = f"no entry {error}" if isinstance(error, KeyError) else str(error)
        raise CheckpointError(
            f"'{directory.path}' is left out because its config.toml and task.json cannot be read: {reason}"
        ) from error
    environment, problem = _environment(directory)
    return Run(directory, method, seed, task, config, read_metrics(directory, task), environment, problem=problem)


def _environment(directory: RunDirectory) -> tuple[dict[str, Any], str]:
    """environment.json; if it cannot be read, nothing and what this means: the numbers do not depend on it."""
    try:
        return directory.read_environment(), ""
    except ValueError:
        return {}, (
            f"'{directory.environment_file}' cannot be read: whether this run was trained on the same images as the "
            "others, in the same precision and with as many ranks, is not known. Restore the file, or train the run "
            "again."
        )


def _in_turn(ranks: Any, resumed: Any) -> Any:
    """The number of ranks, or all of them in turn. An entry of `resumed` has those that were not as at the start."""
    entries = resumed if isinstance(resumed, list) else []
    later = [entry.get("ranks", ranks) for entry in entries if isinstance(entry, dict)]
    turns = [number for number, _ in itertools.groupby([ranks, *later])]
    return ranks if len(turns) == 1 else ", then ".join(map(str, turns))


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
