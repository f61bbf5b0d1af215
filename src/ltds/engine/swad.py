"""SWAD (Cha et al., NeurIPS 2021): the mean of the weights over a window of steps that source validation chooses.

Algorithm 1 of the paper with one validation an epoch. E_i is the validation loss after epoch i. The window starts with
the first epoch s whose loss is the smallest of E_s .. E_{s+Ns-1}. It ends before the first Ne epochs in a row whose
losses are all above (1 + r) times the mean of E_s .. E_{s+Ns-1}, or with the phase. The result is the mean of the
weights after every step of the window; BatchNorm's statistics are then estimated for it (engine/batchnorm.py).
E_i is plain cross-entropy of the logits for every method. The authors of a method whose training loss is adjusted to
class counts (bsce, ltds) might adjust it here, too, which could choose another window.
The authors' code differs in two ways: it also takes in epochs just before s whose losses are not above that limit, and
at the end of training it leaves out the last epochs if they are above it, even if they are fewer than Ne.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from ltds.core.task import Task
from ltds.engine.averaging import weights_of, with_weights
from ltds.engine.phases import ScheduledPhase
from ltds.engine.settings import AveragingSettings
from ltds.evaluation.table import PredictionTable

Weights = dict[str, Tensor]


@dataclass
class MeanWeights:
    """The mean of `count` sets of weights; integer and boolean buffers, and those in `copied`, are of the last set."""

    count: int = 0
    weights: Weights = field(default_factory=dict)
    copied: frozenset[str] = frozenset()

    def add(self, weights: Mapping[str, Tensor], count: int = 1) -> None:
        """Take in `count` more sets of weights, of which these are the mean."""
        self.count += count
        if not self.weights:
            self.weights = {name: value.clone() for name, value in weights.items()}
            return
        for name, value in weights.items():
            if value.is_floating_point() and name not in self.copied:
                self.weights[name].lerp_(value, count / self.count)
            else:
                self.weights[name].copy_(value)


class WeightWindow:
    """The epochs of a phase as SWAD sees them.

    `epoch` averages the steps since the last validation, `pending` are epochs that may belong to the window, with their
    losses, and `window` is what certainly belongs to it. `limit`: the loss above which an epoch counts as too high.
    `copied`: names of buffers that are not averaged.
    """

    def __init__(self, settings: AveragingSettings, copied: Collection[str] = ()) -> None:
        self.settings, self.copied = settings, frozenset(copied)
        self.clear()

    def clear(self) -> None:
        """Forget everything: a new phase has its own window."""
        self.epoch, self.window = self._mean(), self._mean()
        self.pending: list[tuple[float, MeanWeights]] = []
        self.limit = float("nan")
        self.ended = False

    def _mean(self, count: int = 0, weights: Weights | None = None) -> MeanWeights:
        return MeanWeights(count, weights or {}, self.copied)

    def update(self, method: nn.Module, scheduled: ScheduledPhase, step: int) -> None:
        """Take in the weights after a step."""
        if not self.ended:
            self.epoch.add(weights_of(method))

    def observe(self, loss: float) -> None:
        """Take in the validation loss after an epoch."""
        if self.ended:
            return
        self.pending.append((loss, self.epoch))
        self.epoch = self._mean()
        if self.window.count:
            self._continue()
        elif len(self.pending) == self.settings.start_patience:
            losses = [value for value, _ in self.pending]
            if losses[0] == min(losses):
                self._start(losses)
            else:
                del self.pending[0]

    def _start(self, losses: list[float]) -> None:
        self.limit = (1 + self.settings.tolerance) * (sum(losses) / len(losses))
        epochs, self.pending = self.pending, []
        for epoch in epochs:
            if not self.ended:
                self.pending.append(epoch)
                self._continue()

    def _continue(self) -> None:
        """An epoch that is not too high confirms those before it; enough epochs that are too high end the window."""
        if self.pending[-1][0] <= self.limit:
            for _, epoch in self.pending:
                self.window.add(epoch.weights, epoch.count)
            self.pending = []
        elif len(self.pending) == self.settings.end_patience:
            self.pending, self.ended = [], True

    def result(self) -> Weights | None:
        """The mean over the window, at the end of a phase; None where no epoch could start one."""
        if not self.window.count:
            return None
        mean = self._mean()
        mean.add(self.window.weights, self.window.count)
        for _, epoch in self.pending:
            mean.add(epoch.weights, epoch.count)
        return mean.weights

    @contextmanager
    def applied(self, method: nn.Module) -> Iterator[None]:
        """Validation during training sees the raw weights: the window depends on them."""
        yield

    @contextmanager
    def result_applied(self, method: nn.Module) -> Iterator[bool]:
        """The method with the weights of the window inside the block; False, and unchanged, where there is none."""
        result = self.result()
        if result is None:
            yield False
            return
        with with_weights(method, result):
            yield True

    @property
    def tensors(self) -> Weights:
        """All of its state, for a checkpoint: weights as "PART/NAME", and numbers."""
        numbers = [self.limit, float(self.ended), float(self.epoch.count), float(self.window.count)]
        parts = {"epoch": self.epoch, "window": self.window}
        for i, (loss, epoch) in enumerate(self.pending):
            numbers += [loss, float(epoch.count)]
            parts[f"pending{i}"] = epoch
        state = {f"{part}/{name}": w for part, mean in parts.items() for name, w in mean.weights.items()}
        return {**state, "numbers": torch.tensor(numbers, dtype=torch.float64)}

    @tensors.setter
    def tensors(self, state: Weights) -> None:
        self.clear()
        if "numbers" not in state:
            return
        self.limit, ended, *counts = state["numbers"].tolist()
        self.ended = bool(ended)
        self.epoch, self.window = (
            self._mean(int(count), _part(state, name))
            for name, count in zip(("epoch", "window"), counts[:2], strict=True)
        )
        pairs = list(zip(counts[2::2], counts[3::2], strict=True))
        self.pending = [(loss, self._mean(int(n), _part(state, f"pending{i}"))) for i, (loss, n) in enumerate(pairs)]


def validation_loss(table: PredictionTable, task: Task) -> float:
    """Cross-entropy of validation images of known classes, averaged over each source domain, then over domains.

    Images of open classes are left out, as in `validation_metrics`: a method without outputs for these classes has an
    infinite loss on them, and then any epoch could start the window.
    """
    known = ~np.isin(table.labels, task.open_classes)
    logits, labels, domains = table.logits[known].astype(np.float64), table.labels[known], table.domains[known]
    shifted = logits - logits.max(axis=1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(shifted)), labels]
    sources = [task.domains.index(source) for source in task.sources]
    return float(np.mean([losses[domains == d].mean() for d in sources if (domains == d).any()]))


def _part(state: Weights, part: str) -> Weights:
    return {name.removeprefix(f"{part}/"): value for name, value in state.items() if name.startswith(f"{part}/")}
