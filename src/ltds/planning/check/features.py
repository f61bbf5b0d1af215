"""Features for the quick probe: of a pretrained network where one is installed, else of colours and edges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ltds.core.devices import to_layout
from ltds.core.progress import SILENT, Progress
from ltds.core.rng import numpy_generator
from ltds.data.decode import decode_tensor
from ltds.data.transforms import EvalTransform
from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.nn.efficientnet import DEFAULT_VARIANT
from ltds.planning.check.looking import SIDE

MOST = 1500  # images of the probe
SIZE, BATCH = 96, 32


def probe_rows(rows: Sequence[int], pairs: Sequence[int], most: int = MOST) -> list[int]:
    """At most `most` of the rows, drawn so that small (domain, class) pairs are kept whole: pairs take turns."""
    order = numpy_generator(0, "check/probe").permutation(len(rows))
    turn: dict[int, int] = {}
    ranked = []
    for i in order:
        turn[pairs[i]] = turn.get(pairs[i], 0) + 1
        ranked.append((turn[pairs[i]], rows[i]))
    return sorted(row for _, row in sorted(ranked, key=lambda item: item[0])[:most])


@torch.inference_mode()
def network_features(paths: Sequence[Path], progress: Progress = SILENT) -> NDArray[np.float32]:
    """(N,1280) features of EfficientNet-lite0 with ImageNet weights, at 96 pixels."""
    network = build_backbone(BackboneSettings(name=DEFAULT_VARIANT, weights="imagenet")).eval()
    to_layout(network, torch.device("cpu"))
    transform = EvalTransform(size=SIZE)
    features = []
    with progress.track("Probing", len(paths)) as advance:
        for start in range(0, len(paths), BATCH):
            batch = [decode_tensor(path, SIDE) for path in paths[start : start + BATCH]]
            features.append(network(transform(batch)).float().numpy())
            advance(len(batch))
    return np.concatenate(features)
