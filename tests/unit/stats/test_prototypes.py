"""Prototypes against the slow twin of the supplement's equation; completion; purity."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from ltds.stats.prototypes import BlendedPrototypes, Prototypes, completed_prototypes
from reference import equations as eq

K, C, D, S = 3, 4, 3, 2


def batch(seed, N=7, domains=(0, 2)):
    generator = torch.Generator().manual_seed(seed)
    features = torch.rand(N, D, generator=generator, dtype=torch.float64)
    labels = torch.randint(C, (N,), generator=generator)
    which = torch.tensor(domains)[torch.randint(len(domains), (N,), generator=generator)]
    which[: len(domains)] = torch.tensor(domains)
    return features, labels, which


def view_of(value, present):
    nothing = torch.empty(0)
    return BlendedPrototypes(torch.arange(len(value)), value, present, nothing, nothing)


@pytest.mark.parametrize(
    "options", [{}, {"start": "zero"}, {"momentum": 0.9}, {"start": "zero", "epsilon": 1e-5}, {"momentum": 0.0}]
)
def test_three_batches_equal_the_slow_twin(options):
    store = Prototypes(K, C, D, **options).double()
    twin = {"momentum": options.get("momentum", 0.5), "epsilon": options.get("epsilon", 0.0)}
    twin["first_visit"] = options.get("start") != "zero"
    tables = [([[0.0] * D] * C, [False] * C) for _ in range(K)]
    for seed, domains in enumerate([(0, 2), (0, 1, 2), (1,)]):
        features, labels, which = batch(seed, domains=domains)
        for n in domains:
            of_domain = which == n
            tables[n] = eq.prototypes(*tables[n], features[of_domain].tolist(), labels[of_domain].tolist(), **twin)
        view = store.blended(features, labels, which)
        assert view.domains.tolist() == list(domains)
        store.commit(view)
        assert_close(view.value, store.value[list(domains)], rtol=0, atol=0)
        assert_close(store.value, torch.tensor([t[0] for t in tables], dtype=torch.float64), rtol=0, atol=1e-12)
        assert store.present.tolist() == [t[1] for t in tables]


def test_blending_is_pure_until_commit():
    store = Prototypes(K, C, D).double()
    before = {k: v.clone() for k, v in store.state_dict().items()}
    view = store.blended(*batch(0))
    for key, value in store.state_dict().items():
        assert torch.equal(value, before[key])
    store.commit(view)
    assert store.present.any()
    assert not store.value.requires_grad


def test_gradient_reaches_the_batch_and_not_the_past():
    store = Prototypes(1, C, D).double()
    labels, domains = torch.tensor([0, 0, 2]), torch.zeros(3, dtype=torch.long)
    first = torch.rand(3, D, dtype=torch.float64, requires_grad=True)
    view = store.blended(first, labels, domains)
    assert_close(torch.autograd.grad(view.value.sum(), first)[0][:, 0].tolist(), [0.5, 0.5, 1.0])
    store.commit(view)
    second = torch.rand(3, D, dtype=torch.float64, requires_grad=True)
    view = store.blended(second, labels, domains)
    by_second, by_first = torch.autograd.grad(view.value.sum(), (second, first), allow_unused=True)
    assert_close(by_second[:, 0].tolist(), [0.25, 0.25, 0.5])
    assert by_first is None
    outside = view.detach()
    assert not outside.value.requires_grad
    assert not outside.rows.requires_grad
    assert not Prototypes(1, C, D, in_graph=False).double().blended(second, labels, domains).value.requires_grad


def test_gradcheck():
    store = Prototypes(K, C, D).double()
    features, labels, domains = batch(1)
    store.commit(store.blended(*batch(0)))
    assert torch.autograd.gradcheck(lambda f: store.blended(f, labels, domains).value, features.requires_grad_())


def test_one_prototype_for_all_domains():
    """Ablation k: the domains' samples fall together."""
    features, labels, domains = batch(0)
    shared, alone = Prototypes(K, C, D, shared=True).double(), Prototypes(1, C, D).double()
    view, other = shared.blended(features, labels, domains), alone.blended(features, labels, 0 * domains)
    assert shared.value.shape == (1, C, D)
    assert_close(view.value, other.value, rtol=0, atol=0)
    shared.commit(view)
    assert shared.present.sum() == len(labels.unique())


def test_state_dict_holds_all_that_was_learned():
    store, copy = Prototypes(K, C, D).double(), Prototypes(K, C, D).double()
    store.commit(store.blended(*batch(0)))
    copy.load_state_dict(store.state_dict())
    assert_close(copy.blended(*batch(1)).value, store.blended(*batch(1)).value, rtol=0, atol=0)


def smooth_projector():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(D, S), nn.BatchNorm1d(S), nn.ReLU()).double()


def test_completion_equals_the_slow_twin():
    """Some classes missing; one domain with a single class and one with none are all s; a full one has no s."""
    generator = torch.Generator().manual_seed(5)
    value = torch.rand(4, C, D, generator=generator, dtype=torch.float64)
    present = torch.tensor([[1, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]).bool()
    s = F.normalize(torch.randn(C, S, generator=generator, dtype=torch.float64), dim=1)
    e = smooth_projector()
    linear, norm = e[0], e[1]
    parameters = [p.tolist() for p in (linear.weight, linear.bias, norm.weight, norm.bias)]
    tables = completed_prototypes(view_of(value, present), s, e)
    for n in range(4):
        twin = eq.complete(
            value[n].tolist(),
            present[n].tolist(),
            s.tolist(),
            lambda rows: eq.project(rows, *parameters, lambda x: max(x, 0.0)),
        )
        assert_close(tables[n], torch.tensor(twin, dtype=torch.float64), rtol=0, atol=1e-11)
    assert torch.equal(tables[1], s)
    assert torch.equal(tables[2], s)
    assert torch.equal(tables[0, 1], s[1])


def test_completion_calls_e_once_per_domain_with_two_prototypes_in_order():
    """BatchNorm's running statistics depend on number and order of calls."""
    value = torch.rand(3, C, D)
    present = torch.tensor([[1, 1, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]]).bool()
    seen = []

    def e(rows):
        seen.append(rows)
        return rows[:, :S]

    completed_prototypes(view_of(value, present), F.normalize(torch.randn(C, S), dim=1), e)
    assert [len(rows) for rows in seen] == [2, 4]
    assert torch.equal(seen[0], value[0, :2])


def test_completion_passes_the_gradient_to_present_rows_only():
    value = torch.rand(1, C, D, dtype=torch.float64, requires_grad=True)
    present = torch.tensor([[1, 0, 1, 1]]).bool()
    s = F.normalize(torch.randn(C, S, dtype=torch.float64), dim=1)
    table = completed_prototypes(view_of(value, present), s, nn.Linear(D, S).double())
    (gradient,) = torch.autograd.grad(table.square().flip(-1).cumsum(-1).sum(), value)
    assert (gradient[0, 1] == 0).all()
    assert (gradient[0, [0, 2, 3]].abs().sum(1) > 0).all()
