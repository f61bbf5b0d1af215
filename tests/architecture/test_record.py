"""benchmarks/record.py: runs that differ in more than their seed or domain never become one row."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from repository import benchmark_module

RECORD = benchmark_module("record")


def run(seed: int, held_out: str = "x", **settings: object) -> dict[str, object]:
    return {"row": "agg", "data": "d", "held_out": held_out, "seed": seed, "settings": settings}


def test_seeds_of_one_row_have_the_same_settings() -> None:
    assert RECORD.different([run(0, lr=0.1), run(1, lr=0.1), run(0, lr=0.2) | {"data": "other"}]) == ""
    for held_out in ("x", "y"):  # an average over domains is a row, too
        problem = RECORD.different([run(0, lr=0.1, width=8), run(1, held_out, lr=0.2)])
        assert problem == "('agg', 'd') differ in lr, width"


def test_settings_that_came_later_are_as_before() -> None:
    assert RECORD.different([run(0, lr=0.1), run(1, lr=0.1, **{"backbone.frozen": 0})]) == ""
    assert "backbone.frozen" in RECORD.different([run(0, lr=0.1), run(1, lr=0.1, **{"backbone.frozen": 3})])


def test_other_rules_or_features_are_another_row() -> None:
    first, second = run(0, lr=0.1) | {"metrics_version": 4}, run(1, lr=0.1) | {"metrics_version": 5}
    assert RECORD.different([first, second]) == "('agg', 'd') differ in metrics_version"
    assert RECORD.different([run(2, lr=0.1), first]) == "", "an older record does not say"
    first, second = run(0) | {"features_sha256": "a"}, run(1) | {"features_sha256": "b"}
    assert RECORD.different([first, run(3), second]) == "('agg', 'd') differ in features_sha256"


def test_the_checksum_of_features_is_the_one_that_the_run_recorded(tmp_path: Path) -> None:
    """Not that of the file of today, which may have been overwritten."""
    features, metrics = tmp_path / "f.npz", tmp_path / "metrics.json"
    features.write_bytes(b"today")
    metrics.write_text(json.dumps({"version": 5, "per_domain": {}, "validation": None}), encoding="utf-8")

    def checksum(**environment: object) -> object:
        config = {"data": {"root": "d", "held_out": "x", "features": str(features)}, "run": {"seed": 0}}
        directory = SimpleNamespace(metrics_file=metrics, read_environment=lambda: environment)
        numbers = SimpleNamespace(choices={"model": {}}, summary={})
        task = SimpleNamespace(name="d", held_out="x", open_classes=())
        return RECORD.facts(RECORD.Run(directory, "agg", 0, task, config, numbers, environment), "")["features_sha256"]

    assert checksum(files={"data.features": "then"}) == "then"
    assert checksum() is None
    assert checksum(files={"backbone.weights": "w"}) is None


def test_settings_name_files_without_their_folder() -> None:
    """As the records of before, which newer runs are compared with."""
    backbone = {"name": "hf:/z/vit", "weights": "/y/w.pth"}
    config = {"data": {"features": "/x/f.npz"}, "backbone": backbone, "run": {}}
    environment = {"files": {"data.features": "1", "backbone.weights": "2"}}
    settings = RECORD.settings_of(RECORD.Run(None, "agg", 0, None, config, None, environment))
    names = {"data.features": "f.npz", "backbone.weights": "w.pth", "semantics.table": "", "backbone.name": "hf:vit"}
    assert settings.items() >= names.items()


def test_runs_of_an_earlier_record_are_compared_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "record.json"
    older = {"settings": {"lr": 0.3}, "runs": [run(1) | {"commit": "1"}]}
    out.write_text(json.dumps(older), encoding="utf-8")
    monkeypatch.setattr(RECORD, "collect", lambda folders: SimpleNamespace(problems=[], runs=[]))
    monkeypatch.setattr(RECORD, "rows_of", lambda named: [run(0, lr=0.1)])
    words = ["record.py", "runs", "--what", "w", "--command", "c", "--keep", "--out", str(out)]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit):
        RECORD.main()
    assert json.loads(out.read_text(encoding="utf-8")) == older


def test_variants_of_a_benchmark_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [{"run": f"agg-x-0-{name}", "method": f"agg ({name})", "held_out": "x", "seed": 0} for name in "ab"]
    (tmp_path / "cells.json").write_text(json.dumps(cells), encoding="utf-8")
    assert RECORD.variants_of(tmp_path) == {"agg-x-0-a": "agg (a)", "agg-x-0-b": "agg (b)"}
    assert RECORD.variants_of(tmp_path / "elsewhere") == {}
    runs = [SimpleNamespace(directory=SimpleNamespace(path=Path("runs") / cell["run"])) for cell in cells]
    monkeypatch.setattr(RECORD, "collect", lambda folders: SimpleNamespace(problems=[], runs=runs))
    recorded: dict[str, int] = {}
    monkeypatch.setattr(RECORD, "rows_of", lambda named: recorded.update({row: len(named[row]) for row in named}) or [])
    monkeypatch.setattr(RECORD, "study", lambda *_: {})
    words = ["record.py", str(tmp_path), "--what", "w", "--command", "c", "--out", str(tmp_path / "out.json")]
    monkeypatch.setattr("sys.argv", words)
    RECORD.main()
    assert recorded == {"agg (a)": 1, "agg (b)": 1}
