"""Synthetic run directories: the files that a finished run leaves, with numbers that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ltds.core.files import write_text
from ltds.core.runs import RunDirectory
from ltds.core.task import Task
from ltds.evaluation.table import PredictionTable
from ltds.evaluation.thumbnails import save_thumbnails
from ltds.reporting.collection import Collection, collect
from ltds.reporting.formats.html.page import render_page

CLASSES = ("ant", "bee", "<script>alert(1)</script>", "q\"&'", "$x_1$", "🦊", "قطة", "_under")
DOMAINS = ("photo", "sketch", "art_&_co")
COUNTS = {  # class 7 trains in art only, so it is open where art is held out
    "photo": (120, 60, 30, 15, 8, 4, 2, 0),
    "sketch": (90, 0, 40, 10, 0, 5, 1, 0),
    "art_&_co": (70, 50, 0, 12, 6, 0, 3, 2),
}

MakeRun = Callable[..., Path]


def a_task(held_out: str | None, name: str) -> Task:
    counts = np.array([COUNTS[d] for d in DOMAINS if d != held_out], dtype=np.int64)
    return Task(name, CLASSES, DOMAINS, held_out, counts)


def a_summary(acc_u: float | None) -> dict[str, float | None]:
    rest = {
        "acc": 0.5,
        "h_oracle": 0.4,
        "h_fixed": 0.3,
        "auroc": 0.7,
        "oscr": 0.6,
        "many": 0.8,
        "medium": 0.5,
        "few": 0.1,
    }
    return {"acc_u": acc_u, **rest, "seen_pairs": 0.6, "unseen_pairs": None, "ece": 0.12, "macro_accuracy": 0.45}


def some_metrics(task: Task, summary: dict[str, float | None], rng: np.random.Generator) -> dict[str, Any]:
    accuracy = np.clip(rng.normal(np.linspace(0.9, 0.2, len(CLASSES)), 0.08, (len(DOMAINS), len(CLASSES))), 0, 1)
    if task.held_out is not None and summary["acc_u"] is not None:  # Macro-U, the mean of the row, is near Acc-U
        accuracy[DOMAINS.index(task.held_out)] += summary["acc_u"] - accuracy[DOMAINS.index(task.held_out)].mean()
        accuracy = np.clip(accuracy, 0, 1)
    per_class = [
        {"class": c, "train_images": int(n), "shot": "few", "accuracy": float(a), "images": 30}
        for c, n, a in zip(CLASSES, task.class_counts, accuracy.mean(axis=0), strict=True)
    ]
    oracle = {"rule": "best of 10 thresholds", "split": "test", "oracle": True, "threshold": 0.4, "why": None}
    fixed = {"rule": "5th percentile", "split": "val", "oracle": False, "threshold": 0.2, "why": None}
    return {
        "version": 5,
        "task": {"name": task.name, "held_out": task.held_out, "domains": list(DOMAINS), "classes": len(CLASSES)},
        "choices": {
            "model": {"rule": "best mean validation accuracy", "split": "val"},
            "h_oracle": oracle,
            "h_fixed": fixed,
            "h_softmax5": fixed,
            "shots": {"rule": "many > 100, medium 20..100, few < 20", "split": "train"},
        },
        "summary": summary,
        "validation": {"accuracy": 0.6, "ece": 0.1},
        "per_domain": {},
        "per_class": per_class,
        "pairs": {
            "accuracy": accuracy.tolist(),
            "images": [[50] * len(CLASSES)] * len(DOMAINS),
            "seen": task.seen_in_domain.tolist(),
        },
    }


def a_journal(rng: np.random.Generator, steps: int = 60, seconds: float = 0.02) -> str:
    lines: list[dict[str, Any]] = []
    for step in range(1, steps + 1):
        ce = 3 * np.exp(-step / 25) + 0.1 * rng.random()
        terms = {"ce": ce, "z2s": ce / 3}
        line = {"kind": "step", "step": step, "epoch": 0, "lr": 0.1, "loss": ce + 0.1 * ce / 3, "terms": terms}
        lines.append({**line, "seconds": 9.0 if step == 1 else seconds})  # the first step warms up
        if step % 10 == 0:
            accuracy = 0.7 - 0.5 * np.exp(-step / 20) + 0.02 * rng.random()
            lines.append({"kind": "validation", "step": step, "epoch": 0, "accuracy": accuracy, "best": True})
    return "".join(json.dumps(line) + "\n" for line in lines)


def write_run(
    root: Path,
    method: str,
    held_out: str | None = "photo",
    seed: int = 0,
    acc_u: float | None = 0.5,
    *,
    dataset: str = "toy",
    folder: str = "",
    summary: dict[str, float | None] | None = None,
    config: dict[str, dict[str, Any]] | None = None,
    commit: str = "abc",
    parameters: int = 12345,
    seconds: float = 0.02,
) -> Path:
    """Write one finished run below `root` and return its path; `summary` and `config` replace entries."""
    safe = "".join(letter if letter.isalnum() else "-" for letter in method)
    path = root / (folder or f"{dataset}-{safe}-{held_out}-{seed}")
    run, task = RunDirectory(path), a_task(held_out, dataset)
    rng = np.random.default_rng([seed, len(method)])
    tables: dict[str, dict[str, Any]] = {
        "method": {"name": method, "criterion": method},
        "data": {"root": "data/toy", "held_out": held_out or "", "size": 32, "batch": 16},
        "backbone": {"name": "small"},
        "optimizer": {"lr": 0.1},
        "schedule": {"epochs": 2, "steps_per_epoch": 30},
        "run": {"seed": seed},
    }
    run.write_config({name: {**table, **(config or {}).get(name, {})} for name, table in tables.items()})
    run.write_task(task)
    command = f"ltds train --set method.name={method} --out {path.name}"
    versions = {"ltds": "0.1.0", "torch": "2.6", "commit": commit}
    run.write_environment({**versions, "command": command, "parameters": parameters})
    run.journal_file.write_text(a_journal(rng, seconds=seconds))
    run.write_metrics(some_metrics(task, {**a_summary(acc_u), **(summary or {})}, rng))
    run.mark_done()
    return path


def write_grid(root: Path) -> None:
    """agg and dc, held out photo and sketch, seeds 0 and 1."""
    acc_u = {
        ("agg", "photo"): (0.40, 0.44),
        ("agg", "sketch"): (0.20, 0.22),
        ("dc", "photo"): (0.50, 0.52),
        ("dc", "sketch"): (0.21, 0.25),
    }
    for (method, held_out), values in acc_u.items():
        for seed, value in enumerate(values):
            write_run(root, method, held_out, seed, value)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def make_run(runs: Path) -> MakeRun:
    return partial(write_run, runs)


@pytest.fixture
def grid(runs: Path) -> Collection:
    write_grid(runs)
    return collect([runs])


@pytest.fixture(scope="session")
def report_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the grid, of a second dataset with a hostile method name, and of an unfinished run."""
    folder = tmp_path_factory.mktemp("page")
    write_grid(folder / "runs")
    write_run(folder / "runs", "<script>alert(1)</script>", dataset='other "&" <b>')
    (write_run(folder / "runs", "late") / "DONE").unlink()
    out = folder / "out" / "report.html"
    write_text(out, render_page(collect([folder / "runs"])))
    return out


