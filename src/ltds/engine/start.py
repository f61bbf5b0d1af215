"""Starting a run and taking one up again."""

from __future__ import annotations

from pathlib import Path

from ltds.core.errors import ConfigError
from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.assemble import Session, assemble
from ltds.engine.config import RunConfig, resolve
from ltds.engine.environment import describe_environment
from ltds.engine.loop import train
from ltds.engine.semantics import semantics_checksum


def create_run(run: RunDirectory, config: RunConfig, manifest: Manifest, progress: Progress = SILENT) -> None:
    """Record what the run is, then train it to its end. Nothing is written before the settings have proved usable."""
    with run.locked():
        refuse_existing(run)
        session = assemble(config, manifest, progress)
        record(run, session)
        train(session, run, progress)


def refuse_existing(run: RunDirectory) -> None:
    if run.exists:
        raise ConfigError(
            f"Expected '{run.path}' to be a new folder, but it holds a run. Continue it with "
            f"'ltds train --resume {run.path}', or choose another --out."
        )


def resume_run(run: RunDirectory, progress: Progress = SILENT) -> None:
    """Continue a run from its own record, bit for bit as if it had never stopped."""
    config = resolve(run.read_config())
    with run.locked():
        session = assemble(config, Manifest.read(Path(config.data.root)), progress)
        _record_resume(run, session)
        train(session, run, progress)


def record(run: RunDirectory, session: Session) -> None:
    """Write the task, the environment and, last, the config, which makes the folder a run."""
    environment = describe_environment(session.device)
    environment["seed"] = session.config.run.seed
    environment["steps"] = session.steps
    environment["parameters"] = sum(p.numel() for p in session.method.parameters())
    environment["data"] = session.manifest.checksum
    environment["semantics"] = semantics_checksum(session.config, session.manifest)
    run.write_task(session.task)
    run.write_environment(environment)
    run.write_config(session.config.to_dict())


def _record_resume(run: RunDirectory, session: Session) -> None:
    """Add to environment.json when the run went on, and what was different then: bits depend on it."""
    environment = run.read_environment()
    now = describe_environment(session.device)
    changed = {key: value for key, value in now.items() if value != environment.get(key)}
    environment["resumed"] = [*environment.get("resumed", []), changed]
    run.write_environment(environment)
