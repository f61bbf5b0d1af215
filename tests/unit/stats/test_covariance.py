"""The online covariance against the slow twin of ISDA's formula and against numpy on all rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltds.stats.covariance import OnlineCovariance, PartialSums
from reference import equations as eq

C, D = 4, 3


def batches(number=4, N=9, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(number):
        labels = torch.randint(C - 1, (N,), generator=generator)  # the last class never comes
        yield torch.randn(N, D, generator=generator, dtype=torch.float64) + labels[:, None], labels


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("initial", [0.0, 1.0])
def test_equals_the_slow_twin(full, initial):
    running = OnlineCovariance(C, D, full=full, initial_count=initial).double()
    state = ([initial] * C, [[0.0] * D] * C, [[[0.0] * D] * D] * C)
    for features, labels in batches():
        running.commit(running.updated(features.requires_grad_(), labels))
        state = eq.online_covariance(*state, features.tolist(), labels.tolist())
        count, mean, sigma = (torch.tensor(x, dtype=torch.float64) for x in state)
        sigma = sigma if full else sigma.diagonal(dim1=1, dim2=2)
        assert_close(running.sigma, sigma, rtol=0, atol=1e-12)
        assert_close(running.mean, mean, rtol=0, atol=1e-12)
        assert_close(running.count, count)
    assert not running.sigma.requires_grad
    assert (running.sigma[-1] == 0).all()  # the class never met: no 0/0


def test_is_the_population_covariance_of_all_rows():
    running = OnlineCovariance(C, D, full=True).double()
    everything = list(batches())
    for features, labels in everything:
        running.commit(running.updated(features, labels))
    rows, labels = (torch.cat(x).numpy() for x in zip(*everything, strict=True))
    for c in range(C - 1):
        wanted = np.cov(rows[labels == c].T, bias=True)
        np.testing.assert_allclose(running.sigma[c].numpy(), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_shards_reduce_to_the_whole_batch(full):
    whole, sharded = (OnlineCovariance(C, D, full=full).double() for _ in range(2))
    for features, labels in batches():
        whole.commit(whole.updated(features, labels))
        sums = [sharded.estimate.partial_sums(f, y) for f, y in zip(features.split(4), labels.split(4), strict=True)]
        added = PartialSums(*(sum(getattr(s, name) for s in sums) for name in ("count", "first", "second")))
        sharded.commit(sharded.estimate.merged(added))
        for key, value in whole.state_dict().items():
            assert_close(sharded.state_dict()[key], value, rtol=0, atol=1e-13)


def test_float32_stays_near_float64_over_many_batches():
    single, double = OnlineCovariance(C, D), OnlineCovariance(C, D).double()
    for features, labels in batches(number=60):
        single.commit(single.updated(10 + features.float(), labels))
        double.commit(double.updated(10 + features, labels))
    assert_close(single.sigma.double(), double.sigma, rtol=1e-4, atol=1e-6)
    assert (single.sigma >= 0).all()


def test_constant_features_have_no_variance():
    running = OnlineCovariance(2, 2)
    for _ in range(3):
        running.commit(running.updated(torch.full((5, 2), 0.3), torch.zeros(5, dtype=torch.long)))
    assert running.sigma.abs().max() < 1e-7
    assert (running.sigma >= 0).all()


@pytest.mark.parametrize("full", [False, True])
def test_only_commit_changes_the_statistics(full):
    running = OnlineCovariance(C, D, full=full).double()
    (first, y), (second, z) = batches(number=2)
    pending = running.updated(first, y).updated(second, z)
    assert all((buffer == 0).all() for buffer in running.buffers())
    running.commit(pending)
    for name in ("count", "mean", "sigma"):
        assert_close(getattr(running, name), getattr(pending, name), rtol=0, atol=0)
    before = pending.sigma.clone()
    running.commit(running.updated(first, y))
    assert torch.equal(pending.sigma, before)  # an estimate shares no memory with the buffers
