"""Checkpoints as safetensors: parameters, buffers, optimizer state, and how far training got. Reading one runs no code.

Nothing random is saved: draws are addressed by (seed, stream, step), so the step is all the state they have.
A checkpoint carries the SHA-256 of its content, which is compared whenever it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from ltds.core.errors import CheckpointError
from ltds.core.files import atomic, rename
from ltds.core.tensors import packed

FORMAT = 3
FORMAT_WITHOUT_CHECKSUM = 2  # still read


@dataclass(frozen=True)
class TrainState:
    """Steps done so far, the best validation accuracy, and after how many steps it was reached."""

    step: int = 0
    best_accuracy: float = -1.0
    best_step: int = 0


def save_checkpoint(
    file: Path,
    method: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    state: TrainState,
    identity: str,
    average: Mapping[str, Tensor] | None = None,
    *,
    previous: Path | None = None,
) -> None:
    """Write all that resuming needs, and which run it belongs to. The old file stays until the new one is complete.

    `previous`: a name under which the old file is kept beyond that, in case the new one gets damaged.
    """
    _write(file, named_state(method, optimizer, average), state, identity, previous)


def named_state(
    method: nn.Module, optimizer: torch.optim.Optimizer | None, average: Mapping[str, Tensor] | None
) -> dict[str, Tensor]:
    """Weights, optimizer state and averages by the names that they have in a checkpoint."""
    tensors = {f"method.{name}": value for name, value in method.state_dict().items()}
    for name, parameter in method.named_parameters():
        for key, value in (optimizer.state.get(parameter, {}) if optimizer else {}).items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{key}.{name}"] = value
    return tensors | {f"average.{name}": value for name, value in (average or {}).items()}


def adopt_checkpoint(source: Path, file: Path, method: nn.Module, identity: str, *, source_identity: str) -> None:
    """Write the weights in `source`, of the run `source_identity`, as a checkpoint of this run between two phases.

    What only this run's method has keeps the value that it has now. A phase begins without optimizer state and
    averages, so they are left out.
    """
    tensors, header = _read(source)
    weights = method.state_dict() | _with_prefix(tensors, "method.")
    if header.get("identity") != source_identity or _shapes(weights) != _shapes(method.state_dict()):
        raise _misfit(source)
    named = {f"method.{name}": value for name, value in weights.items()}
    _write(file, named, _state(source, header.get("state")), identity)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in tensors.items()}


def _write(
    file: Path, tensors: Mapping[str, Tensor], state: TrainState, identity: str, previous: Path | None = None
) -> None:
    values = packed(tensors)
    header: dict[str, Any] = {"format": FORMAT, "state": asdict(state), "identity": identity}
    header["sha256"] = _checksum(values, header)
    content = save(values, metadata={"ltds": json.dumps(header)})
    with atomic(file, len(content)) as stream:
        stream.write(content)
        if previous is not None and file.is_file():
            _keep(file, previous)


def _keep(file: Path, name: Path) -> None:
    """Give the file a second name, which may exist already."""
    link = name.with_name(f".{name.name}.part")
    link.unlink(missing_ok=True)
    try:
        os.link(file, link)
    except OSError:  # no hard links on this disk: until the new file is there, the old one has only its second name
        link = file
    rename(link, name)
    link.unlink(missing_ok=True)  # renaming onto another name of the same file, as after a kill, does nothing


def _checksum(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> str:
    """SHA-256 of the header, and of name, type, shape and bytes of every tensor."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"\0{name} {value.dtype} {tuple(value.shape)}\0".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_checkpoint(
    file: Path,
    method: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    identity: str | None = None,
    average: dict[str, Tensor] | None = None,
    *,
    former_identities: Collection[str] = (),
) -> TrainState:
    """Restore a method, and an optimizer where one is given, bit for bit; averaged weights are put into `average`.

    `identity`: the run that the checkpoint must belong to; `former_identities`: what earlier versions called this run.
    """
    tensors, header = _read(file)
    if identity is not None and header.get("identity") not in (identity, *former_identities):
        raise CheckpointError(
            f"Expected the dataset and the settings that '{file}' was trained with, but one of them has changed since. "
            "Restore manifest.csv and config.toml, or train a new run in another folder."
        )
    try:
        method.load_state_dict(_with_prefix(tensors, "method."))
    except RuntimeError as error:
        raise CheckpointError(f"Expected '{file}' to fit the run's config.toml, but got: {error}") from error
    if optimizer is not None:
        _restore_optimizer(file, optimizer, method, tensors)
    if average is not None:
        average.update(_averaged(file, tensors, method))
    return _state(file, header.get("state"))


