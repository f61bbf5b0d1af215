"""Some steps of methods in float64, in one process or in several ranks.

`python ranked_steps.py JOB` is one rank; JOB is the JSON text of the arguments of `main`.
"""

from __future__ import annotations

import datetime
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ltds.core.ranks import ALONE, Ranks
from ltds.core.rng import numpy_generator
from ltds.core.types import Batch
from ltds.data.inputs import NetworkInputs, Rows
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.fitting import fit_in_training
from ltds.engine.loop import take_step
from ltds.engine.phases import freeze, start_phase
from ltds.engine.step_numbers import StepNumbers
from toy import toy_config


class PlainNet(nn.Module):
    """Two convolutions, no BatchNorm."""

    out_features = 8

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3, stride=2), nn.Conv2d(6, 8, 3, stride=2)

    @property
    def stages(self) -> tuple[nn.Module, ...]:
        return self.first, self.second

    def forward(self, images: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(images))).relu().mean((2, 3))


class InDouble:
    """The inputs of a session in float64, for what a method computes from whole splits."""

    def __init__(self, inputs: NetworkInputs) -> None:
        self.inputs, self.checksum = inputs, inputs.checksum

    def training(self, batch: Rows, share: Rows, seed: int, step: int) -> Tensor:
        return self.inputs.training(batch, share, seed, step).double()

    def evaluation(self, rows: Rows) -> Tensor:
        return self.inputs.evaluation(rows).double()


class StepLosses:
    """A step log that keeps the losses."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def step(self, step: int, epoch: int, lr: float, loss: float, terms: Any, seconds: float) -> None:
        self.losses.append(loss)


def take_steps(manifest: Manifest, method: str, network: str, ranks: Ranks = ALONE) -> dict[str, Tensor]:
    """The losses, and all weights and statistics, after three steps of a run (four with two phases)."""
    groups: dict[str, dict[str, Any]] = {
        # Three ranks have unequal shares of seven images; five are too few to be shared out.
        "data": {"held_out": "", "batch_size": 5 if method == "isda" else 7},
        "schedule": {"epochs": 3, "steps_per_epoch": 1},  # in the third, ltds augments with its covariances
        "optimizer": {"lr": 0.02},
        "run": {"sync_batchnorm": network == "tiny"},
        "backbone": {"name": network},
    }
    if network != "tiny" and method.startswith("mixstyle"):
        groups["method"] = {"mixstyle": {"stages": [1, 2]}}
    if method == "equal":
        groups["method"] = {"criterion": {"rare_share": 0.1}}
    session = assemble(toy_config(manifest, method, **groups), manifest, ranks=ranks)
    session = replace(session, inputs=InDouble(session.inputs))
    session.method.double()
    for i, parameter in enumerate(session.method.parameters()):
        drawn = numpy_generator(0, "tests/weights", i).uniform(-1, 1, parameter.shape)
        parameter.data.copy_(torch.as_tensor(drawn) / math.sqrt(max(1, parameter[0].numel())))
    log = StepLosses()
    for step in range(session.steps):
        scheduled = session.phase_at(step)
        if step == scheduled.start:
            if step > 0:
                start_phase(scheduled, session.method, session.optimizer, seed=0)
            freeze(session.method, scheduled.phase, session.learnable)
        batch: Batch = session.batch(step)
        fit_in_training(session, step)
        take_step(session, replace(batch, images=batch.images.double()), step, StepNumbers(log))
    weights = {name: value.double() for name, value in session.method.state_dict().items()}
    return {"losses": torch.tensor(log.losses, dtype=torch.float64), **weights}


def main(rank: int, world: int, store: str, root: str, cases: list[list[str]], out: str) -> None:
    torch.set_num_threads(1)
    group = dist.FileStore(store, world)
    timeout = datetime.timedelta(seconds=120)
    dist.init_process_group("gloo", store=group, rank=rank, world_size=world, timeout=timeout)
    manifest = Manifest.read(Path(root))
    results = {f"{m}/{n}": take_steps(manifest, m, n, Ranks(rank, world)) for m, n in cases}
    torch.save(results, f"{out}-{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
