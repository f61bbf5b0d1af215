"""The answer says who leads, and claims no more than the seeds bear out."""

from __future__ import annotations

from pathlib import Path

from ltds.report.answer import Answer, answer, isolated
from ltds.report.collect import Collection, collect


def ask(runs: Path) -> Answer:
    return answer(collect([runs]).datasets[0])


def test_two_seeds_are_a_hint(grid: Collection) -> None:
    found = answer(grid.datasets[0])
    assert found.leader == "dc"
    assert found.verdict == (
        "dc is ahead with 37.0 ± 2.1 % Acc-U on average over 2 held-out domains, 5.5 points above agg (31.5 ± 2.1 %)."
    )
    assert "won 4 of 4 times" in found.certainty
    assert "2 seeds are few" in found.certainty


def test_one_seed_cannot_tell(make_run, runs: Path) -> None:
    make_run("agg", acc_u=0.2)
    make_run("dc", acc_u=0.9)
    found = ask(runs)
    assert found.verdict == "dc is ahead with 90.0 % Acc-U on photo, 70.0 points above agg (20.0 %)."
    assert found.certainty.startswith("One seed cannot tell")


def test_a_gap_within_the_spread_is_no_win(make_run, runs: Path) -> None:
    for seed, (a, b) in enumerate([(0.40, 0.45), (0.50, 0.47), (0.45, 0.46)]):
        make_run("agg", seed=seed, acc_u=a)
        make_run("dc", seed=seed, acc_u=b)
    assert ask(runs).certainty.endswith(
        "won 2 of 3 times, and the gap is no larger than the spread between seeds: do not call it a winner."
    )


def test_three_seeds_with_a_clear_gap(make_run, runs: Path) -> None:
    for seed in range(3):
        make_run("agg", seed=seed, acc_u=0.40 + 0.01 * seed)
        make_run("dc", seed=seed, acc_u=0.60 + 0.01 * seed)
    assert ask(runs).certainty.endswith("won 3 of 3 times, and the gap is larger than the spread between the 3 seeds.")


def test_level_methods(make_run, runs: Path) -> None:
    make_run("agg", acc_u=0.5)
    make_run("dc", acc_u=0.5)
    assert ask(runs).verdict == "agg and dc are level at 50.0 % Acc-U on photo."


def test_a_lone_method_has_nothing_to_beat(make_run, runs: Path) -> None:
    make_run("agg", acc_u=0.5)
    found = ask(runs)
    assert found.verdict == "agg reaches 50.0 % Acc-U on photo; no other method has this number."
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
