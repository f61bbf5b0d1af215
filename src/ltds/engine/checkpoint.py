"""Checkpoints as safetensors: parameters, buffers, optimizer state, and how far training got. Reading one runs no code.

Nothing random is saved: draws are addressed by (seed, stream, step), so the step is all the state they have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from ltds.core.errors import CheckpointError
from ltds.core.files import write_bytes

FORMAT = 2


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
) -> None:
    """Write all that resuming needs, and which run it belongs to. The old file stays until the new one is complete."""
    tensors = {f"method.{name}": value for name, value in method.state_dict().items()}
    for name, parameter in method.named_parameters():
        for key, value in (optimizer.state.get(parameter, {}) if optimizer else {}).items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{key}.{name}"] = value
    tensors |= {f"average.{name}": value for name, value in (average or {}).items()}
    header = {"format": FORMAT, "state": asdict(state), "identity": identity}
    packed = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    write_bytes(file, save(packed, metadata={"ltds": json.dumps(header)}))


def load_checkpoint(
    file: Path, method: nn.Module, optimizer: torch.optim.Optimizer | None = None, identity: str | None = None
) -> TrainState:
    """Restore a method, and an optimizer where one is given, bit for bit."""
    tensors, header = _read(file)
    if identity is not None and header.get("identity") != identity:
        raise CheckpointError(
            f"Expected the dataset and the settings that '{file}' was trained with, but one of them has changed since. "
            "Restore manifest.csv and config.toml, or train a new run in another folder."
        )
    try:
        method.load_state_dict(_with_prefix(tensors, "method."))
    except RuntimeError as error:
        raise CheckpointError(f"Expected '{file}' to fit the run's config.toml, but got: {error}") from error
    if optimizer is not None:
        _restore_optimizer(optimizer, method, tensors)
    return TrainState(**header["state"])


def load_average(file: Path, method: nn.Module) -> dict[str, Tensor]:
    """The averaged weights in a checkpoint, on the method's device; empty where averaging had not started."""
    tensors, _ = _read(file)
    state = method.state_dict()
    average = _with_prefix(tensors, "average.")
    return {name: torch.empty_like(state[name]).copy_(value) for name, value in average.items()}


def _with_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _restore_optimizer(optimizer: torch.optim.Optimizer, method: nn.Module, tensors: dict[str, Tensor]) -> None:
    optimizer.state.clear()
    parameters = dict(method.named_parameters())
    for name, value in _with_prefix(tensors, "optimizer.").items():
        key, parameter_name = name.split(".", 1)
        parameter = parameters[parameter_name]
        if value.shape == parameter.shape:  # in the parameter's memory layout, on its device
            value = torch.empty_like(parameter).copy_(value)
        optimizer.state[parameter][key] = value.detach()


def _read(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(file, framework="pt") as archive:
            header = json.loads((archive.metadata() or {}).get("ltds", "{}"))
            tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118 (not a dict)
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointError(
            f"Expected '{file}' to be a checkpoint of ltds, but it could not be read: {error}. "
            "If the run has no other checkpoint, train it again in another folder."
        ) from error
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"Expected '{file}' to be a checkpoint of format {FORMAT}, but got {header.get('format', 'none')}: another "
            "version of ltds, or another program, wrote it. Train the run again in another folder."
        )
    return tensors, header
