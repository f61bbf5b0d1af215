"""A folder that a builder draws images into: claimed first, so that two builds with other settings never mix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ltds.core.errors import DataError, expected
from ltds.core.files import write_json
from ltds.data.manifest import Manifest

CLAIM = "building.json"


def read_finished(out: Path, provenance: dict[str, Any]) -> Manifest:
    """The dataset in `out`, if it was built with this provenance."""
    manifest = Manifest.read(out)
    if manifest.provenance != provenance:
        raise _other_dataset(out, manifest.provenance, provenance)
    return manifest


def claim(out: Path, provenance: dict[str, Any]) -> None:
    """Record which dataset is being built in `out`; raises where the images there belong to another one."""
    file = out / CLAIM
    if file.is_file():
        try:
            recorded = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            recorded = f"an unreadable {CLAIM}"
        if recorded != provenance:
            raise _other_dataset(out, recorded, provenance)
    elif (out / "images").exists():
        raise _other_dataset(out, "images of unknown origin", provenance)
    write_json(file, provenance)


def release(out: Path) -> None:
    """The dataset is finished: its manifest says from now on what it is."""
    (out / CLAIM).unlink()


def _other_dataset(out: Path, recorded: object, wanted: dict[str, Any]) -> DataError:
    """The error for a folder that holds something else; it names the settings that differ."""
    got: object = recorded
    if isinstance(recorded, dict) and isinstance(recorded.get("config"), dict):
        config = recorded["config"]
        differing = [f"{key}={config.get(key)}" for key, value in wanted["config"].items() if config.get(key) != value]
        got = ", ".join(differing) or f"renderer {recorded.get('renderer')}"
    rule = f"empty or {wanted['builder']} with these settings (renderer {wanted['renderer']})"
    return DataError(expected(f"'{out}'", rule, got, "Choose another folder, or delete this one."))
