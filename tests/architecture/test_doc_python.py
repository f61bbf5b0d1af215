"""Every block of Python in README.md and docs/ runs: as it is printed, on small data and with few steps.

Those of docs/extending.md are one file, which tests/cli/test_extending.py uses.
"""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from documents import BLOCKS, Block
from PIL import Image

import ltds
from ltds.bestiary import NAMES, render
from ltds.core.rng import numpy_generator

SMALL_BESTIARY = {"n_max": 4, "n_min": 1, "val_per_pair": 1, "test_per_pair": 1}
SHORT = {
    "schedule.epochs": 1,
    "schedule.steps_per_epoch": 1,
    "data.batch_size": 8,
    "data.size": 16,
    "backbone.name": "tiny",
    "run.threads": 1,
}
Values = dict[str, Any]
Run = Callable[..., Values]


def block_of(page: str, text: str) -> Block:
    """The block of this page that contains the text."""
    (block,) = (b for b in BLOCKS if b.page == page and b.language == "python" and text in b.text)
    return block


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a block in an empty folder; data are small and training is short, everything else is as printed."""
    train, build, benchmark = ltds.train, ltds.build_data, ltds.benchmark

    def short_train(*args: Any, budget: object = None, settings: Mapping[str, Any] | None = None, **more: Any) -> Any:
        return train(*args, settings={**SHORT, **(settings or {})}, **more)

    def short_benchmark(**options: Any) -> Any:
        return benchmark(**options, held_out="woodblock", settings=SHORT)

    def small_build(name: str, **options: Any) -> Any:
        return build(name, **options, settings=SMALL_BESTIARY)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LTDS_DATA", "data")
    monkeypatch.setattr(ltds, "train", short_train, raising=False)
    monkeypatch.setattr(ltds, "benchmark", short_benchmark, raising=False)
    monkeypatch.setattr(ltds, "build_data", small_build, raising=False)

    def call(block: Block, given: Mapping[str, Any] | None = None) -> Values:
        (tmp_path / "block.py").write_text(block.text, encoding="utf-8")
        return runpy.run_path(str(tmp_path / "block.py"), dict(given or {}))

    return call


@pytest.fixture(scope="module")
def bestiary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Bestiary, which blocks find in data/bestiary."""
    return ltds.build_data("bestiary", out=tmp_path_factory.mktemp("bestiary") / "b", settings=SMALL_BESTIARY).root


