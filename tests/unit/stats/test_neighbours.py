"""Eq. (7) against its slow twin, and its edges."""

from __future__ import annotations

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.testing import assert_close

from ltds.core.errors import ConfigError
from ltds.stats.neighbours import neighbour_covariance, semantic_neighbours
from reference import equations as eq


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("full", [False, True])
def test_equals_the_slow_twin(k, full):
    generator = torch.Generator().manual_seed(k)
    s = torch.randn(6, 4, generator=generator)
    sigma = torch.rand(6, 3, 3, generator=generator, dtype=torch.float64)
    sigma = sigma if full else sigma[:, 0]
    near = semantic_neighbours(s, k)
    assert near.tolist() == eq.top_k(s.double().tolist(), k)
    for counts in (torch.tensor([100.0, 3, 0, 7, 50, 1]), torch.tensor([100, 3, 0, 7, 50, 1]), None):
        twin = eq.sigma_prime(sigma.tolist(), near.tolist(), None if counts is None else counts.tolist())
        wanted = torch.stack([torch.as_tensor(t) for t in twin])
        assert_close(neighbour_covariance(sigma, near, counts), wanted, rtol=0, atol=1e-12)


def test_ties_go_by_index_and_the_class_itself_is_first():
    s = torch.tensor([[1.0, 0], [3, 0], [0, 1], [2, 0], [0, 5]])
    assert semantic_neighbours(s, 3).tolist() == [[0, 1, 3], [1, 0, 3], [2, 4, 0], [3, 0, 1], [4, 2, 0]]


@pytest.mark.parametrize(("one", "many"), [((8, 5, 4), (5, 5, 5)), ((3, 1, 6), (4, 3, 3)), ((1, 7, 1), (7, 4, 7))])
def test_classes_that_differ_by_rounding_only_tie(one, many):
    """Multiples of a vector have the same cosine, but not the same float64: these differ in the last digit."""
    s = torch.tensor([one, *([x * k for x in many] for k in (1, 3, 7))], dtype=torch.float64)
    assert semantic_neighbours(s, 4).tolist() == [[0, 1, 2, 3], [1, 2, 3, 0], [2, 1, 3, 0], [3, 1, 2, 0]]


def test_one_neighbour_is_the_identity():
    sigma = torch.rand(5, 3)
    near = semantic_neighbours(torch.randn(5, 2), 1)
    for counts in (torch.tensor([4.0, 0, 2, 0, 1]), None):
        assert_close(neighbour_covariance(sigma, near, counts), sigma, rtol=0, atol=1e-7)


def test_without_any_counted_neighbour_a_class_keeps_its_own():
    sigma = torch.rand(3, 2)
    near = torch.tensor([[0, 1], [1, 0], [2, 1]])
    pooled = neighbour_covariance(sigma, near, torch.tensor([0.0, 0.0, 6.0]))
    assert_close(pooled, sigma, rtol=0, atol=0)


def test_blocks_of_rows_do_not_change_the_neighbours():
    s = torch.randn(2100, 8, generator=torch.Generator().manual_seed(0))
    near = semantic_neighbours(s, 4)  # two blocks
    unit = torch.nn.functional.normalize(s.double(), dim=1)
    assert torch.equal(near, (unit @ unit.T).topk(4, dim=1).indices)


def test_few_classes_are_compared_in_one_block():
    class Searches(TorchFunctionMode):
        found = 0

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.found += function is torch.Tensor.argmax
            return function(*args, **(kwargs or {}))

    with Searches() as searches:
        semantic_neighbours(torch.randn(50, 4), 3)
    assert searches.found == 3, "one for each neighbour, not for each class"


@pytest.mark.parametrize("k", [0, 4])
def test_impossible_numbers_are_refused(k):
    with pytest.raises(ConfigError, match="between 1 and the 3 classes"):
        semantic_neighbours(torch.randn(3, 2), k)
