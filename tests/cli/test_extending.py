"""The table in CONTRIBUTING.md is true: each kind of thing can be added from outside the package, in one file."""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import ltds
from command_line import QUICK, Command, refused
from ltds.core.errors import DataError, LtdsWarning

CRITERION = "method.criterion=mine:focal"
OUTSIDE = '''
import shutil
from pathlib import Path

import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import nn

import ltds
from ltds.losses import ClassificationLoss
from ltds.reporting import Drawing


class BirdsConfig(ltds.Settings):
    title: str = "birds"


def build(out: Path, source: Path, config: BirdsConfig = BirdsConfig()) -> ltds.Manifest:
    """Copies a dataset and gives it another name."""
    shutil.copytree(source, out, ignore=shutil.ignore_patterns(".cache"))
    header = (out / "manifest.json").read_text().replace('"toy"', f'"{config.title}"')
    (out / "manifest.json").write_text(header)
    return ltds.Manifest.read(out)


def backbone() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=4), nn.BatchNorm2d(8), nn.Flatten())


def cross_entropy(logits, labels, domains, generator):
    return F.cross_entropy(logits, labels, reduction="none")


class ScaledCrossEntropy(ClassificationLoss):
    class Config(ltds.Settings):
        factor: float = 1.0

    def __init__(self, domain_counts, *, factor):
        super().__init__()
        self.factor = factor

    def forward(self, logits, labels, domains, generator=None):
        return self.factor * F.cross_entropy(logits, labels, reduction="none")


class Scaled(ltds.Method):
    """Cross-entropy times a factor."""

    class Config(ltds.Settings):
        factor: float = 2.0

    def loss(self, batch: ltds.Batch, clock: ltds.Clock) -> ltds.StepLoss:
        loss = F.cross_entropy(self.predict(batch.images).logits, batch.labels)
        return ltds.StepLoss(self.config.factor * loss, {"plain": loss.detach()})


def draw(context):
    runs = sum(len(runs) for runs in context.dataset.rows.values())
    yield Drawing(Figure(), "How many runs", f"There are {runs} runs.", "An empty figure.")
'''


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module of somebody else, which the tests use by name."""
    (tmp_path / "their_things.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("their_things")
    yield module
    monkeypatch.delitem(importlib.sys.modules, "their_things")  # type: ignore[attr-defined]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The file that the blocks of docs/extending.md make up."""
    page = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
    parts = re.findall(r"(?s)```python\n(.*?)```", page.read_text(encoding="utf-8"))
    (tmp_path / "mine.py").write_text("\n\n".join(parts))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mine")
    sys.modules.pop("mine")


def train(command: Command, toy: ltds.Manifest, out: str, *settings: str, method: str = "agg") -> ltds.RunDirectory:
    words = [str(toy.root), "--held-out", "wax", "--out", out, "--method", method, *QUICK]
    done = command("train", *words, *(word for pair in settings for word in ("--set", pair)))
    assert done.returncode == 0, done.stderr
    return ltds.RunDirectory(Path(out))


def losses(run: ltds.RunDirectory, name: str = "loss") -> list[float]:
    return [{**row, **row.get("terms", {})}[name] for row in run.read_journal() if row["kind"] == "step"]


def test_a_dataset(outside: ModuleType, command: Command, toy: ltds.Manifest) -> None:
    words = ["data", "build", "their_things:build", "--source", str(toy.root)]
    done = command(*words, "--out", "birds", "--set", "title=swans")
    assert done.returncode == 0, done.stderr
    assert "swans: " in done.stderr
    made = ltds.Manifest.read(Path("birds"))
    assert (made.name, len(made)) == ("swans", len(toy))
    train(command, made, "run")
    refused(command(*words, "--out", "other", "--set", "titel=swans"), "Did you mean 'title'?")
    again = command(*words, "--out", "birds", "--set", "title=geese")
    assert again.returncode == 0, again.stderr
    assert "'birds' holds a dataset already, which is read and not built again" in again.stderr
    assert "swans: " in again.stderr