@pytest.fixture(scope="module")
def trained(toy: ltds.Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of ltds."""
    out = tmp_path_factory.mktemp("trained") / "run"
    return ltds.train(toy, method="ltds", held_out="wax", out=out, settings=SHORT).path


def photos(folder: Path) -> None:
    """Drawn images of two sites and two kinds, sorted as domain/class."""
    for domain, site in enumerate(("north", "south")):
        for kind in (0, 1):
            (folder / site / NAMES[kind]).mkdir(parents=True)
            for seed in range(8):
                picture = Image.fromarray(np.asarray(render(kind, domain, size=24, seed=seed)))
                picture.save(folder / site / NAMES[kind] / f"{seed}.jpg")


def link(data: Path) -> None:
    Path("data").mkdir()
    Path("data/bestiary").symlink_to(data)


def test_readme(run: Run, bestiary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link(bestiary)
    run(block_of("README.md", "import ltds"))
    accuracy, *predictions = capsys.readouterr().out.splitlines()
    assert 0 <= float(accuracy) <= 1
    assert len(predictions) == 3
    assert Path("report.html").stat().st_size > 10_000


def test_quickstart(run: Run, toy: ltds.Manifest, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = block_of("docs/quickstart.md", "load_model")
    image = Path("data/bestiary/images/test/woodblock/tiger/0000.png")
    assert str(image) in block.text
    image.parent.mkdir(parents=True)
    shutil.copy(toy.root / toy.paths[0], image)
    shutil.copytree(trained, "runs/ltds")
    run(block)
    label, confidence = capsys.readouterr().out.split()
    assert label in (*toy.classes, "unknown")
    assert 0 <= float(confidence) <= 1


def test_use_a_model(run: Run, toy: ltds.Manifest, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.jpg", "b.png"):
        Image.open(toy.root / toy.paths[0]).save(name)
    shutil.copytree(trained, "runs/ltds")
    run(block_of("docs/use-a-model.md", "load_model"))
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_classifier(run: Run) -> None:
    noise = numpy_generator(0, "docs").standard_normal((120, 5)).astype(np.float32)
    labels, sites = np.arange(120) % 3, np.arange(120) // 3 % 2
    vectors = noise + 4 * np.eye(5, dtype=np.float32)[labels]
    given = {"X": vectors, "y": np.array(["a", "b", "c"])[labels], "sites": sites, "X_new": vectors[:4]}
    model = run(block_of("docs/use-a-model.md", "LongTailClassifier"), given)["model"]
    assert set(model.predict(vectors)) <= {"a", "b", "c", "unknown"}


def test_own_data(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    photos(Path("photos"))
    Path("new").mkdir()
    shutil.copy(Path("photos", "north", NAMES[0], "0.jpg"), "new/1.jpg")
    values = run(block_of("docs/own-data.md", "ltds.check"))
    assert values["found"].verdict
    assert values["run"].path == Path("runs/photos/final")
    assert "estimate-south" in capsys.readouterr().out


def test_own_embeddings(run: Run, bestiary: Path) -> None:
    link(bestiary)
    run(block_of("docs/semantics.md", "write_embeddings"))
    made = ltds.RunDirectory("runs/mine")
    assert made.done
    assert np.load(made.embeddings_file)["vectors"].shape == (50, 64)


def test_two_ranks(run: Run, bestiary: Path) -> None:
    link(bestiary)
    run(block_of("docs/many-devices.md", "ranks=2"))
    assert ltds.RunDirectory(Path("runs/two")).done


def test_benchmark(run: Run, bestiary: Path) -> None:
    link(bestiary)
    runs = run(block_of("docs/benchmarks.md", "ltds.benchmark"))["runs"]
    assert len(runs) == 9
    assert all(made.done for made in runs)
    assert Path("report.html").stat().st_size > 10_000


def test_stored_predictions(run: Run, toy: ltds.Manifest, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(trained, "runs/first")
    run(block_of("docs/reference/files.md", "predictions"))
    predicted, true = capsys.readouterr().out.split()
    assert {predicted, true} <= set(toy.classes)


def test_style(run: Run) -> None:
    values = run(block_of("docs/styles.md", "load_style"))
    assert values["pictures"].shape == values["images"].shape
    assert 0 <= values["pictures"].min() < values["pictures"].max() <= 1


def test_criterion(run: Run) -> None:
    focal = run(block_of("docs/methods/agg.md", "def focal"))["focal"]
    logits, labels = torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 0])
    sure, wrong = focal(logits, labels, None, None).tolist()
    chance = torch.sigmoid(torch.tensor(2.0)).item()
    assert sure == pytest.approx(-((1 - chance) ** 2) * np.log(chance), rel=1e-5)
    assert wrong == pytest.approx(-(chance**2) * np.log(1 - chance), rel=1e-5)


def test_backbone(run: Run) -> None:
    network = run(block_of("docs/backbones.md", "def make"))["make"]()
    assert network(torch.rand(2, 3, 32, 32)).shape == (2, network.out_features)


def test_every_block_is_run_here_or_by_the_tests_of_extending() -> None:
    pages = sorted(block.page for block in BLOCKS if block.language == "python" and "extending" not in block.page)
    assert pages == [
        "README.md",
        "docs/backbones.md",
        "docs/benchmarks.md",
        "docs/many-devices.md",
        "docs/methods/agg.md",
        "docs/own-data.md",
        "docs/quickstart.md",
        "docs/reference/files.md",
        "docs/semantics.md",
        "docs/styles.md",
        "docs/use-a-model.md",
        "docs/use-a-model.md",
    ], "add a test of the new block above, and its page to this list"