def give_images(path: Path, images: list[list[int]]) -> None:
    """Let the run say that it was tested on these images, (domains, classes)."""
    run = RunDirectory(path)
    metrics = run.read_metrics()
    metrics["pairs"]["images"] = images
    run.write_metrics(metrics)


@pytest.fixture(scope="session")
def wide_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of seven methods and three held-out domains, with 4 test images of the class that is open without art.

    The compared methods 6, 0 and 1 have predictions and pictures.
    """
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(0)
    labels, domains = rng.integers(0, 7, 60), np.arange(60) % 3
    table = PredictionTable(rng.normal(size=(60, 8)).astype(np.float32), labels, domains, np.arange(60))
    pictures = {row: rng.integers(0, 255, (24, 24, 3), dtype=np.uint8) for row in range(60)}
    for m in range(7):
        for held_out in DOMAINS:
            for seed in (0, 1) if m < 2 else (0,):
                path = write_run(folder / "runs", f"method {m}", held_out, seed, 0.3 + 0.05 * m)
                give_images(path, [[50] * 7 + [1], [50] * 7 + [1], [50] * 7 + [2]])
                if m in (0, 1, 6):
                    table.save(RunDirectory(path).predictions_file("test"))
                    save_thumbnails(RunDirectory(path).thumbnails_file, pictures)
    out = folder / "report.html"
    write_text(out, render_page(collect([folder / "runs"])))
    return out
