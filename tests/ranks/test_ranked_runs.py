"""Whole runs in several ranks: equal to one rank, resumed exactly, resumed with another number of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ltds.core.errors import ConfigError
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine import loop
from ltds.engine.assemble import assemble
from ltds.engine.identity import identity
from ltds.engine.start import resume_run, train_new_run
from ranked_runs import assert_close, settings
from resuming import assert_same_outcome
from toy import recorded, toy_config, toy_session


def files(run: RunDirectory) -> set[str]:
    return {str(file.relative_to(run.path)) for file in run.path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("averaging", [{"name": "ema"}, {"name": "swad", "start_patience": 1, "tolerance": 9.0}])
def test_a_run_that_one_rank_started_goes_on_in_two(toy: Manifest, tmp_path: Path, averaging: dict[str, Any]) -> None:
    """tau-norm has AdamW here, averages its weights and fits its head after training: all of it is shared."""
    groups = {"optimizer": {"name": "adamw", "lr": 0.01}, "averaging": averaging}
    alone, both = RunDirectory(tmp_path / "alone"), RunDirectory(tmp_path / "both")
    train_new_run(alone, toy_config(toy, "tau-norm", **groups, **settings(1)), toy)
    session = toy_session(toy, "tau-norm", **groups, **settings(2))
    loop.train(session, recorded(session, both.path), stop_after=3)
    resume_run(both)
    assert_close(both, alone)
    assert files(both) == files(alone)
    assert both.read_environment()["ranks"] == 1
    assert both.read_environment()["resumed"][0]["ranks"] == 2


def test_two_ranks_resume_bit_for_bit_and_then_three_go_on(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of two ranks from the middle of a run, with covariances, continued by two ranks and by three."""
    small = {"optimizer": {"lr": 0.01}}  # so that rounding does not grow much in six steps
    config = toy_config(toy, "isda", **small, **settings(2, checkpoint_every=3))
    names = ("straight", "alone", "resumed", "more")
    straight, alone, resumed, more = (RunDirectory(tmp_path / name) for name in names)
    kept: dict[str, bytes] = {}
    write = loop.save_checkpoint

    def remember(file: Path, *args: Any, **kwargs: Any) -> None:
        write(file, *args, **kwargs)
        if file.name == "last.safetensors":
            kept.setdefault("last", file.read_bytes())
            kept.setdefault("journal", straight.journal_file.read_bytes())
            best = straight.best_checkpoint
            kept.setdefault("best", best.read_bytes() if best.is_file() else b"")

    monkeypatch.setattr(loop, "save_checkpoint", remember)
    train_new_run(straight, config, toy)
    monkeypatch.undo()
    train_new_run(alone, toy_config(toy, "isda", **small, **settings(1)), toy)
    assert_close(straight, alone)
    for run in (resumed, more):
        recorded(assemble(config, toy), run.path)
        run.last_checkpoint.parent.mkdir()
        run.last_checkpoint.write_bytes(kept["last"])
        run.best_checkpoint.write_bytes(kept["best"])
        run.journal_file.write_bytes(kept["journal"])
    resume_run(resumed)
    assert_same_outcome(resumed, straight)
    resume_run(more, ranks=3)
    assert_close(more, straight)


def test_the_number_of_ranks_is_no_part_of_what_a_run_computes(toy: Manifest) -> None:
    one, two = (toy_config(toy, "agg", run={"ranks": n, "rank_timeout": 5 * n}) for n in (1, 2))
    assert identity(one, toy) == identity(two, toy)


def test_ranks_below_one_are_refused(toy: Manifest, tmp_path: Path) -> None:
    import ltds

    run = recorded(toy_session(toy), tmp_path / "run")
    with pytest.raises(ConfigError, match="'ranks' to be at least 1, but got 0"):
        ltds.train(resume=run.path, ranks=0)
    with pytest.raises(ConfigError, match=r"run\.ranks"):
        ltds.train(toy, out=tmp_path / "new", method="agg", ranks=0)
