"""The answer says who leads, and claims no more than the seeds bear out."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ltds.reporting.answer import Answer, answer, isolated
from ltds.reporting.collection import Collection, collect


def ask(runs: Path) -> Answer:
    return answer(collect([runs]).datasets[0])


def test_two_seeds_are_a_hint(grid: Collection) -> None:
    found = answer(grid.datasets[0])
    assert found.leader == "dc"
    assert found.verdict == (
        "dc is ahead with 37.0 ± 2.1 % Acc-U on average over 2 held-out domains (800 test images), 5.5 points above "
        "agg (31.5 ± 2.1 %)."
    )
    assert found.certainty == (
        "No significant difference from agg: it won 4 of 4 pairs (difference 5.5 [-39.0, 50.0], p = 0.125). 4 pairs "
        "cannot reach p = 0.05, whatever their values: add seeds or held-out domains until there are 6 pairs."
    )


def test_one_seed_cannot_tell(make_run, runs: Path) -> None:
    make_run("agg", acc_u=0.2)
    make_run("dc", acc_u=0.9)
    found = ask(runs)
    assert found.verdict == "dc is ahead with 90.0 % Acc-U on photo (400 test images), 70.0 points above agg (20.0 %)."
    assert found.certainty.startswith("With one seed this may be chance")


def test_a_gap_within_the_spread_is_no_win(make_run, runs: Path) -> None:
    for seed, (a, b) in enumerate([(0.40, 0.45), (0.50, 0.47), (0.45, 0.46)]):
        make_run("agg", seed=seed, acc_u=a)
        make_run("dc", seed=seed, acc_u=b)
    assert ask(runs).certainty.startswith(
        "No significant difference from agg: it won 2 of 3 pairs (difference 1.0 [-8.9, 10.9], p = 0.750). 3 pairs "
    )


def test_three_seeds_of_three_domains_with_a_clear_gap(make_run, runs: Path) -> None:
    """dc wins all 9 pairs against agg: p = 2/512, times 3 pairs of methods; bsce wins 4 of 9 against dc."""
    noise = [0.01, -0.02, 0.03, -0.04, 0.05, 0.06, -0.07, -0.08, 0.09]
    for i, (held_out, seed) in enumerate(itertools.product(("photo", "sketch", "art_&_co"), range(3))):
        make_run("agg", held_out, seed, 0.40 + 0.01 * seed)
        make_run("dc", held_out, seed, 0.60 + 0.01 * seed + 0.001 * i)
        make_run("bsce", held_out, seed, 0.60 + 0.01 * seed + 0.001 * i + 0.1 * noise[i] - 0.0005)
    found = ask(runs)
    assert found.leader == "dc"
    assert found.certainty == (
        "It beats agg in 9 of 9 pairs (difference 20.4 [19.7, 21.1], p = 0.012); no significant difference from bsce: "
        "it won 4 of 9 pairs (difference 0.0 [-0.5, 0.6], p = 1.000). (p corrected by Holm's method over 3 pairs of "
        "methods.) So it is not a clear winner."
    )


def test_a_clear_winner_needs_no_caution(make_run, runs: Path) -> None:
    for held_out, seed in itertools.product(("photo", "sketch"), range(3)):
        make_run("agg", held_out, seed, 0.40 + 0.01 * seed)
        make_run("dc", held_out, seed, 0.50 + 0.02 * seed + 0.001 * (held_out == "sketch"))
    assert ask(runs).certainty == "It beats agg in 6 of 6 pairs (difference 11.0 [10.4, 11.7], p = 0.031)."


def test_methods_that_share_no_seed(make_run, runs: Path) -> None:
    for seed in range(2):
        make_run("agg", seed=seed, acc_u=0.40)
        make_run("dc", seed=seed + 5, acc_u=0.50)
    assert ask(runs).certainty.startswith("It shares no seed and held-out domain with agg")


@pytest.mark.parametrize("domains", [("photo",), ("photo", "sketch", "art_&_co")])
def test_methods_that_share_one_seed(make_run, runs: Path, domains: tuple[str, ...]) -> None:
    """Nothing is tested then, and other held-out domains would not help."""
    for held_out, seed in itertools.product(domains, range(3)):
        make_run("agg", held_out, seed, 0.40 + 0.01 * seed)
        make_run("dc", held_out, seed + 2, 0.50 + 0.01 * seed)
    found = ask(runs)
    assert (found.undecided, found.tested) == (("agg",), ())
    assert found.certainty == (
        "It shares one seed with agg, which cannot be tested: train both with the same two or more seeds."
    )


def test_level_methods(make_run, runs: Path) -> None:
    make_run("agg", acc_u=0.5)
    make_run("dc", acc_u=0.5)
    assert ask(runs).verdict == "agg and dc are level at 50.0 % Acc-U on photo (400 test images)."


def test_level_methods_have_a_spread_each(make_run, runs: Path) -> None:
    for seed, (one, other) in enumerate([(0.5, 0.4), (0.5, 0.6)]):
        make_run("agg", seed=seed, acc_u=one)
        make_run("dc", seed=seed, acc_u=other)
    assert "agg and dc are level at 50.0 ± 0.0 % and 50.0 ± 14.1 % Acc-U" in ask(runs).verdict


def test_a_lone_method_has_nothing_to_beat(make_run, runs: Path) -> None:
    make_run("agg", acc_u=0.5)
    found = ask(runs)
    assert found.verdict == "agg reaches 50.0 % Acc-U on photo (400 test images); no other method has this number."
    assert "nothing to compare it with" in found.certainty
    assert "One seed" in found.certainty


def test_no_held_out_domain_has_no_answer(make_run, runs: Path) -> None:
    make_run("agg", None, acc_u=None)
    found = ask(runs)
    assert found.leader is None
    assert "data.held_out" in found.certainty


def test_right_to_left_names_are_isolated() -> None:
    assert isolated("قطة") == "\u2068قطة\u2069"
    assert isolated("cat") == "cat"


def test_only_held_out_domains_that_every_method_has_are_compared(make_run, runs: Path) -> None:
    for seed in (0, 1):
        make_run("agg", "photo", seed, 0.5)
        make_run("agg", "sketch", seed, 0.9)
        make_run("dc", "photo", seed, 0.6)
    found = ask(runs)
    assert found.verdict.startswith("dc is ahead with 60.0 ± 0.0 % Acc-U on photo")
    assert found.certainty.endswith("Not every method was trained with sketch held out, so this leaves those runs out.")
    assert (found.beaten, found.undecided, found.enough_pairs) == ((), ("agg",), False)


def test_a_method_trained_on_all_domains_does_not_change_which_ones_are_compared(make_run, runs: Path) -> None:
    """It has no held-out domain at all: it said that there is no common one, and agg led with its 90 % on sketch."""
    for seed in (0, 1):
        make_run("agg", "photo", seed, 0.5)
        make_run("agg", "sketch", seed, 0.9)
        make_run("dc", "photo", seed, 0.6)
        make_run("bsce", None, seed, None)
    (dataset,) = collect([runs]).datasets
    shared = dataset.comparable()
    assert {label: [run.held_out for run in members] for label, members in shared.rows.items()} == {
        "agg": ["photo", "photo"],
        "bsce": ["none held out", "none held out"],
        "dc": ["photo", "photo"],
    }
    found = answer(dataset)
    assert found.verdict.startswith("dc is ahead with 60.0 ± 0.0 % Acc-U on photo")
    assert "No Acc-U on photo, and no shared runs, for bsce: not compared." in found.certainty


def test_few_pairs_are_no_sign_that_a_method_is_as_good(make_run, runs: Path) -> None:
    """ltds and daml share 10 pairs; agg is 30 points below, but its 4 pairs cannot show this."""
    noise = [0.1, -0.2, 0.3, -0.4, 0.5, 0.6, -0.7, -0.2, 0.2, -0.1]
    for i, (held_out, seed) in enumerate(itertools.product(("photo", "sketch"), range(5))):
        make_run("ltds", held_out, seed, 0.50 + 0.01 * seed)
        make_run("daml", held_out, seed, 0.50 + 0.01 * seed + 0.01 * noise[i] - 0.002)
        if seed < 2:
            make_run("agg", held_out, seed, 0.20 + 0.01 * seed)
    found = ask(runs)
    assert (found.leader, found.beaten, found.undecided, found.tested) == ("ltds", (), ("daml", "agg"), ("daml",))
    assert found.enough_pairs
    assert found.certainty.endswith(
        "; too few pairs to tell it from agg. (p corrected by Holm's method over 3 pairs of methods.) So it is not a "
        "clear winner."
    )


def test_the_pairs_of_the_runner_up_count(make_run, runs: Path) -> None:
    """The runner-up dc shares 2 seeds with the leader, the beaten agg 10: "2 pairs cannot reach", not "no clear"."""
    for seed in range(10):
        make_run("bsce", seed=seed, acc_u=0.50 + 0.01 * (seed % 3))
        make_run("agg", seed=seed, acc_u=0.20 + 0.01 * seed)
        if seed < 2:
            make_run("dc", seed=seed, acc_u=0.49 + 0.01 * seed)
    found = ask(runs)
    assert (found.beaten, found.undecided, found.tested, found.enough_pairs) == (("agg",), ("dc",), (), False)
    assert found.certainty.endswith(
        " 2 pairs cannot reach p = 0.05, whatever their values: add seeds or held-out domains until there are 7 pairs."
    )


def test_enough_pairs_are_counted_with_the_p_values_of_the_others(make_run, runs: Path) -> None:
    """agg and dc share 6 pairs, each has 12 with bsce: p of these is so small that Holm multiplies 2/64 by 1 only."""
    for held_out, seed in itertools.product(("photo", "sketch"), range(9)):
        make_run("bsce", held_out, seed, 0.30 + 0.003 * seed)
        if seed < 6:
            make_run("agg", held_out, seed, 0.60 + 0.002 * seed)
        if seed >= 3:
            lost = (held_out, seed) == ("photo", 3)
            make_run("dc", held_out, seed, 0.62 if lost else 0.58 + 0.0023 * seed)
    found = ask(runs)
    assert (found.leader, found.beaten, found.tested) == ("agg", ("bsce",), ("dc",))
    assert "it won 5 of 6 pairs" in found.certainty
    assert found.certainty.endswith("So it is not a clear winner.")


def test_a_leader_that_loses_every_shared_pair(make_run, runs: Path) -> None:
    """agg wins all 12 pairs that both have; only its seeds 6 to 9, which dc lacks, make its mean lower."""
    for held_out, seed in itertools.product(("photo", "sketch"), range(10)):
        make_run("agg", held_out, seed, 0.53 + 0.003 * seed if seed < 6 else 0.40)
        if seed < 6:
            make_run("dc", held_out, seed, 0.50 + 0.002 * seed)
    found = ask(runs)
    assert (found.leader, found.beaten_by, found.undecided, found.tested) == ("dc", ("agg",), (), ())
    assert found.certainty == (
        "Over the runs that both have, it is worse than agg: it won 0 of 12 pairs (difference -3.3 [-3.3, -3.3], "
        "p < 0.001); its higher mean comes from comparing other runs than these pairs."
    )


def test_runs_on_all_domains_are_no_held_out_domain(make_run, runs: Path) -> None:
    for seed in (0, 1):
        make_run("agg", "photo", seed, 0.5)
        make_run("dc", "photo", seed, 0.6)
        make_run("dc", None, seed, None)
    assert "held out" not in ask(runs).certainty.split("until")[1]


@pytest.mark.parametrize("final", [False, True], ids=["held out only", "and final models"])
def test_rows_without_a_complete_seed(make_run, runs: Path, final: bool) -> None:
    """Models that were trained on all domains are no domain that both rows have."""
    for seed in (0, 1):
        make_run("agg", "photo", seed, 0.5)
        make_run("dc", "sketch", seed, 0.6)
    for method in ("agg", "dc") if final else ():
        make_run(method, None, 0, None)
    found = ask(runs)
    assert (found.leader, found.certainty) == (
        None,
        "No row has a seed with every held-out domain; the tables show the values that exist.",
    )