def _state(file: Path, stored: object) -> TrainState:
    try:
        state = TrainState(**stored)  # type: ignore[arg-type]
        counts = (state.step, state.best_step)
        if not all(type(count) is int and count >= 0 for count in counts) or type(state.best_accuracy) is not float:
            raise ValueError(stored)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"Expected '{file}' to say how many steps were taken, but got {stored!r}. "
            "Train the run again in another folder."
        ) from error
    return state


def _averaged(file: Path, tensors: Mapping[str, Tensor], method: nn.Module) -> dict[str, Tensor]:
    """The averaged weights in a checkpoint, on the method's device; empty where averaging had not started."""
    state = method.state_dict()
    average = _with_prefix(tensors, "average.")
    restored = {}
    for name, value in average.items():
        weight = name.rpartition("/")[2]  # SWAD keeps several averages: "PART/NAME", and a vector of numbers
        if weight in state and state[weight].shape == value.shape:
            restored[name] = torch.empty_like(state[weight]).copy_(value)
        elif name == "numbers":
            restored[name] = value
        else:
            raise _misfit(file)
    return restored


def _with_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _restore_optimizer(
    file: Path, optimizer: torch.optim.Optimizer, method: nn.Module, tensors: dict[str, Tensor]
) -> None:
    optimizer.state.clear()
    parameters = dict(method.named_parameters())
    for name, value in _with_prefix(tensors, "optimizer.").items():
        key, _, parameter_name = name.partition(".")
        if parameter_name not in parameters:
            raise _misfit(file)
        parameter = parameters[parameter_name]
        if value.shape == parameter.shape:  # in the parameter's memory layout, on its device
            value = torch.empty_like(parameter).copy_(value)
        optimizer.state[parameter][key] = value.detach()


def _misfit(file: Path) -> CheckpointError:
    return CheckpointError(
        f"Expected '{file}' to fit the run's config.toml, but it holds the state of other parameters. "
        "Restore config.toml, or train the run again in another folder."
    )


def _read(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        content = file.read_bytes()  # no memory map (see data/read_at.py), which tensors would keep open
        tensors = load(content)
        metadata = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__") or {}
        header = json.loads(metadata.get("ltds", "{}"))
        if not isinstance(header, dict):
            raise ValueError(f"metadata of type {type(header).__name__}")
    except (OSError, SafetensorError, ValueError, LookupError, RecursionError) as error:
        raise CheckpointError(
            f"Expected '{file}' to be a checkpoint of ltds, but it could not be read: {error}. "
            "If the run has no other checkpoint, train it again in another folder."
        ) from error
    if header.get("format") not in (FORMAT, FORMAT_WITHOUT_CHECKSUM):
        raise CheckpointError(
            f"Expected '{file}' to be a checkpoint of format {FORMAT}, but got {header.get('format', 'none')}: another "
            "version of ltds, or another program, wrote it. Train the run again in another folder."
        )
    if header["format"] == FORMAT or "sha256" in header:
        stated = header.pop("sha256", None)
        if _checksum(tensors, header) != stated:
            raise CheckpointError(
                f"Expected '{file}' to hold what was saved, but its content does not match its checksum: the disk or a "
                "copy has changed it. Restore it from a backup, or train the run again in another folder."
            )
    return tensors, header
