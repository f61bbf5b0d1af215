"""The user's own code in a run: which version of a module it was trained with, and what is said of another one."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ltds.core.errors import LtdsWarning
from ltds.core.files import sha256
from ltds.core.runs import RunDirectory
from ltds.core.text import count
from ltds.core.trust import code_needed
from ltds.engine.config import RunConfig
from ltds.engine.same_data import readable_environment

CODE_KEY = "code"  # in environment.json

_seen: dict[str, tuple[object, str]] = {}


def outside_modules(config: RunConfig) -> list[str]:
    """The modules that these settings name and that do not come with ltds."""
    return [name for name in code_needed(config.to_dict()) if name.partition(".")[0] != "ltds"]


def code_checksums(config: RunConfig) -> dict[str, str]:
    """The SHA-256 of the file of each module outside ltds that these settings name; the settings must be trusted.

    Of this file alone, not of what the module imports. A module without a file has none.
    """
    return {name: checksum for name in outside_modules(config) if (checksum := _checksum(name))}


def changed_code(environment: Mapping[str, Any], config: RunConfig) -> tuple[str, ...]:
    """The modules of these settings that are not as this environment.json recorded them; what it lacks passes."""
    recorded = environment.get(CODE_KEY)
    before = recorded if isinstance(recorded, Mapping) else {}
    return tuple(name for name, now in code_checksums(config).items() if before.get(name, now) != now)


def warn_of_changed_code(run: RunDirectory, environment: Mapping[str, Any], config: RunConfig) -> None:
    """Say that a run goes on with other code than it was started with."""
    for name in changed_code(environment, config):
        warnings.warn(
            f"'{run.path}' was started with another version of the module '{name}', whose file has changed since: "
            "from here on it is trained with the present one. If the change matters, stop it and train a new run in "
            "another folder.",
            LtdsWarning,
            stacklevel=2,
        )


def warn_of_reused_runs(folder: Path, runs: Iterable[tuple[RunDirectory, RunConfig]]) -> None:
    """Say that runs that are in a folder already, and count for its results, were made with other code than now."""
    others: dict[str, int] = {}
    for run, config in runs:
        if not outside_modules(config):  # most runs, whose record need not be read
            continue
        for name in changed_code(readable_environment(run), config):
            others[name] = others.get(name, 0) + 1
    for name, number in others.items():
        warnings.warn(
            f"'{folder}' has {count(number, 'run')} with another version of the module '{name}', whose file has "
            "changed since. A finished run is not trained again, and an unfinished one goes on with the present "
            "version, so that results of both are mixed. If the change matters, train all runs again in another "
            "folder.",
            LtdsWarning,
            stacklevel=2,
        )


def _checksum(name: str) -> str:
    """Of the version that this process has loaded: an edit of the file has no effect until it is loaded again."""
    try:
        module = importlib.import_module(name)
        file = Path(module.__file__ or "")
        loaded, checksum = _seen.get(name, (None, ""))
        if loaded is None or loaded is not module.__spec__:  # loading it again makes a new one
            checksum = sha256(file)
            _seen[name] = module.__spec__, checksum
    except Exception:  # importing runs the user's code; whoever needs the module says what is wrong with it
        return ""
    return checksum
