"""What does the inner step of ltds change? Gradients of the meta-test losses at theta' beside those at theta.

    python benchmarks/meta_gradient.py --held-out plain --out runs/meta --record results/meta_gradient.json

Trains `ltds` with the recipe of the dataset and stops at some steps. There it compares, on the next training batches,
the gradient of L_mte by theta where L_mte is taken at theta' = theta - beta_1 grad L_mtr (first order: theta' counts as
theta plus a constant; second order: exact) with the gradient where it is taken at theta itself. Those are the gradients
of training all domains together, without an inner step. If they are alike, meta-learning only weights the domains of a
step in another way.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.benchmarking.cells import GridCell, cells_of
from ltds.benchmarking.grid import Grid
from ltds.core.files import write_json
from ltds.core.types import Clock
from ltds.data.datasets.opening import open_dataset
from ltds.engine.assemble import assemble
from ltds.engine.environment import describe_environment
from ltds.engine.loop import train
from ltds.engine.session import Session
from ltds.engine.start import record
from ltds.methods.base import Method

INNER = ((0.05, "first"), (0.2, "first"), (1.0, "first"), (0.05, "second"), (0.2, "second"))


def compare(session: Session, step: int, batches: int) -> list[dict[str, Any]]:
    """For each kind of inner step: means over the batches that follow this step."""
    found: dict[tuple[float, str], list[tuple[float, ...]]] = {inner: [] for inner in INNER}
    for later in range(step, step + batches):
        batch = session.batch(later)
        clock = Clock(session.config.run.seed, later, session.steps, session.config.schedule.steps_per_epoch)
        outer, _ = gradient(session.method, batch, clock, meta_test=0.0)
        at_theta, loss = gradient(session.method, batch, clock, inner_lr=0.0)
        for lr, order in INNER:
            moved, loss_moved = gradient(session.method, batch, clock, inner_lr=lr, order=order)
            pair = moved - outer, at_theta - outer
            cosine = float(F.cosine_similarity(*pair, dim=0))
            longer = float(pair[0].norm() / pair[1].norm())
            agreement = float(F.cosine_similarity(outer, pair[1], dim=0))
            found[lr, order].append((cosine, longer, loss, loss_moved, agreement))
    names = ("cosine", "length", "loss_at_theta", "loss_after_inner_step", "cosine_of_meta_train_and_meta_test")
    return [
        {"inner_lr": lr, "order": order}
        | {name: round(statistics.mean(column), 4) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
        for (lr, order), rows in found.items()
    ]


def gradient(
    method: Method, batch: Any, clock: Clock, *, meta_test: float = 1.0, inner_lr: float = 0.0, order: str = "first"
) -> tuple[Tensor, float]:
    """The gradient of L_mtr + w_mte L_mte as one vector, and the classification loss in meta-test."""
    with changed(method, meta_test, inner_lr, order):
        loss = method.loss(batch, clock)
        parameters = tuple(method.trainable_parameters().values())
        parts = torch.autograd.grad(loss.total, parameters, allow_unused=True, materialize_grads=True)
    return torch.cat([part.flatten() for part in parts]), float(loss.terms["meta_cls"])


@contextmanager
def changed(method: Any, meta_test: float, inner_lr: float, order: str) -> Iterator[None]:
    """The method with another inner step; what its loss writes (prototypes, statistics) is undone afterwards."""
    config, second_order = method.config, method.second_order
    buffers = {name: buffer.clone() for name, buffer in method.named_buffers()}
    weights = config.weights.model_copy(update={"meta_test": meta_test})
    method.config = config.model_copy(update={"weights": weights, "inner_lr": inner_lr})
    method.second_order = order == "second"
    method.train()
    try:
        yield
    finally:
        method.config, method.second_order = config, second_order
        for name, buffer in method.named_buffers():
            buffer.copy_(buffers[name])


def follow(cell: GridCell, steps: list[int], batches: int) -> list[dict[str, Any]]:
    """Train the run of a cell and compare at these steps."""
    session = assemble(cell.config, open_dataset(cell.config.data.root))
    record(cell.run, session)
    rows: list[dict[str, Any]] = []
    for step in steps:
        if step:
            train(session, cell.run, stop_after=step)
        for row in compare(session, step, batches):
            rows.append({"held_out": cell.held_out, "seed": cell.seed, "step": step} | row)
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="bestiary")
    parser.add_argument("--held-out", default="plain")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", default="0,20,100,400,1400,1600,2300", help="of training, with commas between")
    parser.add_argument("--batches", type=int, default=8, help="to compare with at each of them")
    parser.add_argument("--out", type=Path, required=True, help="folder for the run")
    parser.add_argument("--record", type=Path, help="a JSON file")
    words = parser.parse_args()
    torch.set_num_threads(1)
    grid = Grid(
        data=words.data,
        methods=("ltds",),
        held_out=(words.held_out,),
        seeds=(words.seed,),
        settings={"run": {"threads": 1}},
    )
    steps = [int(step) for step in words.steps.split(",")]
    rows = [row for cell in cells_of(grid, words.out, open_dataset) for row in follow(cell, steps, words.batches)]
    if words.record:
        what = (
            "ltds during training: gradient of the meta-test losses after the inner step, compared with the gradient "
            "without inner step (cosine, ratio of lengths), means over batches"
        )
        environment = describe_environment(torch.device("cpu"))
        write_json(
            words.record, {"what": what, "batches": words.batches, "commit": environment["commit"], "rows": rows}
        )


if __name__ == "__main__":
    main()
