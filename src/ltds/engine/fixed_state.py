"""The parameters and buffers of a method stay the same ones: a checkpoint is loaded into a method that was just built.

A buffer that grows, a layer that `loss` creates or one that `start_phase` replaces would train to the end of the run,
and then nobody could resume the run or load its model; and the optimizer does not train what it was not given.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ltds.core.errors import ConfigError, TrainingError, expected

StateLayout = Mapping[str, tuple[torch.dtype, tuple[int, ...]]]
IN_INIT = "Create all parameters and buffers in __init__, with their final shape"


def require_storable_state(method: nn.Module) -> None:
    """Raise unless a checkpoint can hold all that the method's state dict has: tensors of a known shape."""
    for name, value in method.state_dict().items():
        if not isinstance(value, Tensor):
            remedy = "Keep it in a buffer (self.register_buffer) instead of get_extra_state."
            got = f"a {type(value).__name__} as '{name}'"
            raise ConfigError(expected(f"the state of {type(method).__name__}", "tensors only", got, remedy))
        if is_lazy(value):
            got, remedy = f"'{name}' without one", f"{IN_INIT}: no lazy layers such as nn.LazyLinear."
            whose = f"the parameters of {type(method).__name__}"
            raise ConfigError(expected(whose, "of a known shape", got, remedy))


def layout_of(method: nn.Module) -> StateLayout:
    """Name, type and shape of every parameter and buffer that a checkpoint holds."""
    return {name: (value.dtype, tuple(value.shape)) for name, value in method.state_dict().items()}


def require_same_state(method: nn.Module, layout: StateLayout, optimizer: torch.optim.Optimizer) -> None:
    """Raise unless the method has the parameters and buffers that it began with, and the optimizer has them, too."""
    whose, now = f"the parameters and buffers of {type(method).__name__}", layout_of(method)
    for name in (*now, *layout):
        if now.get(name) != layout.get(name):
            got = f"'{name}' as {_words(now.get(name))} instead of {_words(layout.get(name))}"
            remedy = f"{IN_INIT}, and change them in place, as in self.bank.copy_(values)."
            raise TrainingError(expected(whose, "the same in all of training", got, remedy))
    known = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for name, parameter in method.named_parameters():
        if id(parameter) not in known:
            got = f"another object for '{name}', which the optimizer does not know and would never train"
            remedy = "Change weights in place, as in self.classifier.reset_parameters(); do not replace the layer."
            raise TrainingError(expected(whose, "the same in all of training", got, remedy))


def _words(entry: tuple[torch.dtype, tuple[int, ...]] | None) -> str:
    return "nothing" if entry is None else f"{str(entry[0]).removeprefix('torch.')} {entry[1]}"
