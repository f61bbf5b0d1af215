"""Starting a run, and resuming one."""

from __future__ import annotations

from pathlib import Path

from ltds.core.errors import ConfigError
from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.config import RunConfig, resolve
from ltds.engine.environment import describe_environment
from ltds.engine.loop import train
from ltds.engine.semantics import semantics_checksum
from ltds.engine.session import Session
from ltds.semantics.archive import write_embeddings


def create_run(run: RunDirectory, config: RunConfig, manifest: Manifest, progress: Progress = SILENT) -> None:
    """Write the run's record, then train to the end. Nothing is written before the settings are known to work."""
    with run.locked():
        refuse_existing(run)
        session = assemble(config, manifest, progress)
        record(run, session)
        train(session, run, progress)


def refuse_existing(run: RunDirectory) -> None:
    if run.exists:
        raise ConfigError(
            f"Expected '{run.path}' to be a new folder, but it holds a run. Resume that run, or choose another folder.",
            resume=run.path,
        )


def resume_run(run: RunDirectory, progress: Progress = SILENT) -> None:
    """Continue a run from its own record, bit for bit as if it had never stopped."""
    config = resolve(run.read_config())
    with run.locked():
        session = assemble(config, Manifest.read(Path(config.data.root)), progress)
        _record_resume(run, session)
        train(session, run, progress)


def record(run: RunDirectory, session: Session) -> None:
    """Write task, environment, class embeddings and, last, the config, which makes the folder a run."""
    environment = describe_environment(session.device)
    environment["seed"] = session.config.run.seed
    environment["steps"] = session.steps
    environment["parameters"] = sum(p.numel() for p in session.method.parameters())
    environment["data"] = session.manifest.checksum
    environment["semantics"] = semantics_checksum(session.config, session.manifest)
    if session.embeddings is not None:
        write_embeddings(run.embeddings_file, session.embeddings)
    run.write_task(session.task)
    run.write_environment(environment)
    run.write_config(session.config.to_dict())


def _record_resume(run: RunDirectory, session: Session) -> None:
    """Add to environment.json that the run was resumed, and what had changed: exact repetition depends on it."""
    environment = run.read_environment()
    now = describe_environment(session.device)
    changed = {key: value for key, value in now.items() if value != environment.get(key)}
    environment["resumed"] = [*environment.get("resumed", []), changed]
    run.write_environment(environment)
