"""Starting a run, and resuming one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ltds.core.errors import CheckpointError, ConfigError
from ltds.core.files import require_writable
from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.core.trust import code_needed
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.config import RunConfig, as_stored, resolve, with_ranks
from ltds.engine.environment import describe_environment
from ltds.engine.first_phase import adopt_first_phase
from ltds.engine.identity import file_checksums
from ltds.engine.loop import train
from ltds.engine.new_run_checks import check_new_run, check_new_run_on
from ltds.engine.own_code import CODE_KEY, code_checksums, warn_of_changed_code
from ltds.engine.precision import recorded_precision, with_precision
from ltds.engine.same_data import (
    CONTENT_KEY,
    data_checksums,
    image_content,
    recorded_checksums,
    require_same_data,
)
from ltds.engine.semantics import semantics_checksum
from ltds.engine.session import Session
from ltds.engine.team import team_for
from ltds.semantics.archive import replace_if_damaged, write_embeddings


def train_new_run(
    run: RunDirectory,
    config: RunConfig,
    manifest: Manifest,
    progress: Progress = SILENT,
    *,
    plan: dict[str, Any] | None = None,
    first_phase: RunDirectory | None = None,
) -> None:
    """Write the run's record, then train to the end. Nothing is written before the settings are known to work.

    `plan`: which settings were chosen for the user, and why; it is kept in plan.json. `first_phase`: a run that may
    have trained the first phase of this one already.
    """
    check_new_run(config)
    check_new_run_on(manifest, config)
    with run.locked():
        refuse_existing(run)
        with team_for(config) as team:
            session = assemble(config, manifest, progress, team.ranks)
            if plan is not None:
                run.write_plan(plan)
            record(run, session, first_phase)
            with team.together(with_precision(config, session.precision), run.path, manifest.identity):
                train(session, run, progress)


def refuse_existing(run: RunDirectory) -> None:
    """Raise unless a run can begin in this folder: it must be new or empty, and a place where files can be written."""
    require_writable(run.path)
    if run.exists:
        raise ConfigError(
            f"Expected '{run.path}' to be a new folder, but it holds a run. Resume that run, or choose another folder.",
            resume=run.path,
        )
    if others := run.others_files:
        raise ConfigError(
            f"Expected '{run.path}' to be a new or empty folder, but it holds something else, such as '{others[0]}'. "
            f"Choose another folder, such as '{run.path / 'first'}'.",
            arguments=["out"],
        )


def resume_run(
    run: RunDirectory,
    progress: Progress = SILENT,
    *,
    trust: Iterable[str] = (),
    ranks: int | None = None,
    execution: Mapping[str, Any] | None = None,
) -> None:
    """Continue a run from its own record, bit for bit as if it had never stopped.

    `trust`: modules outside ltds that the run needs and that may be imported. `ranks`: another number of them than the
    run was started with; then the numbers are the same up to rounding. `execution`: other values of the settings of
    the group `run` that say how it is computed, such as the device (EXECUTION_SETTINGS).
    """
    config = with_ranks(resolve(as_stored(run.read_config()), {"run": dict(execution or {})}, trust=trust), ranks)
    with run.locked(), team_for(config) as team:
        precision = recorded_precision(run)
        session = assemble(config, Manifest.read(Path(config.data.root)), progress, team.ranks, precision)
        _require_same_task(run, session)
        _record_resume(run, session)
        with team.together(with_precision(config, precision), run.path, session.manifest.identity):
            train(session, run, progress)


def record(run: RunDirectory, session: Session, first_phase: RunDirectory | None = None) -> None:
    """Write task, environment, class embeddings and, last, the config, which makes the folder a run."""
    here = _environment(session)
    environment = dict(here)
    environment["seed"] = session.config.run.seed
    environment["steps"] = session.steps
    environment["code_needed"] = code_needed(session.config.to_dict())
    environment["parameters"] = sum(p.numel() for p in session.method.parameters())
    environment["data"] = session.manifest.identity
    if (content := image_content(session.config, session.manifest)) is not None:
        environment[CONTENT_KEY] = content
    environment["semantics"] = semantics_checksum(session.config, session.manifest)
    if files := file_checksums(session.config):
        environment["files"] = files
    if session.frozen is not None:
        environment["frozen"] = session.frozen.checksum
        session.frozen.save(run.frozen_weights)
    facts = {name: environment.get(name) for name in ("data", CONTENT_KEY, "semantics", "frozen", "precision")}
    then = None if first_phase is None else adopt_first_phase(session, run, first_phase, facts)
    if first_phase is not None and then is not None:
        other = {name: then[name] for name, value in here.items() if then.get(name, value) != value}
        environment["first_phase"] = {"run": first_phase.path.name, "trained_with": other}
    if session.embeddings is not None:
        write_embeddings(run.embeddings_file, session.embeddings)
    run.write_task(session.task)
    run.write_environment(environment)
    run.write_config(session.config.to_dict())


def _environment(session: Session) -> dict[str, Any]:
    facts = describe_environment(session.device) | {"ranks": session.ranks.world, "precision": session.precision}
    code = code_checksums(session.config)
    return facts | {CODE_KEY: code} if code else facts


def _require_same_task(run: RunDirectory, session: Session) -> None:
    """Refuse to continue a run on a dataset with other classes, domains or training images."""
    before, now = run.read_task().to_dict(), session.task.to_dict()
    other = [name for name in now if before.get(name) != now[name]]
    if other:
        raise CheckpointError(
            f"Expected the dataset that '{run.path}' was started with, but '{session.manifest.root}' has other "
            f"{' and '.join(other)} than '{run.task_file.name}' says. Restore the dataset, or train a new run in "
            "another folder."
        )


def _record_resume(run: RunDirectory, session: Session) -> None:
    """Add to environment.json that the run was resumed, and what had changed: exact repetition depends on it."""
    environment = run.read_environment()
    config, manifest = session.config, session.manifest
    before, checksums = recorded_checksums(environment), data_checksums(config, manifest)
    require_same_data(run.path, before, checksums, config, manifest)
    _require_same_frozen(run, environment, session)
    warn_of_changed_code(run, environment, config)
    now = _environment(session)
    changed = {key: value for key, value in now.items() if value != environment.get(key)}
    earlier = environment.get("resumed")
    environment["resumed"] = [*(earlier if isinstance(earlier, list) else []), changed]
    run.write_environment(environment)
    if session.embeddings is not None:
        replace_if_damaged(run.embeddings_file, session.embeddings)


def _require_same_frozen(run: RunDirectory, environment: dict[str, Any], session: Session) -> None:
    """Refuse to continue on the outputs of a frozen network with other weights."""
    before, now = environment.get("frozen"), session.frozen.checksum if session.frozen else None
    if before != now and before is not None:
        raise CheckpointError(
            f"Expected the frozen network that '{run.path}' was started with, but got one with other weights, or none. "
            "Restore the file that backbone.weights or data.features names, or train a new run in another folder."
        )
