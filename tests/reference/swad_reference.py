"""SWAD's window by loops, from Algorithm 1 of Cha et al., NeurIPS 2021, with epochs in the place of iterations."""

from __future__ import annotations


def window(losses: list[float], n_s: int, n_e: int, r: float) -> tuple[int, int] | None:
    """First and last epoch (from 0) of the window; None where it never starts. `r` is 1 + the tolerance."""
    start, end, limit = None, len(losses) - 1, 0.0
    i = 0
    while i < len(losses):
        if start is None:
            if i - n_s + 1 >= 0:
                candidate = i - n_s + 1
                if losses[candidate] == min(losses[candidate : i + 1]):
                    start = candidate
                    limit = r * sum(losses[candidate : i + 1]) / n_s
                    i = start  # the epochs after the start count towards its end, too
        elif i - n_e + 1 > start and min(losses[i - n_e + 1 : i + 1]) > limit:
            end = i - n_e
            break
        i += 1
    return None if start is None else (start, end)


def mean_of(weights: list[list[float]], steps: int, epochs: tuple[int, int]) -> list[float]:
    """The mean of the weights after every step of these epochs; `weights` has one entry for each step of the run."""
    chosen = weights[epochs[0] * steps : (epochs[1] + 1) * steps]
    return [sum(values) / len(chosen) for values in zip(*chosen, strict=True)]
