"""Which runs are reported, which are named as problems, and which may stand in one table."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ltds.reporting
from ltds.core.errors import DataError
from ltds.core.runs import RunDirectory
from ltds.evaluation.protocol import PredictionTable, compute_metrics
from ltds.reporting.collection import Collection, collect
from ltds.reporting.formats.csv_table import csv_table
from ltds.reporting.formats.html.page import render_page
from ltds.reporting.formats.json_record import report_record
from ltds.reporting.formats.latex import latex_table
from ltds.reporting.formats.markdown import markdown_table
from ltds.reporting.glossary import METRICS
from ltds.reporting.journal_file import STEPS


def test_finds_runs_in_folders_and_takes_each_once(make_run, runs: Path) -> None:
    first, deep = make_run("agg"), make_run("dc", folder="a/b/c/dc-0")
    found = collect([first, runs, str(deep)])
    assert [run.path for run in found.runs] == [first, deep]
    assert found.problems == ()
    run = found.runs[0]
    assert (run.method, run.seed, run.held_out, run.task.name) == ("agg", 0, "photo", "toy")


def test_an_unfinished_run_is_named_with_the_command_that_finishes_it(make_run, runs: Path) -> None:
    make_run("agg")
    unfinished = make_run("dc")
    (unfinished / "DONE").unlink()
    found = collect([runs])
    assert [run.method for run in found.runs] == ["agg"]
    assert len(found.problems) == 1
    assert "unfinished" in found.problems[0]
    assert found.problems[0] == f"'{unfinished}' is left out because it is unfinished. Resume the run to finish it."


@pytest.mark.parametrize("begun", [True, False])
def test_a_run_that_failed_is_named_with_its_error(make_run, runs: Path, begun: bool) -> None:
    """Also where it failed before its settings were written, as for want of memory."""
    make_run("agg")
    failed = make_run("dc") if begun else runs / "dc-0"
    failed.mkdir(exist_ok=True)
    (failed / "DONE").unlink(missing_ok=True)
    (failed / "FAILED.json").write_text('{"error": "MemoryError: no memory"}')
    found = collect([runs])
    assert found.problems == (f"'{failed}' is left out because it failed: MemoryError: no memory",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "valid JSON"),
        ("[]", "JSON object"),
        ("{}", "version: Field required"),
        ('{"version": 5}', "version"),
        ('{"version": 5, "task": {"name": "toy", "held_out": "photo"}, "summary": {"acc": NaN}}', "summary.acc"),
        ('{"version": 5, "task": {"name": "toy", "held_out": "photo"}, "summary": {"acc": 43.2}}', "summary.acc"),
        ('{"version": 5, "task": {"name": "toy", "held_out": "art"}, "summary": {}}', "'art' held out"),
        (None, "not evaluated"),
    ],
)
def test_corrupt_metrics_are_a_problem_and_the_rest_is_reported(make_run, runs: Path, content, said) -> None:
    make_run("agg")
    file = make_run("dc") / "metrics.json"
    file.unlink() if content is None else file.write_text(content)
    found = collect([runs])
    assert [run.method for run in found.runs] == ["agg"]
    assert len(found.problems) == 1
    assert said in found.problems[0]
    assert "evaluate" in found.problems[0] or said == "JSON object"


def test_pairs_of_another_shape_are_refused(make_run, runs: Path) -> None:
    make_run("agg")
    file = make_run("dc") / "metrics.json"
    metrics = json.loads(file.read_text())
    metrics["pairs"]["accuracy"] = metrics["pairs"]["accuracy"][:2]
    file.write_text(json.dumps(metrics))
    assert "(domains, classes) = (3, 8)" in collect([runs]).problems[0]


@pytest.mark.parametrize(("file", "content"), [("config.toml", "= ="), ("config.toml", ""), ("task.json", "{}")])
def test_unreadable_settings_are_a_problem(make_run, runs: Path, file: str, content: str) -> None:
    make_run("agg")
    (make_run("dc") / file).write_text(content)
    found = collect([runs])
    assert len(found.runs) == 1
    assert "config.toml and task.json cannot be read" in found.problems[0]


def test_environment_and_journal_may_be_missing(make_run) -> None:
    path = make_run("agg")
    (path / "environment.json").unlink()
    (path / "log.jsonl").unlink()
    (run,) = collect([path]).runs
    assert (run.environment, run.journal, run.command) == ({}, (), "")


def test_missing_path_and_file_are_problems(make_run, tmp_path: Path) -> None:
    path = make_run("agg")
    found = collect([tmp_path / "nowhere", path / "metrics.json", path])
    assert len(found.runs) == 1
    assert found.problems[0].endswith("nowhere' does not exist.")
    assert "is a file" in found.problems[1]


def test_nothing_to_report_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"contains no run directory.*Make one with 'ltds train'.*'ltds report RUN'"):
        collect([tmp_path])
    with pytest.raises(DataError, match="no path"):
        collect([])


def test_a_folder_that_cannot_be_opened_is_a_problem(make_run, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run("agg")
    (runs / "secret").mkdir()
    scandir = os.scandir

    def refuse(path: Path):
        if path.name == "secret":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("ltds.reporting.collection.os.scandir", refuse)
    found = collect([runs])
    assert len(found.runs) == 1
    assert found.problems == (f"'{runs / 'secret'}' cannot be read: Permission denied.",)


def test_a_ruined_folder_still_gives_every_format_and_says_what_is_wrong(make_run, runs: Path, tmp_path: Path) -> None:
    """Half-finished, binary, cut off, a folder in a file's place, another dataset: what is whole is reported."""
    for seed in (0, 1):
        make_run("agg", seed=seed)
    make_run("dc", dataset="other")
    (make_run("late") / "DONE").unlink()
    (make_run("binary") / "config.toml").write_bytes(b"\xff\x00\xfe")
    (make_run("cut") / "metrics.json").write_text('{"version": 5, "task": ')
    folder = make_run("folder") / "metrics.json"
    folder.unlink()
    folder.mkdir()
    (make_run("seedless") / "config.toml").write_text('[method]\nname = "x"\n[run]\nseed = "many"\n')
    (runs / "empty").mkdir()
    journal = make_run("agg", seed=2) / "log.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40] + b"\xff{")
    found = collect([runs])
    assert [(d.name, list(d.rows)) for d in found.datasets] == [("other", ["dc"]), ("toy", ["agg"])]
    for name in ("late", "binary", "cut", "folder", "seedless"):
        assert sum(f"toy-{name}-photo-0" in problem for problem in found.problems) == 1, name
    assert len(found.problems) == 5
    for make in (markdown_table, csv_table, latex_table, render_page):
        assert "agg" in make(found)
    assert len(report_record(found)["problems"]) == 5


def test_long_journals_are_read_in_part(make_run) -> None:
    path = make_run("agg")
    lines = [json.dumps({"kind": "step", "step": s, "loss": 1.0, "terms": {}, "seconds": 0.1}) for s in range(1, 3001)]
    lines.insert(1501, json.dumps({"kind": "validation", "step": 1500, "accuracy": 0.5}))
    (path / "log.jsonl").write_text("\n".join(lines) + "\n")
    (run,) = collect([path]).runs
    steps = [line["step"] for line in run.journal if line["kind"] == "step"]
    assert steps == list(range(1, 3001, 3000 // STEPS))
    assert [line["step"] for line in run.journal if line["kind"] == "validation"] == [1500]


def test_datasets_of_one_name_but_other_images_stand_apart(make_run, runs: Path) -> None:
    """A Bestiary of 64 pixels has the same names and counts as one of 32."""
    for seed, data in ((0, "a"), (1, "a"), (2, "b")):
        run = RunDirectory(make_run("agg", seed=seed))
        run.write_environment({**run.read_environment(), "data": data})
    first, second = collect([runs]).datasets
    assert [run.seed for run in first.rows["agg"]] == [0, 1]
    assert [run.seed for run in second.rows["agg"]] == [2]


@pytest.mark.parametrize("damage", ["missing", "{broken", "[]", "\udcff"])
def test_without_its_environment_nobody_knows_the_images_of_a_run(make_run, runs: Path, damage: str) -> None:
    for seed, data in enumerate("ab"):
        run = RunDirectory(make_run("agg", seed=seed))
        run.write_environment({**run.read_environment(), "data": data})
    file = run.environment_file
    file.unlink() if damage == "missing" else file.write_bytes(damage.encode(errors="surrogateescape"))
    found = collect([runs])
    assert len(found.datasets) == 1
    assert found.problems == (
        f"'{file}' cannot be read: whether this run was trained on the same images as the others, in the same "
        "precision and with as many ranks, is not known. Restore the file, or train the run again.",
    )


def test_datasets_stand_apart(make_run, runs: Path) -> None:
    make_run("agg", dataset="one")
    make_run("agg", dataset="two")
    assert [d.name for d in collect([runs]).datasets] == ["one", "two"]


def test_other_images_under_the_same_name_stand_apart(make_run, runs: Path) -> None:
    make_run("agg")
    file = make_run("dc") / "task.json"
    task = json.loads(file.read_text())
    task["counts"][0][0] += 1
    file.write_text(json.dumps(task))
    assert [(d.name, list(d.rows)) for d in collect([runs]).datasets] == [("toy", ["agg"]), ("toy #2", ["dc"])]


def test_acc_on_training_images_is_called_so(make_run, runs: Path) -> None:
    file = make_run("agg") / "task.json"
    assert collect([runs]).problems == ()
    task = json.loads(file.read_text())
    file.write_text(json.dumps({**task, "trained_in_test": 2807}))
    (said,) = collect([runs]).problems
    assert said.startswith("Acc on toy, and every number over all domains, includes training images: 2807 test ")
    make_run("agg", seed=1)
    assert [d.name for d in collect([runs]).datasets] == ["toy", "toy #2"], "not the same test images"


def test_counts_of_all_domains_come_together_from_the_runs(grid: Collection) -> None:
    (dataset,) = grid.datasets
    assert list(dataset.counts) == ["photo", "sketch", "art_&_co"]
    assert dataset.counts["photo"][:3] == (120, 60, 30)
    assert dataset.held_out == ("photo", "sketch")


def test_other_settings_make_another_row_not_another_seed(make_run, runs: Path) -> None:
    make_run("agg", seed=0)
    make_run("agg", seed=1, config={"optimizer": {"lr": 0.01}})
    found = collect([runs])
    assert list(found.datasets[0].rows) == ["agg (optimizer.lr=0.1)", "agg (optimizer.lr=0.01)"]
    assert any("trained with different settings: optimizer.lr is 0.1 for" in problem for problem in found.problems)


def test_a_run_from_before_a_setting_is_a_seed_of_the_same_experiment(make_run, runs: Path) -> None:
    make_run("agg", seed=0)
    make_run("agg", seed=1, config={"schedule": {"keep": "best"}, "backbone": {"architecture": ""}})
    found = collect([runs])
    assert {label: len(members) for label, members in found.datasets[0].rows.items()} == {"agg": 2}
    assert found.problems == ()
    make_run("agg", seed=2, config={"schedule": {"keep": "last"}})
    assert set(collect([runs]).datasets[0].rows) == {"agg (schedule.keep='best')", "agg (schedule.keep='last')"}


def test_precision_and_ranks_make_another_row(make_run, runs: Path) -> None:
    """The others of [run] say how a run was computed; one rank has nothing to synchronise."""
    make_run("agg", seed=0)
    make_run("agg", seed=1, config={"run": {"precision": "float32", "ranks": 1, "threads": 4}})
    make_run("agg", seed=2, config={"run": {"ranks": 1, "sync_batchnorm": True, "device": "cpu"}})
    found = collect([runs])
    assert {label: len(members) for label, members in found.datasets[0].rows.items()} == {"agg": 3}
    assert found.problems == ()
    half = make_run("agg", seed=0, folder="with-half", config={"run": {"precision": "bfloat16"}})
    one, other = collect([runs]).datasets[0].rows.items()
    assert (one[0], len(one[1])) == ("agg (run.precision='float32')", 3)
    assert (other[0], [run.path for run in other[1]]) == ("agg (run.precision='bfloat16')", [half])


def test_rows_differ_in_what_was_used_and_not_in_what_was_asked_for(make_run, runs: Path) -> None:
    """precision=auto may take either, and torchrun sets the ranks: environment.json records both."""
    for seed, used in enumerate(("float32", "bfloat16")):
        run = RunDirectory(make_run("agg", seed=seed, config={"run": {"precision": "auto"}}))
        run.write_environment({**run.read_environment(), "precision": used, "ranks": 1 + seed})
    make_run("agg", seed=2, config={"run": {"precision": "float32"}})
    rows = collect([runs]).datasets[0].rows
    assert {label: [member.seed for member in members] for label, members in rows.items()} == {
        "agg (run.precision='float32', run.ranks=1)": [0, 2],
        "agg (run.precision='bfloat16', run.ranks=2)": [1],
    }


def test_a_run_resumed_with_another_number_of_ranks_is_another_row(make_run, runs: Path) -> None:
    """An entry of "resumed" names what differs from the start."""
    resumed: list[Any] = [[], [{"torch": "2.7"}], [{"ranks": 2}, {"ranks": 2}, {}], 7]
    for seed, entries in enumerate(resumed):
        run = RunDirectory(make_run("agg", seed=seed))
        run.write_environment({**run.read_environment(), "ranks": 1, "resumed": entries})
    rows = collect([runs]).datasets[0].rows
    assert {label: [member.seed for member in members] for label, members in rows.items()} == {
        "agg (run.ranks=1)": [0, 1, 3],
        "agg (run.ranks='1, then 2, then 1')": [2],
    }


def test_settings_that_follow_the_held_out_domain_stay_one_row_with_a_note(make_run, runs: Path) -> None:
    make_run("agg", "photo")
    make_run("agg", "sketch", config={"schedule": {"steps_per_epoch": 31}})
    found = collect([runs])
    assert list(found.datasets[0].rows) == ["agg"]
    assert found.problems == (
        "The average of 'agg' mixes settings: schedule.steps_per_epoch is 30 for photo, 31 for sketch.",
    )


def test_a_repeated_run_counts_once(make_run, runs: Path) -> None:
    make_run("agg", folder="a", acc_u=0.4)
    make_run("agg", folder="b", acc_u=0.6)
    found = collect([runs])
    assert [run.path.name for run in found.datasets[0].rows["agg"]] == ["a"]
    assert "repeats" in found.problems[0]


def test_runs_of_two_commits_are_noted(make_run, runs: Path) -> None:
    make_run("agg", commit="aaa")
    make_run("dc", commit="bbb")
    assert collect([runs]).problems == ("The runs come from 2 commits of the code: aaa, bbb.",)


def test_what_evaluation_writes_is_what_a_report_reads(make_run) -> None:
    """8 classes, class 7 open; the model is right about photo's images and says class 0 in the other domains."""
    path = make_run("agg", "art_&_co")
    run = RunDirectory(path)
    labels, domains = np.tile(np.arange(8), 3), np.repeat(np.arange(3), 8)
    said = np.where(domains == 0, labels, 0)
    logits = np.where(np.arange(8) == said[:, None], 4.0, 0.0).astype(np.float32)
    table = PredictionTable(logits, labels, domains, np.arange(24))
    run.write_metrics(compute_metrics(table, None, run.read_task()))
    (read,) = collect([path]).runs
    assert read.metrics.summary["acc_u"] == pytest.approx(1 / 7)
    assert read.metrics.summary["acc"] == pytest.approx((1 + 1 / 7 + 1 / 7) / 3)
    assert read.metrics.summary["h_fixed"] is None
    assert read.metrics.pairs is not None
    assert read.metrics.pairs.accuracy[1][:2] == [1, 0]
    assert {metric.key for metric in METRICS.values()} <= set(read.metrics.summary)
    assert {metric.choice for metric in METRICS.values() if metric.choice} <= set(read.metrics.choices)


def test_report_never_imports_a_model() -> None:
    folder = Path(ltds.reporting.__file__).parent
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.split(".")[0] != "torch", file
                assert name != "matplotlib.pyplot", file  # it keeps every figure in a global list
                allowed = ("ltds.core", "ltds.reporting", "ltds.evaluation")
                assert not name.startswith("ltds") or name.startswith(allowed), (file, name)


def test_many_problems_of_one_kind_are_counted_not_listed(make_run) -> None:
    runs = [make_run(f"old{i}") for i in range(6)]
    for run in runs:
        (run / "metrics.json").write_text('{"version": 1}')
    with pytest.raises(DataError, match=r"And 3 more\."):
        collect(runs)
