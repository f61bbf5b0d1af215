"""Exports of a model, each a folder that is complete or absent: safetensors, ONNX, torch.export."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch

from ltds.core.errors import ConfigError, ExportError, did_you_mean
from ltds.core.files import DiskFullError, atomic_folder, require_vacant, write_text
from ltds.core.progress import SILENT, Progress
from ltds.core.runs import NEAREST_FILE
from ltds.data.decode import ImageSource
from ltds.engine.export import onnx_file, safetensors_folder, torch_program
from ltds.engine.export.card import model_card
from ltds.engine.export.comparison import RunExport, check_inputs, largest_difference
from ltds.engine.export.graph import cpu_copy
from ltds.engine.model import Model
from ltds.engine.model_directory import write_description
from ltds.engine.preprocessing import FrozenPreprocessing

ExportFormat = Literal["safetensors", "onnx", "torch-export"]
WriteExport = Callable[[Path, Model, torch.Tensor], RunExport]
WRITERS: dict[str, WriteExport] = {
    "safetensors": safetensors_folder.write,
    "onnx": onnx_file.write,
    "torch-export": torch_program.write,
}
LIMIT = 1e-3  # largest relative difference between the export and the model
# The same with a frozen network, whose outputs are rounded to half precision: a difference in the last bit before the
# rounding can be a step of half precision after it, 1e-3 of the value, which later layers may enlarge.
HALF_LIMIT = 2e-2


@dataclass(frozen=True)
class ExportResult:
    """A finished export: its folder and files, and how it was checked.

    `difference`: the largest one between its outputs and the model's, relative to values above 1, absolute below.
    """

    folder: Path
    to: str
    files: tuple[str, ...]
    difference: float
    checked_on: str


def export(
    model: Model,
    out: Path,
    to: str,
    check: Sequence[ImageSource] = (),
    progress: Progress = SILENT,
    *,
    nearest: bool = False,
) -> ExportResult:
    """Write a model to the new folder `out`, and compare what was written with the model.

    `nearest`: with the index of its training images.
    """
    _check_arguments(to, nearest)
    with _errors_explained(out):
        require_vacant(out)
    model = cpu_copy(model)
    index = model.training_index(progress=progress) if nearest else None
    inputs = check_inputs(model, check)
    kind = "input" if len(check) else "random input"
    checked_on = f"{len(inputs)} {kind}{'s' * (len(inputs) != 1)}"
    with _errors_explained(out), progress.track(f"Exporting to {to}", 3) as advance, atomic_folder(out) as folder:
        run = WRITERS[to](folder, model, inputs)
        advance(note="checking")
        difference = largest_difference(model, run, inputs)
        _require_same(model, difference, checked_on)
        advance(note="describing")
        write_description(folder, model.stored)
        if index is not None:
            index.save(folder / NEAREST_FILE)
        card = model_card(model.stored, to, difference, checked_on, with_index=nearest)
        write_text(folder / "README.md", card)
        files = tuple(sorted(file.name for file in folder.iterdir()))
        advance()
    return ExportResult(out, to, files, difference, checked_on)


def _check_arguments(to: str, nearest: bool) -> None:
    if to not in get_args(ExportFormat):
        raise ConfigError(f"Expected argument 'to' to name a format, but got '{to}'. {did_you_mean(to, WRITERS)}")
    if nearest and to != "safetensors":
        raise ConfigError(
            f"Expected the nearest training images only with the format safetensors, which ltds reads, but got '{to}'. "
            "Leave it out, or export to safetensors.",
            arguments=["to=safetensors"],
        )


def _require_same(model: Model, difference: float, checked_on: str) -> None:
    """Refuse an export that computes something else than the model."""
    limit = HALF_LIMIT if isinstance(model.record.preprocessing, FrozenPreprocessing) else LIMIT
    if not difference <= limit:  # NaN is not
        raise ExportError(
            f"Expected the export to compute the same as the model up to {limit:g}, but got a difference of "
            f"{difference:g} on {checked_on}. Nothing was written. Export to another format, and please report "
            "this with the name of the method and of the backbone."
        )


@contextmanager
def _errors_explained(out: Path) -> Iterator[None]:
    """Turn the system's errors about the folder `out` into sentences."""
    try:
        yield
    except DiskFullError as error:
        raise ExportError(
            f"Expected room for '{out}', but its disk is full. Nothing was written. Free some space, or choose another "
            "folder on another disk."
        ) from error
    except OSError as error:
        if isinstance(error, FileExistsError) and out.exists():
            raise ExportError(
                f"Expected '{out}' to be a new folder, but there is something already. Delete it, or choose another "
                "folder."
            ) from error
        raise ExportError(
            f"Expected to be able to write '{out}', but the system says: {error.strerror or error} "
            f"('{error.filename}'). Nothing was written. Check the permissions, or choose another folder."
        ) from error
