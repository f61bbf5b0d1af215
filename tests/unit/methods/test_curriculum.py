"""CuMix's curriculum: the schedule, and the law of partners and ratios."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import mixing_reference as slow
import pytest
import torch

from ltds.core.rng import generator
from ltds.methods.curriculum import MixingPairs, beta_at, draw_pairs, random_cycle, same_domain_probability

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"


def at(*counters: int) -> torch.Generator:
    return generator(0, "tests/curriculum", *counters)


def domain_of(sizes: list[int]) -> torch.Tensor:
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))


def test_the_worked_example() -> None:
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not beside this repository ({FILE.name})")
    example = json.loads(FILE.read_text())["examples"]["cumix_schedule"]
    peak, n = example["inputs"]["beta_max"], example["inputs"]["N"]
    betas, same = example["expected"]["beta_by_epoch"], example["expected"]["prob_same_domain_by_epoch"]
    assert [beta_at(e, peak=peak, length=n) for e in range(30)] == pytest.approx(betas, abs=1e-12)
    assert [same_domain_probability(e, length=n) for e in range(30)] == pytest.approx(same, abs=1e-12)


@pytest.mark.parametrize(("peak", "length"), [(0.6, 10), (0.6, 100 / 3), (0.05, 4), (2.0, 1), (1.0, 0.5)])
def test_the_schedule_is_the_twin_s(peak: float, length: float) -> None:
    for epoch in range(100):
        assert beta_at(epoch, peak=peak, length=length) == slow.cumix_beta(epoch, peak, length)
        assert same_domain_probability(epoch, length=length) == slow.cumix_same(epoch, length)


def test_after_the_switch_no_partner_is_of_the_same_domain() -> None:
    sizes = [5, 5, 5, 5]
    own = domain_of(sizes)
    for draw in range(50):
        partners = draw_pairs(sizes, 0.6, 0.0, at(draw)).partners
        assert bool((own[partners] != own).all())
        assert sorted(partners.tolist()) == list(range(20))  # each sample is a partner once
        assert all(len(set(own[partners[own == d]].tolist())) == 1 for d in range(4))  # one domain for each domain


def test_before_it_every_partner_is_of_the_same_domain() -> None:
    sizes = [4, 7, 2]
    own = domain_of(sizes)
    partners = draw_pairs(sizes, 0.1, 1.0, at()).partners
    assert torch.equal(own[partners], own)
    assert sorted(partners.tolist()) == list(range(13))


def test_in_between_each_sample_decides_for_itself() -> None:
    own = domain_of([500, 500, 500])
    stays = own[draw_pairs([500, 500, 500], 0.6, 0.3, at()).partners] == own
    assert stays.double().mean().item() == pytest.approx(0.3, abs=0.05)
    assert all(0.2 < stays[own == d].double().mean() < 0.4 for d in range(3))


def test_domains_of_unequal_size_find_partners_too() -> None:
    sizes = [6, 2, 3]
    own = domain_of(sizes)
    for draw in range(20):
        partners = draw_pairs(sizes, 0.6, 0.0, at(draw)).partners
        assert bool((own[partners] != own).all())
        for d in range(3):
            uses = Counter(partners[own == d].tolist())
            assert max(uses.values()) - min(uses.values()) <= 1


def test_a_random_cycle_is_any_of_the_cycles() -> None:
    found = Counter(tuple(random_cycle(4, at(draw))) for draw in range(1200))
    assert len(found) == 6  # (4 - 1)!
    assert all(140 < count < 260 for count in found.values())
    for order in found:
        visited = [0]
        while (following := order[visited[-1]]) != 0:
            visited.append(following)
        assert sorted(visited) == [0, 1, 2, 3]
    assert random_cycle(2, at()) == [1, 0]


def test_every_sample_has_a_ratio_of_its_own() -> None:
    ratios = draw_pairs([2000, 2000], 0.6, 1.0, at()).ratios
    assert ratios.unique().numel() > 3900
    assert ratios.mean().item() == pytest.approx(0.5, abs=0.03)
    assert ratios.var().item() == pytest.approx(0.25 / 2.2, rel=0.06)


def test_mixing_keeps_r_of_the_sample_itself_in_any_shape() -> None:
    pairs = MixingPairs(torch.tensor([1, 2, 0]), torch.tensor([1.0, 0.0, 0.25]))
    x = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    wanted = torch.tensor(slow.mix(x.tolist(), [1, 2, 0], [1.0, 0.0, 0.25]))
    assert wanted.tolist() == [[1.0, 10.0], [3.0, 30.0], [1.5, 15.0]]
    assert torch.equal(pairs.mix(x), wanted)
    assert torch.equal(pairs.mix(x.reshape(3, 2, 1, 1)).flatten(1), wanted)
    assert pairs.mix(x.double()).dtype == torch.float64
