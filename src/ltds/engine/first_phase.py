"""A first phase that another run has trained already: a run starts behind it, and ends as if it had trained it."""

from __future__ import annotations

import json
from typing import Any

from ltds.core.config import Settings
from ltds.core.errors import CheckpointError, ConfigError
from ltds.core.runs import RunDirectory
from ltds.core.trust import code_needed
from ltds.engine.checkpoint import adopt_checkpoint
from ltds.engine.config import RunConfig, as_stored, resolve, with_absolute_paths
from ltds.engine.identity import identity
from ltds.engine.journal import write_journal
from ltds.engine.own_code import changed_code
from ltds.engine.session import Session
from ltds.methods.base import Method


def training_of(config: RunConfig) -> str:
    """All settings that training depends on, as a text to compare. The method counts by its class, not by its name."""
    return _training(config, config.method_entry.method, config.method)


def first_phase_of(config: RunConfig) -> str | None:
    """What `training_of` gives for the run that is the first phase of this one; None: no method trains it."""
    method = config.method_entry.method
    begins = method.begins_as(config.method) if "begins_as" in vars(method) else None
    return None if begins is None else _training(config, *begins)


def _training(config: RunConfig, method: type[Method], settings: Settings) -> str:
    groups = {**config.to_dict(), "method": settings.model_dump(mode="json")}
    return json.dumps([method.__module__, method.__qualname__, groups], sort_keys=True)


def adopt_first_phase(
    session: Session, run: RunDirectory, other: RunDirectory, facts: dict[str, Any]
) -> dict[str, Any] | None:
    """Write what `other` has trained into the run, as if the run had been stopped at the end of its first phase.

    `facts`: about data and precision of the run, as environment.json names them. Returns the environment that `other`
    was trained in. None where it is not finished, is damaged, or was trained in another way: then the run has to train
    its first phase itself.
    """
    try:
        if not other.done or first_phase_of(session.config) != training_of(config := _config(other, session)):
            return None
        environment, rows = other.read_environment(), other.read_journal()
        if any(environment.get(name) != value for name, value in facts.items()) or changed_code(environment, config):
            return None
        first, source_identity = session.phases[0], identity(config, session.manifest)
        best = run.best_checkpoint if first.last else run.best_of(first.phase.name)
        for source, file in ((other.best_checkpoint, best), (other.last_checkpoint, run.last_checkpoint)):
            adopt_checkpoint(source, file, session.method, session.identity, source_identity=source_identity)
    except (CheckpointError, ConfigError):
        return None
    write_journal(run, rows, events=session.config.run.tensorboard)
    return environment


def _config(run: RunDirectory, session: Session) -> RunConfig:
    """The settings of a run; no code is imported for it but what this session has imported.

    With absolute paths, as this session has them: benchmarks of earlier versions stored paths as typed.
    """
    return resolve(with_absolute_paths(as_stored(run.read_config())), trust=code_needed(session.config.to_dict()))
