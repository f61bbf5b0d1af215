"""The numbers of each step: looked at, checked to be finite, and written to the journal.

Looking at a number on a GPU makes the program wait until the GPU has computed it, and meanwhile the GPU gets no new
work. So there the losses stay where they are for some steps, and are then fetched together.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ltds.core.types import StepLoss
from ltds.engine.finite import finite_loss, finite_numbers
from ltds.engine.journal import StepLog

ON_A_GPU = 10  # steps between two looks


def look_every(asked: int, device: torch.device) -> int:
    """How many steps are taken between two looks: as asked, or as suits the device (0)."""
    return asked or (1 if device.type == "cpu" else ON_A_GPU)


@dataclass
class _Step:
    """A step of which some things are not known yet."""

    step: int  # from 0
    names: tuple[str, ...]  # of the terms
    values: Tensor | None  # (terms + total,), on the device
    total: float = 0.0
    terms: dict[str, float] = field(default_factory=dict)
    line: tuple[int, float, float] | None = None  # epoch, learning rate and seconds, once the step is done


class StepNumbers:
    """Passes the numbers of steps on to the journal, after a look at them every few steps."""

    def __init__(self, journal: StepLog, every: int = 1) -> None:
        self.journal, self.every = journal, every
        self.last = float("nan")  # the loss of the last step that was looked at
        self._waiting: list[_Step] = []

    def check(self, loss: StepLoss, step: int) -> None:
        """Before the backward pass. A number that is not finite raises TrainingError, now or at the next look."""
        if self.every == 1:
            total, terms = finite_loss(loss, step)
            self._waiting.append(_Step(step, (), None, total, terms))
            self.last = total
            return
        values = torch.stack([value.detach().float().reshape(()) for value in (*loss.terms.values(), loss.total)])
        self._waiting.append(_Step(step, tuple(loss.terms), values))

    def done(self, epoch: int, lr: float, seconds: float) -> None:
        """After the step whose loss was checked last."""
        self._waiting[-1].line = epoch, lr, seconds
        if len(self._waiting) >= self.every:
            self.look()

    def look(self) -> None:
        """Fetch all numbers that are still on the device, in one piece; check them and write them down."""
        steps, self._waiting = self._waiting, []
        unknown = [(one, one.values) for one in steps if one.values is not None]
        started = time.perf_counter()
        numbers = torch.cat([values for _, values in unknown]).tolist() if unknown else []
        waited = (time.perf_counter() - started) / max(1, len(steps))  # for the work of all these steps
        for one, values in unknown:
            own, numbers = numbers[: len(values)], numbers[len(values) :]
            one.total, one.terms = finite_numbers(dict(zip(one.names, own[:-1], strict=True)), own[-1], one.step)
        for one in steps:
            if one.line is not None:
                epoch, lr, seconds = one.line
                self.journal.step(one.step + 1, epoch, lr, one.total, one.terms, seconds + waited)
                self.last = one.total
