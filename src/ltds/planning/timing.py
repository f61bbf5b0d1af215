"""How long a run takes: a few real steps and a forward pass, measured on this machine and then forgotten."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from ltds.engine.journal import SilentJournal
from ltds.engine.loop import take_step
from ltds.engine.phases import freeze
from ltds.engine.session import Session
from ltds.engine.step_numbers import StepNumbers

SLOW = 20.0  # seconds of a step after which no other is measured
IMAGES = 64
STARTUP = 5.0  # seconds for what a run does once: loading, saving, drawing thumbnails
KEPT_FEATURES = 2000  # at most, of test images, at the end


@dataclass(frozen=True)
class StepTiming:
    """Seconds of a training step with its batch, and of the evaluation of one image."""

    step: float
    image: float

    def run(self, steps: int, epochs: int, val: int, test: int) -> float:
        """Seconds of a whole run: training, a validation after each epoch, predictions at the end."""
        images = val * (epochs + 1) + test + min(test, KEPT_FEATURES)
        return STARTUP + steps * self.step + images * self.image

    def steps_within(self, seconds: float, epochs: int, val: int, test: int) -> int:
        """How many steps fit into a time."""
        return int((seconds - self.run(0, epochs, val, test)) / self.step)


def measure(session: Session) -> StepTiming:
    """Take three steps of the first phase: one to warm up, one at its start, one at its end, where it may cost more.

    The session is of no use afterwards: its weights have changed.
    """
    first = session.phases[0]
    freeze(session.method, first.phase, session.learnable)
    seconds = [_step(session, 0)]
    if seconds[0] < SLOW:
        seconds = [_step(session, step) for step in (min(1, first.stop - 1), first.stop - 1)]
    return StepTiming(sum(seconds) / len(seconds), _evaluation(session))


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
