"""Where a run continues: at its last checkpoint, or at the one before if the last is damaged or gone."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import Tensor

from ltds.core.errors import CheckpointError, LtdsWarning
from ltds.core.files import rename
from ltds.core.runs import RunDirectory
from ltds.engine.checkpoint import TrainState, load_checkpoint
from ltds.engine.session import Session


def restore(session: Session, run: RunDirectory) -> TrainState:
    """Load the run's last good checkpoint into the session; a run that has not come to its first starts at step 0.

    The one before the last repeats the steps between the two exactly, so nothing but time is lost.
    """
    if run.last_checkpoint.is_file():
        try:
            return _load(session, run.last_checkpoint)
        except CheckpointError as error:
            if not run.previous_checkpoint.is_file():
                raise
            problem = str(error)
    elif run.previous_checkpoint.is_file():
        problem = f"'{run.last_checkpoint}' is missing."
    else:
        _require_no_checkpoint_yet(session, run)
        return TrainState()
    state = _load(session, run.previous_checkpoint)
    rename(run.previous_checkpoint, run.last_checkpoint)
    warnings.warn(f"{problem} Continuing from the checkpoint before it, after {state.step} steps.", LtdsWarning, 2)
    return state


def load_own_checkpoint(
    session: Session,
    file: Path,
    optimizer: torch.optim.Optimizer | None = None,
    average: dict[str, Tensor] | None = None,
) -> TrainState:
    """As `load_checkpoint`, of a checkpoint that must belong to the session's run."""
    former = session.former_identities
    return load_checkpoint(file, session.method, optimizer, session.identity, average, former_identities=former)


def _load(session: Session, file: Path) -> TrainState:
    average: dict[str, Tensor] = {}
    state = load_own_checkpoint(session, file, session.optimizer, average)
    session.average.tensors = average
    if state.step > session.steps:
        raise CheckpointError(
            f"Expected '{file}' to be after at most {session.steps} steps, the length of the run, but got "
            f"{state.step}. Restore config.toml, or train a new run in another folder."
        )
    return state


def _require_no_checkpoint_yet(session: Session, run: RunDirectory) -> None:
    """Refuse to start again where the journal goes beyond the first checkpoint: somebody deleted it."""
    every = session.config.run.checkpoint_every or session.config.schedule.steps_per_epoch
    first = min(every, session.phases[0].stop)
    done = max((row["step"] for row in run.read_journal()), default=0)
    if done > first:
        raise CheckpointError(
            f"Expected a checkpoint in '{run.last_checkpoint.parent}', because the journal goes to step {done}, but "
            f"got none. Put '{run.last_checkpoint.name}' back; or delete '{run.journal_file.name}' to start "
            "this run again at step 0."
        )
