"""Your own method: a class that returns a loss. Saving, exact resume, evaluation and reports come with it.

    python examples/own_method.py

The same class works on the command line: PYTHONPATH=examples ltds train --method own_method:Focal ...
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import ltds
from ltds.core.config import Settings
from ltds.core.types import Clock
from ltds.data.datasets.bestiary import BestiaryConfig, build


class FocalConfig(Settings):
    """`gamma`: how much less a sample counts that is already classified well (0: cross-entropy)."""

    gamma: float = 2.0


class Focal(ltds.Method):
    """Focal loss on all source domains together (Lin et al., ICCV 2017)."""

    Config = FocalConfig

    def loss(self, batch: ltds.Batch, clock: Clock) -> ltds.StepLoss:
        log_p = F.log_softmax(self.predict(batch.images).logits, dim=1)
        log_true = log_p.gather(1, batch.labels[:, None]).squeeze(1)
        hardness = (1 - log_true.exp()) ** self.config.gamma
        total = -(hardness * log_true).mean()
        return ltds.StepLoss(total, {"focal": total.detach()})


def tiny_backbone() -> nn.Module:
    """Any module from images to features will do."""
    return nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())


def main(folder: Path = Path("runs/own-method")) -> dict[str, float]:
    torch.set_num_threads(1)
    small = BestiaryConfig(n_max=20, n_min=4, val_per_pair=1, test_per_pair=1)
    manifest = build(folder / "data", small)
    settings = {
        "data": {"root": str(folder / "data"), "held_out": "woodblock", "batch_size": 16},
        "method": {"name": "own_method:Focal", "gamma": 1.0},
        "backbone": {"name": "own_method:tiny_backbone"},
        "schedule": {"epochs": 2, "steps_per_epoch": 5},
    }
    run = ltds.RunDirectory(folder / "run")
    if not run.done:
        ltds.create_run(run, ltds.resolve(settings, dataset=manifest.name), manifest)
    summary: dict[str, float] = run.read_metrics()["summary"]
    return summary


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parent))  # so that "own_method:Focal" can be imported by its name
    print({name: value for name, value in main().items() if name in ("acc_u", "acc", "h_oracle")})
