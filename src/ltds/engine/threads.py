"""How many threads torch computes with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ltds.core.processor import chosen_threads, cores


def use_threads(threads: int) -> None:
    """Compute with this many threads; 0: one for each core that this process may use, or as the environment says.

    Torch alone would ignore the quota of a container: its threads would then wait for a core in each operation.
    """
    if threads:
        torch.set_num_threads(threads)
    elif not chosen_threads() and torch.get_num_threads() > cores():
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
