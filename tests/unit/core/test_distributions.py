"""Draws from an explicit generator: the right law, the same numbers at the same generator state."""

from __future__ import annotations

import pytest
import torch

from ltds.core.distributions import bernoulli, beta, dirichlet
from ltds.core.rng import generator

N = 40_000


def at(stream: str) -> torch.Generator:
    return generator(0, f"tests/draws/{stream}")


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.1, 0.1), (0.6, 0.2), (5.0, 2.0), (0.001, 0.001)])
def test_beta_has_its_mean_and_variance(a: float, b: float) -> None:
    r = beta(a, b, (N,), at("beta"))
    assert r.dtype == torch.get_default_dtype()
    assert r.device.type == "cpu"
    assert bool(((r >= 0) & (r <= 1)).all())
    variance = a * b / ((a + b) ** 2 * (a + b + 1))
    assert r.mean().item() == pytest.approx(a / (a + b), abs=5 * (variance / N) ** 0.5)
    assert r.var().item() == pytest.approx(variance, rel=0.03)


def test_beta_1_1_is_uniform_and_small_parameters_leave_one_side() -> None:
    r = beta(1.0, 1.0, (N,), at("uniform")).sort().values
    assert (r - torch.linspace(0, 1, N)).abs().max() < 0.01  # Kolmogorov-Smirnov: 1.6 / sqrt(N) is .008 at 1%
    edge = beta(1e-3, 1e-3, (N,), at("edge"))
    assert ((edge < 1e-3) | (edge > 1 - 1e-3)).float().mean() > 0.98
    assert (edge > 0.5).float().mean().item() == pytest.approx(0.5, abs=0.02)


def test_beta_takes_a_parameter_for_each_sample() -> None:
    a = torch.tensor([[0.5], [4.0]], requires_grad=True)
    r = beta(a, 2.0, (2, N), at("tensor"))
    assert not r.requires_grad
    assert r.mean(dim=1).tolist() == pytest.approx([0.2, 2 / 3], abs=0.01)


def test_dirichlet_rows_sum_to_one_with_the_right_moments() -> None:
    alpha = torch.tensor([0.6, 0.2, 0.2])
    r = dirichlet(alpha, N, at("dirichlet"))
    assert r.shape == (N, 3)
    torch.testing.assert_close(r.sum(dim=1), torch.ones(N))
    assert r.mean(dim=0).tolist() == pytest.approx([0.6, 0.2, 0.2], abs=0.01)
    assert r.var(dim=0).tolist() == pytest.approx([0.12, 0.08, 0.08], rel=0.03)  # m (1-m) / (1 + sum alpha)
    assert torch.cov(r.T)[0, 1].item() == pytest.approx(-0.06, rel=0.05)


def test_dirichlet_takes_a_law_for_each_row_and_plain_numbers() -> None:
    laws = torch.tensor([[9.0, 1.0], [1.0, 9.0]]).repeat(N // 2, 1)
    r = dirichlet(laws, N, at("rows"))
    assert r[::2, 0].mean().item() == pytest.approx(0.9, abs=0.01)
    assert r[1::2, 0].mean().item() == pytest.approx(0.1, abs=0.01)
    assert torch.equal(dirichlet([1.0, 1.0], 5, at("x")), dirichlet(torch.ones(2), 5, at("x")))


def test_bernoulli_has_its_probability_and_0_and_1_are_certain() -> None:
    p = torch.tensor([0.0, 0.3, 1.0])
    drawn = bernoulli(p, (N, 3), at("bernoulli"))
    assert drawn.dtype == torch.bool
    share = drawn.double().mean(dim=0).tolist()
    assert (share[0], share[2]) == (0.0, 1.0)
    assert share[1] == pytest.approx(0.3, abs=0.01)
    assert bernoulli(0.5, (2, 3), at("shape")).shape == (2, 3)


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: beta(0.3, 0.7, (50,), g),
        lambda g: dirichlet([0.3, 0.7, 2.0], 50, g),
        lambda g: bernoulli(0.4, (50,), g),
    ],
)
def test_a_draw_is_a_function_of_the_generator_s_state_alone(draw) -> None:  # type: ignore[no-untyped-def]
    first = draw(at("state"))
    torch.rand(7)  # the global generator has no part in it
    own = at("state")
    assert torch.equal(first, draw(own))
    assert not torch.equal(first, draw(own))  # the state has moved on
    assert not torch.equal(first, draw(at("other")))


def test_the_dtype_asked_for_changes_the_rounding_only() -> None:
    single = beta(0.6, 0.6, (20,), at("dtype"))
    torch.set_default_dtype(torch.float64)
    try:
        double = beta(0.6, 0.6, (20,), at("dtype"))
    finally:
        torch.set_default_dtype(torch.float32)
    assert double.dtype == torch.float64
    assert torch.equal(single, double.float())


def test_a_parameter_that_makes_no_law_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="positive"):
        beta(0.0, 1.0, (2,), at("zero"))
