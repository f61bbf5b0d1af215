"""Addressed randomness, the task, atomic files, run directories, names."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from ltds.core.errors import CheckpointError, ConfigError, DataError, expected
from ltds.core.files import atomic, write_json, write_text
from ltds.core.registry import find, find_or_import
from ltds.core.rng import address, generator, numpy_generator, reseed_global
from ltds.core.runs import RunDirectory
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest


def test_a_draw_depends_on_its_address_alone() -> None:
    first = torch.rand(3, generator=generator(0, "a", 1))
    torch.rand(100)
    assert torch.equal(first, torch.rand(3, generator=generator(0, "a", 1)))
    others = [generator(1, "a", 1), generator(0, "b", 1), generator(0, "a", 2), generator(0, "a", 1, 0)]
    assert all(not torch.equal(first, torch.rand(3, generator=g)) for g in others)


def test_addresses_do_not_run_into_each_other() -> None:
    assert len({address(0, "s", 1, 11), address(0, "s", 11, 1), address(0, "s", 111), address(0, "s1", 11)}) == 4


def test_draws_are_the_same_on_every_machine() -> None:
    assert numpy_generator(0, "golden").integers(0, 1000, 5).tolist() == [836, 658, 332, 254, 606]
    assert torch.randperm(6, generator=generator(0, "golden")).tolist() == [3, 4, 5, 1, 0, 2]


@pytest.mark.parametrize("accelerator", [False, True])
def test_reseeding_seeds_the_global_generator_with_the_address(
    accelerator: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: accelerator)
    reseed_global(3, "step", 7)
    drawn = torch.rand(3)
    torch.manual_seed(address(3, "step", 7))
    assert torch.equal(drawn, torch.rand(3))


def test_reseeding_the_global_generator_fixes_dropout() -> None:
    reseed_global(3, "step", 7)
    first = torch.nn.functional.dropout(torch.ones(20))
    reseed_global(3, "step", 7)
    assert torch.equal(first, torch.nn.functional.dropout(torch.ones(20)))


def test_a_clock_gives_the_same_draws_at_the_same_step() -> None:
    clock = Clock(seed=1, step=5, total=10, steps_per_epoch=2)
    assert clock.epoch == 2
    assert torch.equal(torch.rand(2, generator=clock.generator("x")), torch.rand(2, generator=clock.generator("x")))


def test_task_of_a_manifest(toy: Manifest) -> None:
    task = toy.task("wax")
    assert task.sources == ("ink", "oil")
    assert task.counts.tolist() == [[9, 6, 4, 2, 1, 0], [8, 5, 0, 3, 0, 0]]
    assert task.open_classes == (5,)
    assert task.class_counts.tolist() == [17, 11, 4, 5, 1, 0]
    assert task.seen_in_domain.tolist() == [
        [True, True, True, True, True, False],
        [True, True, False, True, False, False],
        [False] * 6,
    ]
    again = Task.from_dict(task.to_dict())
    assert (again.classes, again.held_out, again.counts.tolist()) == (task.classes, "wax", task.counts.tolist())


def test_training_on_every_domain_leaves_no_class_open(toy: Manifest) -> None:
    task = toy.task(None)
    assert (task.sources, task.open_classes) == (("ink", "oil", "wax"), ())


def test_counts_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(sources, classes\) = \(1, 2\), but got \(2, 2\)"):
        Task("t", ("a", "b"), ("x", "y"), "y", np.ones((2, 2), dtype=np.int64))


def test_a_batch_is_split_into_parts_with_every_domain() -> None:
    domains = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2])
    first, second = Batch(torch.arange(8.0), torch.arange(8), domains, torch.arange(8)).split(2)
    assert (first.rows.tolist(), second.rows.tolist()) == ([0, 1, 4, 6], [2, 3, 5, 7])
    assert first.domains.tolist() == [0, 0, 1, 2]


def test_batch_of_domains_keeps_order() -> None:
    batch = Batch(torch.arange(4.0), torch.arange(4), torch.tensor([0, 1, 2, 1]), torch.arange(4))
    assert batch.of(1, 2).rows.tolist() == [1, 2, 3]
    assert len(batch.of(0)) == 1


def test_an_atomic_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_text(file, "old")

    def interrupted() -> None:
        with atomic(file) as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_json_never_holds_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert not (tmp_path / "a.json").exists()


def test_a_folder_that_is_no_run_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="Name a folder that ltds has trained in") as caught:
        RunDirectory(tmp_path).read_config()
    assert str(caught.value).startswith(f"Expected '{tmp_path}' to be a run directory with a file 'config.toml', but")
    assert "valid TOML" not in str(caught.value), "one reason, and the right one"


def test_the_folder_of_a_series_says_where_its_model_is(tmp_path: Path) -> None:
    (tmp_path / "series.json").write_text("{}")
    final = tmp_path / "final"
    with pytest.raises(CheckpointError, match=f"Its model will be '{final}', which is not trained yet") as caught:
        RunDirectory(tmp_path).read_config()
    assert caught.value.resume == tmp_path
    final.mkdir()
    RunDirectory(final).mark_done()
    with pytest.raises(CheckpointError, match=f"a series of runs. Its model is '{final}': name that") as caught:
        RunDirectory(tmp_path).read_metrics()
    assert caught.value.resume is None


def test_a_corrupt_metrics_file_says_how_to_write_it_again(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.metrics_file.write_text("{broken")
    with pytest.raises(CheckpointError, match="evaluate the run again: that writes it from the stored predictions"):
        run.read_metrics()


def test_a_journal_cut_off_by_a_crash_is_read_up_to_there(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.journal_file.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert run.read_journal() == [{"step": 1}, {"step": 2}]


@pytest.mark.parametrize("length", [10, 5_000, 50_000])
def test_the_last_line_of_a_journal_may_be_long(length: int, tmp_path: Path) -> None:
    run, distances = RunDirectory(tmp_path), ", ".join(["0.5"] * (length // 5))
    run.journal_file.write_text(f'{{"step": 6, "seconds": 1.0}}\n{{"step": 7, "distances": [{distances}]}}\n{{"st')
    assert run.last_line(0.0)[:2] == (7, 1.0), "the seconds of a line before: a validation has none"


def test_names_are_found_in_the_dict_or_imported() -> None:
    assert find("thing", "a", {"a": 1}) == 1
    assert find_or_import("thing", "a", {"a": 1}) == 1
    assert find_or_import("thing", "ltds.core.task:Task", {"a": 1}) is Task
    with pytest.raises(ConfigError, match=r"Expected the name of a thing, but got 'aa'. Did you mean 'a'\?"):
        find("thing", "aa", {"a": 1})
    with pytest.raises(ConfigError, match="No module named 'nowhere'"):
        find_or_import("thing", "nowhere:Thing", {"a": 1})
    for name in ("aa", ":Thing", "ltds:"):
        with pytest.raises(ConfigError, match=r"package\.module:Thing"):
            find_or_import("thing", name, {"a": 1})


def test_the_reason_of_an_error_is_what_came_whatever_the_names_contain() -> None:
    thing, got = "image 'Dr. Who, but got lost. jpg'", "a file 'x. y, but got z'"
    error = DataError(expected(thing, "readable", got, "Copy it again."))
    assert str(error) == f"Expected {thing} to be readable, but got {got}. Copy it again."
    assert error.reason == error.got == got
    assert pickle.loads(pickle.dumps(error)).reason == got
    assert DataError(expected("batch", "at least 2", 1, "Raise it.")).reason == "1"
    plain = DataError("The disk is full. Make room.")
    assert (plain.got, plain.reason) == ("", "The disk is full. Make room.")


def test_a_run_directory_may_be_given_as_text(tmp_path: Path) -> None:
    RunDirectory(tmp_path / "run").write_metrics({"summary": {}})
    assert RunDirectory(str(tmp_path / "run")).read_metrics() == {"summary": {}}
    assert RunDirectory("run") == RunDirectory(Path("run"))
