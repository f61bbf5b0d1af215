"""Starting a run and taking one up again."""

from __future__ import annotations

from pathlib import Path

from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.assemble import Session, assemble
from ltds.engine.config import RunConfig, resolve
from ltds.engine.environment import describe_environment
from ltds.engine.loop import train


def create_run(run: RunDirectory, config: RunConfig, manifest: Manifest, progress: Progress = SILENT) -> None:
    """Record what the run is, then train it to its end. Nothing is written before the settings have proved usable."""
    session = assemble(config, manifest, progress)
    record(run, session)
    train(session, run, progress)


def resume_run(run: RunDirectory, progress: Progress = SILENT) -> None:
    """Continue a run from its own record, bit for bit as if it had never stopped."""
    config = resolve(run.read_config())
    train(assemble(config, Manifest.read(Path(config.data.root)), progress), run, progress)


def record(run: RunDirectory, session: Session) -> None:
    """Write the task, the environment and, last, the config, which makes the folder a run."""
    environment = describe_environment(session.device)
    environment["parameters"] = sum(p.numel() for p in session.method.parameters())
    environment["data"] = session.manifest.checksum
    run.write_task(session.task)
    run.write_environment(environment)
    run.write_config(session.config.to_dict())
