"""Weights of published generators: read as tensors (no code in the file is run) and checked against the network."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from ltds.core.errors import DataError, expected
from ltds.core.tensors import read_tensors

SHOWN = 3


def read_weights(file: Path) -> dict[str, Tensor]:
    """The tensors in a .safetensors file or one that torch.save wrote, in float32 (published ones may be float16)."""
    if not file.is_file():
        raise DataError(expected(f"'{file}'", "a file of weights", "nothing there", "Check the path of the weights."))
    remedy = "Download it again: it is damaged, or another type of file."
    try:
        content = read_tensors(file)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise DataError(expected(f"'{file}'", "a file of tensors", f"'{reason}'", remedy)) from error
    except Exception as error:
        if type(error).__module__.startswith("safetensors"):  # the exception class belongs to that package
            raise DataError(expected(f"'{file}'", "a safetensors file", f"'{error}'", remedy)) from error
        raise
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        rule = "a state dict: tensors by name"
        raise DataError(expected(f"'{file}'", rule, type(content).__name__, "Save only the network's state_dict()."))
    return {str(name): value.float() if value.is_floating_point() else value for name, value in content.items()}


def fill(network: nn.Module, weights: Mapping[str, Tensor], file: Path, origin: str) -> None:
    """Load the weights into the network; raises if a name or a shape differs, or a number is not finite."""
    wanted = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    problems = [f"no '{name}'" for name in wanted if name not in weights][:SHOWN]
    problems += [f"an unknown '{name}'" for name in weights if name not in wanted][:SHOWN]
    problems += [
        f"'{name}' of shape {tuple(value.shape)} instead of {wanted[name]}"
        for name, value in weights.items()
        if name in wanted and tuple(value.shape) != wanted[name]
    ][:SHOWN]
    problems += [f"NaN or inf in '{name}'" for name, value in weights.items() if not value.isfinite().all()][:SHOWN]
    if problems:
        remedy = f"The published files come from {origin}."
        raise DataError(expected(f"'{file}'", "the weights of this generator", ", ".join(problems), remedy))
    network.load_state_dict(dict(weights))
    network.eval().requires_grad_(False)
