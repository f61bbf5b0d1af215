"""How many threads torch computes with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ltds.core.processor import cores

CHOSEN_BY_USER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def use_threads(threads: int) -> None:
    """Compute with so many threads; 0: one for each core that this process may use, or as the environment says.

    Torch alone would ignore the quota of a container: its threads would then wait for a core in each operation.
    """
    if threads:
        torch.set_num_threads(threads)
    elif not any(os.environ.get(name) for name in CHOSEN_BY_USER) and torch.get_num_threads() > cores():
        torch.set_num_threads(cores())


@contextmanager
def threads_restored() -> Iterator[None]:
    """Whatever number the block computes with, afterwards it is as before: the next run has its own setting."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
