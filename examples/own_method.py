"""Your own method: a class that returns a loss. Saving, exact resuming, evaluation and reports come with it.

    python examples/own_method.py

The same class works on the command line: PYTHONPATH=examples ltds train --method own_method:Focal ...
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import nn

import ltds


class FocalConfig(ltds.Settings):
    """Settings of the focal loss."""

    gamma: float = Field(2.0, description="how much less a well classified sample counts; 0: cross-entropy")


class Focal(ltds.Method):
    """Focal loss on all source domains together (Lin et al., ICCV 2017)."""

    Config = FocalConfig
    mixes_domains = True  # one forward pass holds images of all domains

    def loss(self, batch: ltds.Batch, clock: ltds.Clock) -> ltds.StepLoss:
        log_p = F.log_softmax(self.predict(batch.images).logits, dim=1)
        log_true = log_p.gather(1, batch.labels[:, None]).squeeze(1)
        hardness = (1 - log_true.exp()) ** self.config.gamma
        total = -(hardness * log_true).mean()
        return ltds.StepLoss(total, {"focal": total.detach()})


def tiny_backbone() -> nn.Module:
    """Any module that maps images to features."""
    return nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())


def main(folder: Path = Path("runs/own-method")) -> dict[str, float]:
    torch.set_num_threads(1)
    settings = {
        "method.gamma": 1.0,
        "backbone.name": "own_method:tiny_backbone",
        "data.batch_size": 16,
        "schedule.epochs": 2,
        "schedule.steps_per_epoch": 5,
    }
    run = ltds.RunDirectory(folder / "run")
    if not run.done:
        run = ltds.train("bestiary", method="own_method:Focal", held_out="woodblock", out=run.path, settings=settings)
    summary: dict[str, float] = run.read_metrics()["summary"]
    return summary


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))  # so that "own_method:Focal" can be imported by its name
    print({name: value for name, value in main().items() if name in ("acc_u", "acc", "h_oracle")})
