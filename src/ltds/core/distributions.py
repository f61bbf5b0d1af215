"""Samples of distributions that torch cannot draw from a generator: pure functions of parameters and generator.

They are drawn on the CPU in float64, so that they are the same on every device, and returned on the CPU in the default
dtype: move them to the device of the tensors they are used with.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Parameter = Tensor | float


def beta(a: Parameter, b: Parameter, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Samples of Beta(a, b) of this shape, in [0, 1]; a, b > 0 are broadcast to it."""
    first = _log_gamma_draws(_broadcast(a, shape), generator)
    second = _log_gamma_draws(_broadcast(b, shape), generator)
    return torch.sigmoid(first - second).to(torch.get_default_dtype())


def dirichlet(alpha: Tensor | Sequence[float], n: int, generator: torch.Generator) -> Tensor:
    """(n,M) rows that sum to 1, samples of Dirichlet(alpha); alpha (M,) > 0, or (n,M) with one distribution per row."""
    parameters = torch.as_tensor(alpha, dtype=torch.float64)
    logs = _log_gamma_draws(_broadcast(parameters, (n, parameters.shape[-1])), generator)
    return torch.softmax(logs, dim=1).to(torch.get_default_dtype())


def bernoulli(probability: Parameter, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Booleans of this shape, True with this probability, which is broadcast to it; 0 and 1 are certain."""
    return torch.rand(tuple(shape), generator=generator, dtype=torch.float64) < _broadcast(probability, shape)


def _broadcast(parameter: Parameter, shape: Sequence[int]) -> Tensor:
    """The parameter as a float64 tensor of this shape, on the CPU and out of any graph."""
    return torch.as_tensor(parameter, dtype=torch.float64).detach().cpu().expand(tuple(shape))


def _log_gamma_draws(alpha: Tensor, generator: torch.Generator) -> Tensor:
    """log of samples of Gamma(alpha, 1), of alpha's shape.

    Gamma(alpha) = Gamma(alpha + 1) U^(1/alpha): in logarithms, because for a small alpha most samples are below the
    smallest float, and the ratio of two of them would be 0/0.
    """
    assert bool((alpha > 0).all()), "the parameters of a Beta or Dirichlet distribution are positive"
    larger = torch._standard_gamma(alpha + 1, generator=generator)  # Tensor.gamma_ does not exist
    uniform = 1 - torch.rand(alpha.shape, generator=generator, dtype=torch.float64)  # in (0, 1]
    return larger.log() + uniform.log() / alpha
