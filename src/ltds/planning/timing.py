"""How long a run takes: a few real steps and a forward pass, measured on this machine and then forgotten."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from ltds.core.errors import TrainingError
from ltds.engine.finite import REMEDY
from ltds.engine.journal import SilentJournal
from ltds.engine.loop import take_step
from ltds.engine.phases import freeze
from ltds.engine.session import Session
from ltds.engine.step_numbers import StepNumbers
from ltds.evaluation import features

SLOW = 20.0  # seconds of a step after which no other is measured
IMAGES = 64
STARTUP = 5.0  # seconds for what a run does once: loading, saving, drawing thumbnails


@dataclass(frozen=True)
class StepTiming:
    """Seconds of a training step with its batch, and of an image that is only looked at."""

    step: float
    image: float

    def run(self, steps: int, epochs: int, forward_only: ForwardOnly) -> float:
        """Seconds of a whole run."""
        return STARTUP + steps * self.step + forward_only.images(epochs) * self.image

    def steps_within(self, seconds: float, epochs: int, forward_only: ForwardOnly) -> int:
        """How many steps fit into a time."""
        return int((seconds - self.run(0, epochs, forward_only)) / self.step)


@dataclass(frozen=True)
class ForwardOnly:
    """Images that a run passes through the network without a step: those of `val` and `test`, and `fitted`.

    fitted: how often, counted with repetitions, the method looks at training images between steps.
    """

    val: int
    test: int
    fitted: int = 0

    @classmethod
    def of(cls, session: Session) -> ForwardOnly:
        passes = sum(session.method.fits_before(session.clock(step)) for step in range(session.steps))
        return cls(len(session.rows("val")), len(session.rows("test")), passes * len(session.rows("train")))

    def images(self, epochs: int) -> int:
        """In a whole run, with a validation after each epoch, and predictions and features at the end."""
        return self.fitted + self.val * (epochs + 1) + self.test + min(self.test, features.SIZE)


def measure(session: Session) -> StepTiming:
    """Take three steps of the first phase: one to warm up, one at its start, one at its end, where it may cost more.

    The session is of no use afterwards: its weights have changed.
    """
    first = session.phases[0]
    freeze(session.method, first.phase, session.learnable)
    seconds = [_step(session, 0)]
    if seconds[0] < SLOW:
        try:
            seconds = [_step(session, step) for step in (min(1, first.stop - 1), first.stop - 1)]
        except TrainingError as error:
            raise _before_the_run(error) from error
    return StepTiming(sum(seconds) / len(seconds), _evaluation(session))


def _before_the_run(error: TrainingError) -> TrainingError:
    """The same error without the advice for a run: there is none yet, and no checkpoint."""
    return TrainingError(
        f"{str(error).removesuffix(REMEDY)}This happened while steps were measured, before the run began, and nothing "
        "of it was written. Set a smaller optimizer.lr."
    )


def _step(session: Session, step: int) -> float:
    started = time.perf_counter()
    take_step(session, session.batch(step), step, StepNumbers(SilentJournal()))
    _synchronize(session.device)
    return time.perf_counter() - started


@torch.inference_mode()
def _evaluation(session: Session) -> float:
    rows = session.rows("test")[:IMAGES]
    session.method.eval()
    started = time.perf_counter()
    for images, _ in session.images_of(rows):
        session.method.predict(images)
    _synchronize(session.device)
    return (time.perf_counter() - started) / max(1, len(rows))


def _synchronize(device: torch.device) -> None:
    """Wait for the device: a GPU works on after the call has returned."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
