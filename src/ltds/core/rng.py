"""Randomness by address: a draw is a pure function of (seed, stream, counters), so nothing needs saving.

Two runs that ask for the same address get the same numbers, whatever was drawn before, in whatever process.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # torch takes seconds to import, and processes that only draw pictures have no need of it
    import torch


def address(seed: int, stream: str, *counters: int) -> int:
    """A 63-bit integer that depends on the whole address and on nothing else."""
    text = "/".join([str(int(seed)), stream, *(str(int(c)) for c in counters)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, stream: str, *counters: int) -> torch.Generator:
    """A torch generator at this address. It lives on the CPU, so that draws are the same on every device."""
    import torch

    return torch.Generator().manual_seed(address(seed, stream, *counters))


def numpy_generator(seed: int, stream: str, *counters: int) -> np.random.Generator:
    """A numpy generator at this address (Philox: the same stream on every platform)."""
    return np.random.Generator(np.random.Philox(key=address(seed, stream, *counters)))


def reseed_global(seed: int, stream: str, *counters: int) -> None:
    """Put torch's global generators (dropout in a user's backbone, ...) at this address."""
    import torch

    number = address(seed, stream, *counters)
    if torch.accelerator.is_available():
        torch.manual_seed(number)
    else:  # it would also write down the call stack for each kind of device that is not here: up to 3 ms, in each step
        torch.default_generator.manual_seed(number)
