"""Which class embeddings a run uses: the table that its settings name, or the dataset's."""

from __future__ import annotations

from pathlib import Path

from ltds.core.errors import ConfigError, DataError
from ltds.core.files import cached_sha256
from ltds.core.task import Task
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.settings import SemanticsSettings
from ltds.semantics.attributes import from_attributes_csv
from ltds.semantics.embeddings import ClassEmbeddings

ATTRIBUTES = "attributes.csv"


def load_embeddings(config: RunConfig, manifest: Manifest, task: Task) -> ClassEmbeddings | None:
    """The class embeddings of the run, or None for a method that uses none.

    With method.hide_open_names, open classes are left out: they must not influence even the scale of attributes, and
    a model must not name them.
    """
    file, hide_open = semantics_file(config, manifest), getattr(config.method, "hide_open_names", False)
    if file is None:
        return None
    hidden = [task.classes[c] for c in task.open_classes] if hide_open else []
    known = [name for name in task.classes if name not in hidden]
    of_dataset = not names_other_table(config, manifest)
    if of_dataset and file.name == ATTRIBUTES:
        return from_attributes_csv(file, hidden, known)
    if of_dataset and hide_open and file.stem.startswith("attributes"):
        raise DataError(
            f"Expected attributes in their original scale for method.hide_open_names, but got '{file}'. "
            f"Put the attributes themselves into '{file.with_name(ATTRIBUTES)}': the run scales them."
        )
    return ClassEmbeddings.from_table(file, key=config.semantics.key or None).without(hidden, known)


def names_other_table(config: RunConfig, manifest: Manifest) -> bool:
    """Whether the settings name a file other than the dataset's own attributes: it is taken as it is, not scaled."""
    table = config.semantics.table
    return bool(table) and Path(table).resolve() != (manifest.root / "semantics" / ATTRIBUTES).resolve()


def semantics_file(config: RunConfig, manifest: Manifest) -> Path | None:
    """The file of the embeddings; None for a method that uses none."""
    given = config.semantics
    if not config.method_entry.method.uses_embeddings(config.method):
        if given != SemanticsSettings():
            raise ConfigError(
                f"Expected [semantics] only for a method that uses it, but '{config.method_name}' does not. "
                "Leave it out, or choose another method (ltds methods)."
            )
        return None
    file = Path(given.table) if given.table else _dataset_table(manifest.root / "semantics", config.method_name)
    if given.key and file.name == ATTRIBUTES and not names_other_table(config, manifest):
        raise ConfigError(f"Expected semantics.key only for a file with several arrays, but '{file}' is one table.")
    return file


def semantics_checksum(config: RunConfig, manifest: Manifest) -> str:
    """SHA-256 of that file, since other embeddings make another run; "" for a method that uses none."""
    file = semantics_file(config, manifest)
    if file is None:
        return ""
    return cached_sha256(file) if file.is_file() else f"missing: {file}"


def _dataset_table(folder: Path, method: str) -> Path:
    """The dataset's embeddings: its attributes, or else the one table that `ltds data embed` made."""
    attributes = folder / ATTRIBUTES
    made = [attributes] if attributes.is_file() else sorted(folder.glob("*.npz"))
    if len(made) == 1:
        return made[0]
    if made:
        names = ", ".join(f"'{file}'" for file in made)
        raise DataError(
            f"Expected one table of class embeddings for method '{method}', but got {len(made)}: {names}. "
            f"Name one: semantics.table={made[0]}. To resume a run that began when there was one, move the others away."
        )
    raise DataError(
        f"Expected class embeddings for method '{method}', but the dataset has no '{attributes}' and no .npz file next "
        "to it. Make some from the class names (ltds data embed), or name a file as semantics.table: .csv (class, then "
        "numbers), .npz, .npy or .mat."
    )