def test_a_dataset_is_built_once(mine: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ltds.build_data("mine:build", out=tmp_path / "shapes")
    assert ltds.build_data("mine:build", out=tmp_path / "shapes").checksum == made.checksum
    monkeypatch.setattr(mine, "build", lambda out: None)
    with pytest.raises(DataError, match=r"'mine:build' returns to be a ltds\.Manifest, but got a NoneType"):
        ltds.build_data("mine:build", out=tmp_path / "nothing")


def test_a_method(outside: ModuleType, command: Command, toy: ltds.Manifest) -> None:
    run = train(command, toy, "run", "method.factor=3", method="their_things:Scaled")
    plain = losses(run, "plain")
    assert losses(run) == pytest.approx([3 * value for value in plain], rel=1e-5)
    (prediction,) = ltds.load_model(run.path, trust=["their_things"]).predict([toy.root / toy.paths[0]])
    assert prediction.label in (*toy.classes, "unknown")
    assert "Cross-entropy times a factor." in command("methods", "their_things:Scaled").stdout
    ltds.load_model(run.path, trust=["their_things"]).export(Path("model"))
    card = Path("model", "README.md").read_text()
    assert 'ltds.load_model("THIS_FOLDER", trust=["their_things"])' in card
    assert "or `ltds predict THIS_FOLDER IMAGES`, which asks for the same trust." in card
    checksum = run.read_environment()["code"]["their_things"]
    assert f"the module `their_things` (SHA-256 of its file at the export: {checksum}), which is not included." in card


FAULTY = """
import ltds


class Divides(ltds.Method):
    class Config(ltds.Settings):
        pass

    def loss(self, batch, clock):
        return ltds.StepLoss(1 / 0)


def build(out):
    out.joinpath("missing", "file").read_text()
"""


def test_an_error_in_their_code_is_not_called_a_fault_in_ltds(
    command: Command, toy: ltds.Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_faults.py").write_text(FAULTY)
    monkeypatch.syspath_prepend(tmp_path)
    words = [str(toy.root), "--held-out", "wax", "--out", "run", "--method", "their_faults:Divides", *QUICK]
    for done, line, where, error in (
        (command("train", *words), 10, "loss", "ZeroDivisionError: division by zero"),
        (command("data", "build", "their_faults:build", "--out", "x"), 14, "build", "FileNotFoundError: [Errno 2]"),
    ):
        assert done.returncode == 1
        assert "Traceback" in done.stderr
        last = done.stderr.strip().splitlines()[-1]
        place = f"'{tmp_path / 'their_faults.py'}', line {line}, in {where}"
        assert last.startswith(f"ltds: the error is in your code, not in ltds: {place}: {error}")
    sys.modules.pop("their_faults")


def test_a_criterion(outside: ModuleType, command: Command, toy: ltds.Manifest) -> None:
    ours = train(command, toy, "ours", "method.criterion=ce")
    theirs = train(command, toy, "theirs", "method.criterion=their_things:cross_entropy")
    assert losses(theirs) == losses(ours)
    assert theirs.read_metrics()["summary"] == ours.read_metrics()["summary"]


def test_a_criterion_with_a_setting(outside: ModuleType, command: Command, toy: ltds.Manifest) -> None:
    name = "method.criterion=their_things:ScaledCrossEntropy"
    plain, scaled = train(command, toy, "plain", name), train(command, toy, "scaled", name, "method.criterion.factor=3")
    assert losses(scaled)[0] == pytest.approx(3 * losses(plain)[0], rel=1e-5)
    assert scaled.read_config()["method"]["criterion"]["factor"] == 3
    (prediction,) = ltds.load_model(scaled.path, trust=["their_things"]).predict([toy.root / toy.paths[0]])
    assert prediction.label in (*toy.classes, "unknown")
    words = ["train", str(toy.root), "--held-out", "wax", "--out", "other", "--method", "agg", *QUICK, "--set", name]
    refused(command(*words, "--set", "method.criterion.facto=3"), "has no setting 'facto'. Did you mean 'factor'?")
    refused(command(*words, "--set", "method.criterion.tau=3"), "tau has no effect with criterion 'their_things:Scaled")


def test_a_backbone(outside: ModuleType, command: Command, toy: ltds.Manifest) -> None:
    run = train(command, toy, "run", "backbone.name=their_things:backbone")
    assert run.read_config()["backbone"]["name"] == "their_things:backbone"
    assert run.done


def test_a_figure(outside: ModuleType, command: Command, toy: ltds.Manifest) -> None:
    train(command, toy, "runs/a")
    train(command, toy, "runs/b", method="dc")
    written = ltds.report("runs", out="page.html", figures="figures", extra_figures=[outside.draw])
    assert Path("page.html") in written
    page = Path("page.html").read_text()
    assert "How many runs" in page
    assert "There are 2 runs." in page
    assert any(file.name.endswith("how-many-runs.png") for file in written)


def test_a_figure_that_fails_is_named_on_the_page(
    outside: ModuleType, command: Command, toy: ltds.Manifest, tmp_path: Path
) -> None:
    train(command, toy, "runs/a")

    def broken(context):
        yield from outside.draw(context)
        yield from outside.draw(None)

    def nothing(context):
        return None

    def text(context):
        return ["a drawing"]

    with pytest.warns(LtdsWarning, match="'broken' of 'toy' is missing or incomplete"):
        written = ltds.report("runs", out="page.html", figures="figures", extra_figures=[broken, nothing, text])
    assert Path("figures/captions.txt") in written
    page = Path("page.html").read_text()
    assert "There are 1 runs." in page
    for error in ("AttributeError: ", "TypeError: ", "it yields a str instead of a Drawing"):
        assert page.count(error) == (2 if error == "TypeError: " else 1)


def test_the_file_of_the_page(mine: ModuleType, command: Command) -> None:
    done = command("data", "build", "mine:build", "--out", "data/shapes", "--set", "size=48")
    assert done.returncode == 0, done.stderr
    shapes = ltds.Manifest.read(Path("data/shapes"))
    assert (shapes.name, len(shapes)) == ("shapes", 48)
    runs = (
        ("a", "mine:Focal", "method.gamma=0"),
        ("b", "agg"),
        ("c", "agg", CRITERION),
        ("d", "mine:SlowCopy"),
        ("e", "agg", "method.criterion=mine:FocalLoss", "method.criterion.gamma=2"),
    )
    for name, method, *more in runs:
        settings = [word for pair in more for word in ("--set", pair)]
        words = [str(shapes.root), "--held-out", "south", "--out", f"runs/{name}", "--method", method, *QUICK]
        done = command("train", *words, *settings)
        assert done.returncode == 0, done.stderr
    trained = [losses(ltds.RunDirectory(Path("runs", name))) for name in "bce"]
    assert trained[0] != trained[1] == trained[2]
    assert "how much less a well classified sample counts" in command("methods", "mine:Focal").stdout
    ltds.report("runs", out="page.html", extra_figures=[mine.draw])
    assert "Runs of each method:" in Path("page.html").read_text()


def test_the_embeddings_of_the_page(mine: ModuleType, command: Command, toy: ltds.Manifest) -> None:
    hidden = train(command, toy, "runs/hidden", method="mine:Named")
    assert ltds.ClassEmbeddings.from_table(hidden.embeddings_file).names == tuple(n for n in toy.classes if n != "fox")
    assert all(0 <= value <= 2 for value in losses(hidden, "named"))
    ltds.report("runs", out="table.md")
    assert "§" not in Path("table.md").read_text(encoding="utf-8")
    train(command, toy, "runs/open", "method.hide_open_names=false", method="mine:Named")
    ltds.report("runs/open", out="table.md")
    assert "| mine:Named § |" in Path("table.md").read_text(encoding="utf-8")


def test_the_loss_of_the_page(mine: ModuleType) -> None:
    logits, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
    right = [math.exp(2) / (math.exp(2) + 1), 1 / (1 + math.exp(1))]
    slow = [-((1 - p) ** 2) * math.log(p) for p in right]
    assert mine.focal_loss(logits, labels).tolist() == pytest.approx(slow, rel=1e-4)
    assert mine.focal(logits, labels, labels, None).tolist() == pytest.approx(slow, rel=1e-4)
