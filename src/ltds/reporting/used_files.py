"""The files that the settings of runs name: their content decides which experiment a run is, not their path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EMBEDDINGS = "semantics.table"
FOLDER = "hf:"  # how a network that is named by its folder begins
DIGITS = 6  # of a checksum, as a reader sees it


@dataclass(frozen=True)
class UsedFile:
    """A file that a run used. `checksum` is "" for runs that did not record it: then its name is all that is known.

    Two of them are equal if their content is. `as_it_is`: attributes of another folder than the dataset's are not
    scaled, so the same content has another effect.
    """

    content: str
    as_it_is: bool = False
    name: str = field(default="", compare=False)
    checksum: str = field(default="", compare=False)


def used_files(settings: Mapping[str, Any], environment: Mapping[str, Any]) -> dict[str, UsedFile]:
    """The files of a run by the setting that names them; `settings` by their dotted names.

    Class embeddings may be the dataset's own, which no setting names; a method that uses none has no entry.
    """
    recorded = environment.get("files")
    checksums = recorded if isinstance(recorded, Mapping) else {}
    found = {
        key: _used(Path(str(settings[key])).name, str(checksums.get(key) or ""))
        for key in ("data.features", "backbone.weights")
        if settings.get(key)
    }
    network = str(settings.get("backbone.name") or "")
    if network.startswith(FOLDER):
        folder = Path(network.removeprefix(FOLDER)).name
        found["backbone.name"] = _used(f"{FOLDER}{folder}", str(checksums.get("backbone.name") or ""))
    table, checksum = str(settings.get(EMBEDDINGS) or ""), str(environment.get("semantics") or "")
    if table or checksum:
        other = bool(table) and Path(table).absolute() != _attributes(str(settings.get("data.root", "")))
        as_it_is = other and Path(table).suffix.lower() == ".csv"
        found[EMBEDDINGS] = _used(Path(table).name if other else "", checksum, as_it_is)
    return found


def _used(name: str, checksum: str, as_it_is: bool = False) -> UsedFile:
    return UsedFile(checksum or name, as_it_is, name, checksum)


def _attributes(dataset: str) -> Path:
    """The dataset's own class embeddings, as a path that `semantics.table` may name."""
    return Path(dataset, "semantics", "attributes.csv").absolute()


def file_texts(files: Iterable[UsedFile]) -> dict[UsedFile, str]:
    """Each file as a reader sees it: its name, with digits of its checksum where files of other content have this name.

    A file without a record is taken for the only recorded one of its name, if there is just one.
    """
    first: dict[UsedFile, UsedFile] = {}  # of the same content, the name that comes first
    for file in files:
        first.setdefault(file, file)
    names = [file.name for file in first if file.checksum]
    return {file: _text(file, unique=names.count(file.name) < 2) for file in first}


def _text(file: UsedFile, *, unique: bool) -> str:
    digits = file.checksum[:DIGITS]
    return file.name if file.name and unique else f"{file.name} {digits}".strip()
