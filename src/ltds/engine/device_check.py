"""Whether a GPU computes what the CPU computes: the gradient of a step on both."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ltds.core.rng import generator
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.engine.build import build_method
from ltds.engine.config import resolve
from ltds.semantics.embeddings import ClassEmbeddings

ALLOWED = 0.01  # of the gradient's length; on a CPU, another layout of the images changes 0.00002 of it
CLASSES, DOMAINS, IMAGES, SIZE = 6, 3, 8, 32  # images: of each domain
SETTINGS = {
    "data": {"root": "none", "held_out": "new", "size": SIZE, "batch_size": IMAGES},
    "backbone": {"name": "resnet10", "stem": "small", "width": 16},
    "method": {"name": "ltds-i", "temperature": 0.2},  # its inner step would amplify what is rounded
}


def gradient_difference(device: torch.device) -> float:
    """How far the device's gradient is from the CPU's, as a share of its length, without TF32; inf if not finite."""
    with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        here, there = (_gradient(each) for each in (torch.device("cpu"), device))
    difference = float((there - here).norm() / here.norm())
    return difference if np.isfinite(difference) else float("inf")


def _gradient(device: torch.device) -> Tensor:
    """All gradients of the last step of a run, one after the other, on the CPU."""
    classes = tuple(f"class {i}" for i in range(CLASSES))
    domains = tuple(f"domain {i}" for i in range(DOMAINS))
    counts = np.array([[40 // (i + 1) for i in range(CLASSES)]] * DOMAINS)
    task = Task("device check", classes, (*domains, "new"), "new", counts)
    rng = generator(0, "device check")
    embeddings = ClassEmbeddings(classes, torch.randn(CLASSES, 16, generator=rng))
    method = build_method(resolve(SETTINGS), task, embeddings, device).train()
    number = DOMAINS * IMAGES
    batch = Batch(
        torch.randn(number, 3, SIZE, SIZE, generator=rng).to(device),
        torch.randint(CLASSES, (number,), generator=rng).to(device),
        torch.arange(DOMAINS).repeat_interleave(IMAGES).to(device),
        torch.arange(number).to(device),
    )
    for step in (0, 99):  # the first fills the prototypes, the last has every loss
        total = method.loss(batch, Clock(0, step, 100, 10)).total
    total.backward()  # type: ignore[no-untyped-call]
    return torch.cat([p.grad.flatten().cpu() for p in method.parameters() if p.grad is not None])
