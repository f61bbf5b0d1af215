"""What the first rank has read or chosen becomes the state of every rank."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import torch
from torch import Tensor

from ltds.engine.checkpoint import TrainState, named_state
from ltds.engine.session import Session


def restored_in_all(session: Session, read: Callable[[], TrainState]) -> TrainState:
    """The first rank reads a checkpoint; then every rank has its weights, optimizer state and average.

    So the files of a run need to be on the machine of the first rank only, and any number of ranks can go on.
    """
    ranks = session.ranks
    if ranks.alone:
        return read()
    state = read() if ranks.first else TrainState()
    state = TrainState(**json.loads(ranks.told_by_first(json.dumps(asdict(state)))))
    named = named_state(session.method, session.optimizer, session.average.tensors)
    tensors = ranks.tensors_of_first(named, session.device)
    if not ranks.first:
        _take_over(session, tensors)
    return state


def _take_over(session: Session, tensors: dict[str, Tensor]) -> None:
    parameters = dict(session.method.named_parameters())
    session.optimizer.state.clear()
    weights, average = {}, {}
    for name, value in tensors.items():
        part, _, rest = name.partition(".")
        if part == "method":
            weights[rest] = value
        elif part == "average":
            average[rest] = _laid_out_like(session.method.state_dict().get(rest.rpartition("/")[2]), value)
        else:
            key, _, parameter_name = rest.partition(".")
            parameter = parameters[parameter_name]
            value = value.cpu() if key == "step" else value  # torch keeps this counter of AdamW on the CPU
            session.optimizer.state[parameter][key] = _laid_out_like(parameter, value)
    session.method.load_state_dict(weights)
    session.average.tensors = average


def _laid_out_like(weight: Tensor | None, value: Tensor) -> Tensor:
    """The value in the memory layout of its weight, on which the rounding of later steps may depend."""
    if weight is None or weight.shape != value.shape:
        return value
    return torch.empty_like(weight, dtype=value.dtype, requires_grad=False).copy_(value)
