"""Exports: a folder that loads without data and run, graphs that compute the same, nothing half-written."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, features
from safetensors.torch import save_file

import ltds
from ltds.core.errors import CheckpointError, ConfigError, DataError, ExportError
from ltds.core.runs import RunDirectory
from ltds.core.text import score_text
from ltds.data.features import write_features
from ltds.data.image_files import SUFFIXES
from ltds.data.manifest import Manifest
from ltds.engine.export import HALF_LIMIT, LIMIT
from ltds.engine.export.card import model_card
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.model import ImagePrediction, Model
from ltds.engine.model_record import UnknownRule
from ltds.engine.predict_files import find_images
from ltds.engine.preprocessing import FeaturePreprocessing
from ltds.engine.stored_model import checked_scores
from ltds.nn.resnet import BasicBlock, ResNet
from toy import recorded, toy_session

METHODS = ["agg", "la-posthoc", "tau-norm", "ncm", "lws", "cumix-embeddings", "daml", "epi-fcr", "mixstyle", "ltds"]


def trained(manifest: Manifest, path: Path, name: str = "agg", **groups: dict[str, object]) -> RunDirectory:
    session = toy_session(manifest, name, **groups)
    run = recorded(session, path)
    train(session, run)
    return run


@pytest.fixture(scope="module")
def run(toy: Manifest, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return trained(toy, tmp_path_factory.mktemp("agg") / "run")


@pytest.fixture
def model(run: RunDirectory) -> Model:
    return load_model(run.path, device="cpu")


@pytest.fixture(scope="module")
def exported(run: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "model"
    load_model(run.path, device="cpu").export(folder)
    return folder


def images_of(toy: Manifest, count: int = 6) -> list[Path]:
    return [toy.root / toy.paths[row] for row in toy.rows("test")[:count]]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_exported_and_computes_the_same(toy: Manifest, tmp_path: Path, method: str) -> None:
    run = trained(toy, tmp_path / "run", method)
    model = load_model(run.path, device="cpu")
    logits = model.logits(images_of(toy))
    result = model.export(tmp_path / "onnx", to="onnx", check=images_of(toy))
    assert result.difference <= 1e-5 < LIMIT
    assert result.checked_on == "6 inputs"
    assert model.export(tmp_path / "model").difference == 0
    shutil.rmtree(run.path)
    np.testing.assert_array_equal(load_model(tmp_path / "model", device="cpu").logits(images_of(toy)), logits)


@pytest.mark.parametrize("method", ["ncm", "daml"])  # both have a flag; torch.export takes seconds
@pytest.mark.skipif(torch.__version__.startswith("2.6."), reason="it cannot record daml for batches of any size")
def test_torch_export_computes_the_same(toy: Manifest, tmp_path: Path, method: str) -> None:
    model = load_model(trained(toy, tmp_path / "run", method).path, device="cpu")
    result = model.export(tmp_path / "pt2", to="torch-export", check=images_of(toy))
    assert result.difference <= 1e-5
    assert result.files == ("README.md", "model.json", "model.pt2")
    with zipfile.ZipFile(tmp_path / "pt2" / "model.pt2") as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    assert b".py" not in content, "no path of this machine"
    (example,) = torch.export.load(tmp_path / "pt2" / "model.pt2").example_inputs[0]
    assert not example.any(), "no image that it was checked with"


def test_a_model_directory_says_the_same(toy: Manifest, run: RunDirectory, model: Model, tmp_path: Path) -> None:
    result = model.export(tmp_path / "model")
    assert result.files == ("README.md", "model.json", "model.safetensors", "seen.npy")
    again = load_model(tmp_path / "model", device="cpu")
    assert again.predict(images_of(toy)) == model.predict(images_of(toy))
    assert again.task.to_dict() == model.task.to_dict()
    assert again.record.unknown == model.record.unknown
    text = (tmp_path / "model" / "model.json").read_text()
    assert str(toy.root) not in text
    content = json.loads(text)
    assert content["classes"] == list(toy.classes)
    assert content["open_classes"] == ["fox"]
    accuracy = run.read_metrics()["per_domain"]["wax"]["accuracy"]
    assert content["scores"]["per_domain"]["wax"]["accuracy"] == accuracy
    assert content["scores"]["per_shot"]["few"] == {
        "accuracy": run.read_metrics()["summary"]["few"],
        "known_called_unknown": run.read_metrics()["summary"]["known_called_unknown_few"],
        "named_right": run.read_metrics()["summary"]["named_right_few"],
        "classes": 5,
        "images": 45,
    }
    second = again.export(tmp_path / "second")
    assert (second.folder / "model.json").read_text() == text


def test_the_card_gives_results_with_their_images(run: RunDirectory, model: Model, tmp_path: Path) -> None:
    model.export(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    wax = run.read_metrics()["per_domain"]["wax"]
    shown = f"| wax (never trained on) | {100 * wax['accuracy']:.1f} % | {100 * wax['macro_accuracy']:.1f} % | 15 |"
    assert shown in card
    assert "Trained on 38 images of 5 classes of the dataset toy, from 2 domains: ink (22), oil (16)." in card
    assert "so never named: fox" in card
    assert "Where a number rests on fewer than 30 images, it says little." in card
    assert f"is below {model.threshold:.4g}." in card
    named, called, confidence = (
        f"{100 * wax[name]:.1f} %" for name in ("named_right", "known_called_unknown", "mean_confidence")
    )
    assert f"| 15 | {confidence} | {called} | {named} | {100 * wax['auroc_deployed']:.1f} % |" in card
    assert f"its mean confidence was {confidence} against {100 * wax['accuracy']:.1f} % right on wax." in card
    assert f"| {wax['open_images']} of 1 class |" in card
    assert "- It was tested on 1 class unknown to it: it may notice others far more or far less often." in card
    right = run.read_metrics()["choices"]["h_fixed"]["images"]
    assert model.record.unknown.images == right < 30
    assert f"**The threshold for 'unknown' is a guess: it rests on {right} validation images that" in card


def test_the_card_says_only_what_is_so(model: Model) -> None:
    """No threshold, no results, a source domain without training images, test images that were trained on."""
    stored = model.stored
    counts = stored.task.counts.copy()
    counts[1] = 0
    site = replace(stored, task=replace(stored.task, counts=counts, trained_in_test=7))
    card = model_card(site, "safetensors", 0.0, "5 random inputs")
    assert "from 1 domain: ink (22)." in card
    assert "| oil (never trained on) |" in card
    assert "7 test images of the trained domains were training images, too." in card
    silent = replace(stored.record, unknown=replace(stored.record.unknown, threshold=None))
    never = replace(stored, scores={}, record=silent)
    card = model_card(never, "safetensors", 0.0, "5 random inputs")
    assert "This model names the class of an image, one of 5.\n" in card
    assert "Never: there was no correctly classified validation image" in card
    assert "- It was not tested." in card
    few, enough = (replace(stored.record.unknown, images=images) for images in (29, 30))
    assert (few.doubt == "", enough.doubt == "") == (False, True)
    sure = replace(stored, record=replace(stored.record, unknown=enough))
    card = model_card(sure, "safetensors", 0.0, "5 random inputs")
    assert "It was chosen on 30 correctly classified validation images." in card
    assert "guess" not in card
    vectors = replace(stored, record=replace(stored.record, preprocessing=FeaturePreprocessing(7, 1.0)))
    assert 'names the class of a feature vector, one of 5, or says "unknown".' in model_card(vectors, "onnx", 0.0, "it")


def test_the_card_of_a_model_without_the_later_numbers(model: Model) -> None:
    """Metrics from before the shares of "unknown" were computed, without images of unknown classes."""
    before = ("accuracy", "macro_accuracy", "auroc", "known_images", "open_images")
    rows = {d: {n: row[n] for n in before} | {"open_images": 0} for d, row in model.stored.scores["per_domain"].items()}
    shots = {
        s: {n: row[n] for n in ("accuracy", "classes", "images")} for s, row in model.stored.scores["per_shot"].items()
    }
    scores = {"summary": {}, "per_domain": rows, "per_shot": shots}
    assert checked_scores(scores) == scores
    rule = UnknownRule(**{n: v for n, v in asdict(model.record.unknown).items() if n != "images"})
    old = replace(model.stored, scores=scores, record=replace(model.record, unknown=rule))
    card = model_card(old, "safetensors", 0.0, "5 random inputs")
    assert "| domain | accuracy | macro accuracy | images |\n" in card
    assert "| classes with | macro accuracy | classes | images |\n" in card
    assert "not tested on images of unknown classes: how often it notices one is not known." in card
    assert "guess" not in card
    assert "validation images." not in card


@pytest.mark.parametrize("images", [-1, 2.5, True, "12"])
def test_a_rule_chosen_on_no_number_of_images_is_refused(model: Model, images: Any) -> None:
    with pytest.raises(ValueError, match="which is no number of them"):
        replace(model.record.unknown, images=images)


SHIELD = "import sys, runpy; sys.modules['ltds'] = sys.modules['torch'] = None; sys.argv = sys.argv[1:]; "


def run_script(folder: Path, *words: object) -> list[list[str]]:
    """The lines of predict_onnx.py, run where neither ltds nor torch can be imported."""
    code = SHIELD + "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code, str(folder / "predict_onnx.py"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_the_script_next_to_the_onnx_file_predicts_without_ltds(toy: Manifest, model: Model, tmp_path: Path) -> None:
    model.export(tmp_path / "onnx", to="onnx")
    files = images_of(toy, 12)
    lines = run_script(tmp_path / "onnx", *files)
    assert [line[0] for line in lines] == [str(file) for file in files]
    for line, answer in zip(lines, model.predict(files), strict=True):
        assert line[1] == answer.label
        assert float(line[2]) == pytest.approx(answer.confidence, abs=1e-4)


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_the_script_names_no_class_for_nan(
    toy: Manifest, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: float | None
) -> None:
    """NaN is not below a threshold either."""
    onnxruntime = pytest.importorskip("onnxruntime")
    logits = np.array([[0, 9, 0, 0, 0, 0], [np.nan, 1, 2, 0, 0, 0]], np.float32)
    rows = iter(logits[:, None])
    session = SimpleNamespace(run=lambda *_: ((row := next(rows)), row, None))
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *_, **__: session)
    content = json.loads((exported / "model.json").read_text())
    content["unknown"]["threshold"] = threshold
    (tmp_path / "model.json").write_text(json.dumps(content))
    script = resources.files("ltds.engine.export.standalone").joinpath("predict_onnx.py").read_bytes()
    (tmp_path / "predict_onnx.py").write_bytes(script)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = runpy.run_path(str(tmp_path / "predict_onnx.py"))["main"]([str(file) for file in images_of(toy, 2)])
    good, bad = images_of(toy, 2)
    assert (code, out.getvalue().split("\t")[:2]) == (1, [str(good), "bee"])
    assert out.getvalue().count("\n") == 1
    assert err.getvalue() == f"Skipped {bad}: the model computes NaN or infinity\n"


def test_an_export_carries_the_threshold_of_the_user(toy: Manifest, run: RunDirectory, tmp_path: Path) -> None:
    files = images_of(toy, 12)
    answers = load_model(run.path, device="cpu").predict(files)
    scores = sorted(answer.score for answer in answers)
    threshold = float(np.mean(scores[4:6]))
    ltds.export(run.path, tmp_path / "model", threshold=threshold)
    ltds.export(run.path, tmp_path / "onnx", to="onnx", threshold=threshold)
    model = load_model(tmp_path / "model", device="cpu")
    assert model.threshold == threshold
    assert [answer.unknown for answer in model.predict(files)] == [answer.score < threshold for answer in answers]
    assert [line[1] == "unknown" for line in run_script(tmp_path / "onnx", *files)] == [
        answer.score < threshold for answer in answers
    ]
    before = load_model(run.path, device="cpu").record.unknown
    described = json.loads((tmp_path / "model" / "model.json").read_text())["unknown"]
    assert (described["score"], described["temperature"]) == (before.score, before.temperature)
    assert (described["threshold"], described["split"]) == (threshold, None)
    assert "chosen by the user, after the model had been tested with another one" in described["rule"]
    card = (tmp_path / "model" / "README.md").read_text()
    assert f"is below {score_text(threshold)}. Rule: {described['rule']}.\n" in card
    assert load_model(run.path, device="cpu").threshold == before.threshold, "the run is as it was"


def labels_with_a_class_called_unknown(folder: Path, answers: Sequence[ImagePrediction]) -> list[str]:
    """Rename the class of the surest answer in model.json, and reject the less sure ones; returns the labels to expect.

    The threshold lies in the widest gap between scores, which are not exactly those of the ONNX file.
    """
    scores = np.sort([answer.score for answer in answers])
    gap = int(np.argmax(np.diff(scores)))
    threshold = float(scores[gap : gap + 2].mean())
    renamed = max(answers, key=lambda answer: answer.score).classes[0][0]
    content = json.loads((folder / "model.json").read_text())
    content["classes"] = ["unknown" if name == renamed else name for name in content["classes"]]
    content["unknown"]["threshold"] = threshold
    (folder / "model.json").write_text(json.dumps(content))
    named = [answer.classes[0][0] for answer in answers]
    shown = ["unknown (a class)" if name == renamed else name for name in named]
    return ["unknown" if a.score < threshold else label for a, label in zip(answers, shown, strict=True)]


def test_the_script_tells_a_class_called_unknown_from_a_rejection(toy: Manifest, model: Model, tmp_path: Path) -> None:
    model.export(tmp_path / "onnx", to="onnx")
    files = images_of(toy, 12)
    expected = labels_with_a_class_called_unknown(tmp_path / "onnx", model.predict(files))
    assert {"unknown", "unknown (a class)"} <= set(expected)
    assert [line[1] for line in run_script(tmp_path / "onnx", *files)] == expected


def photo(file: Path, width: int, height: int, mode: str = "RGB", **options: object) -> Path:
    """A picture with smooth and sharp parts."""
    y, x = np.mgrid[0:height, 0:width]
    channels = [128 + 100 * np.sin(x / 9), 128 + 100 * np.cos(y / 7), 255 * ((x // 16 + y // 16) % 2)]
    Image.fromarray(np.stack(channels, axis=2).astype(np.uint8)).convert(mode).save(file, **options)
    return file


def deep(file: Path, **options: object) -> Path:
    """Grey of 16 bits."""
    Image.fromarray(np.linspace(0, 65535, 90 * 60).astype(np.uint16).reshape(60, 90)).save(file, **options)
    return file


def test_the_script_prepares_images_as_evaluation_does(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, data={"root": str(toy.root), "held_out": "wax", "size": 56, "batch_size": 8})
    recorded_run = recorded(session, tmp_path / "run")
    train(session, recorded_run)
    model = load_model(tmp_path / "run", device="cpu")
    model.export(tmp_path / "onnx", to="onnx")
    turned = Image.Exif()
    turned[274] = 6
    files = [
        photo(tmp_path / "large.jpg", 900, 700),
        photo(tmp_path / "wide.png", 300, 80),
        photo(tmp_path / "small.png", 30, 40),
        photo(tmp_path / "turned.jpg", 400, 300, exif=turned),
        photo(tmp_path / "grey.png", 100, 90, "L"),
        photo(tmp_path / "turned.png", 90, 60, "RGBA", exif=turned),
        photo(tmp_path / "turned.tif", 90, 60, exif=turned),
        photo(tmp_path / "turned-grey.tif", 90, 60, "L", exif=turned),
        deep(tmp_path / "deep.png"),
        deep(tmp_path / "deep.tif"),
        deep(tmp_path / "turned-deep.tif", exif=turned),
        photo(tmp_path / "wavelets.jp2", 90, 60),
        photo(tmp_path / "plain.ppm", 90, 60),
        photo(tmp_path / "plain.pgm", 90, 60, "L"),
        *([photo(tmp_path / "new.avif", 90, 60)] if features.check("avif") else []),
    ]
    code = SHIELD + (
        "import numpy; names = runpy.run_path(sys.argv[0]); "
        "numpy.save(sys.argv[1], numpy.stack([names['network_input'](f) for f in sys.argv[2:]]))"
    )
    script, out = str(tmp_path / "onnx" / "predict_onnx.py"), str(tmp_path / "inputs.npy")
    subprocess.run([sys.executable, "-c", code, script, out, *map(str, files)], check=True)
    ours = model.record.preprocessing(files).numpy()
    levels = np.abs(np.load(out) - ours) * 255 * np.array([0.229, 0.224, 0.225])[:, None, None]
    assert levels.max() <= 1.01, "at most one of 256 brightness levels"
    assert levels.mean() < 0.02


def test_the_script_names_images_that_it_cannot_read_and_goes_on(toy: Manifest, model: Model, tmp_path: Path) -> None:
    model.export(tmp_path / "onnx", to="onnx")
    Image.fromarray(np.zeros((8, 8), np.float32)).save(tmp_path / "height.tif")
    Image.fromarray(np.zeros((1, 8), np.int32) + 2**20).save(tmp_path / "long.tif")
    Image.new("1", (9500, 9500)).save(tmp_path / "huge.png")
    (tmp_path / "text.jpg").write_bytes(b"no image")
    (good,) = images_of(toy, 1)
    files = [tmp_path / name for name in ("height.tif", "long.tif", "huge.png", "text.jpg", "nosuch.png")]
    command = [sys.executable, str(tmp_path / "onnx" / "predict_onnx.py"), *map(str, files), str(good)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = done.stderr.splitlines()
    assert [line.split(": ")[0] for line in said] == [f"Skipped {file}" for file in files]
    assert "height.tif: 32-bit floats instead of integers in grey, RGB or CMYK. Save it as" in said[0]
    assert "long.tif: values from 1048576 to 1048576, which are more than 16 bits. Save it as" in said[1]
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [str(good)]


def test_the_script_searches_folders_as_ltds_does(toy: Manifest, model: Model, tmp_path: Path) -> None:
    model.export(tmp_path / "onnx", to="onnx")
    photos, picture = tmp_path / "photos", images_of(toy, 1)[0].read_bytes()
    names = [f"one{ending}" for ending in SUFFIXES]
    for name in ("b/z.JPG", "b/c/0.png", "a/1.png", "a.b/2.png", ".hidden.png", ".b/3.png", "notes.txt", *names):
        (photos / name).parent.mkdir(parents=True, exist_ok=True)
        (photos / name).write_bytes(picture)
    (photos / "b" / "up").symlink_to(photos)
    (photos / "gone.png").symlink_to("nowhere")
    (photos / "folder.png").mkdir()
    names = runpy.run_path(str(tmp_path / "onnx" / "predict_onnx.py"))
    found = names["named_files"]([str(photos), "a.jpg"])
    assert found == [*map(str, find_images([photos])), "a.jpg"]
    assert len(found) == len(SUFFIXES) + 6
    script = [sys.executable, str(tmp_path / "onnx" / "predict_onnx.py")]
    done = subprocess.run([*script, str(photos / "folder.png"), str(photos / "a")], capture_output=True, text=True)
    assert done.stdout.startswith(f"{photos}/a/1.png\t")
    assert (done.returncode, done.stderr) == (1, f"Skipped {photos}/folder.png: no image in it or below it\n")
    (photos / "-one.png").write_bytes(picture)
    done = subprocess.run([*script, "-one.png", "one.png"], capture_output=True, text=True, cwd=photos, check=True)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["./-one.png", "one.png"]


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_the_script_says_how_to_use_it(model: Model, tmp_path: Path, word: str) -> None:
    model.export(tmp_path / "onnx", to="onnx")
    script = [sys.executable, str(tmp_path / "onnx" / "predict_onnx.py")]
    asked = subprocess.run([*script, word], capture_output=True, text=True, check=True)
    assert asked.stdout.startswith("usage: predict_onnx.py [-h] IMAGES [IMAGES ...]\n")
    assert "files, and folders that are searched for images" in asked.stdout
    nothing = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "the following arguments are required: IMAGES" in nothing.stderr


def test_the_script_prints_names_that_the_terminal_cannot_show(toy: Manifest, model: Model, tmp_path: Path) -> None:
    model.export(tmp_path / "onnx", to="onnx")
    named = os.fsencode(tmp_path) + b"/caf\xe9.png"
    try:
        Path(os.fsdecode(named)).write_bytes(images_of(toy, 1)[0].read_bytes())
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    command = [sys.executable, str(tmp_path / "onnx" / "predict_onnx.py"), named]
    strict = os.environ | {"PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=strict)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{tmp_path}/caf\\udce9.png\t")


def test_the_script_sends_no_commands_to_the_terminal(toy: Manifest, run: RunDirectory, tmp_path: Path) -> None:
    model = load_model(run.path, device="cpu")
    model.export(tmp_path / "onnx", to="onnx")
    description = tmp_path / "onnx" / "model.json"
    content = json.loads(description.read_text())
    classes = [f"\x1b[2J{name}\u202e" for name in content["classes"]]
    open_classes = [f"\x1b[2J{name}\u202e" for name in content["open_classes"]]
    unknown = {**content["unknown"], "threshold": None}
    content |= {"classes": classes, "open_classes": open_classes, "unknown": unknown}
    description.write_text(json.dumps(content))
    named = tmp_path / "\x1b]0;title\x07 caf\xe9 \u202e\n.png"
    named.write_bytes(images_of(toy, 1)[0].read_bytes())
    command = [sys.executable, str(tmp_path / "onnx" / "predict_onnx.py"), str(named), f"{named}.gone"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shown = f"{tmp_path}/\\x1b]0;title\\x07 caf\xe9 \\u202e\\n.png"
    assert done.stdout.startswith(f"{shown}\t\\x1b[2J")
    assert done.stderr.startswith(f"Skipped {shown}.gone: ")
    for text in (done.stdout, done.stderr):
        assert text.count("\n") == 1
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_model_of_features_is_exported(toy: Manifest, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(toy), 7)).astype(np.float16)
    write_features(tmp_path / "f.npz", vectors, toy.paths)
    data = {"root": str(toy.root), "held_out": "wax", "features": str(tmp_path / "f.npz"), "batch_size": 8}
    from ltds.engine.assemble import assemble
    from ltds.engine.config import resolve

    config = resolve(
        {"data": data, "schedule": {"epochs": 1, "steps_per_epoch": 2}, "run": {"threads": 1, "device": "cpu"}}
    )
    session = assemble(config, toy)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    model = load_model(run.path, device="cpu")
    inputs = vectors[:5].astype(np.float32)
    model.export(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model", device="cpu").logits(inputs), model.logits(inputs))
    assert model.export(tmp_path / "onnx", to="onnx", check=inputs).difference <= 1e-5
    card = (tmp_path / "model" / "README.md").read_text()
    assert "model.predict(vectors)  # an array (N,7)" in card
    assert "ltds predict" not in card
    assert "`python predict_onnx.py vectors.npy` needs numpy and" in (tmp_path / "onnx" / "README.md").read_text()
    np.save(tmp_path / "v.npy", inputs)
    assert [line[1] for line in run_script(tmp_path / "onnx", tmp_path / "v.npy")] == [
        answer.label for answer in model.predict(inputs)
    ]
    check_that_bad_vectors_are_refused(tmp_path / "onnx" / "predict_onnx.py", inputs)
    expected = labels_with_a_class_called_unknown(tmp_path / "onnx", model.predict(inputs))
    assert {"unknown", "unknown (a class)"} <= set(expected)
    assert [line[1] for line in run_script(tmp_path / "onnx", tmp_path / "v.npy")] == expected


def check_that_bad_vectors_are_refused(script: Path, inputs: np.ndarray) -> None:
    hole, file = inputs.copy(), script.with_name("bad.npy")
    hole[3, 2] = np.nan
    for wrong, said in (
        (hole, "Expected finite numbers, but got NaN or infinity in the rows [3]."),
        (inputs[0], "Expected vectors (N,7), but got the shape (7,). For one vector: vector[None]"),
        (inputs[:, :6], "Expected vectors (N,7), but got the shape (5, 6)."),
        (np.full((2, 7), 3e38), "Expected finite logits, but the model computes NaN or infinity in the rows [0, 1]."),
        (np.array(["text"]), f"Expected '{file}' to be a file .npy of numbers (N,7), but got: "),
        (None, "Usage: python predict_onnx.py vectors.npy"),
    ):
        if wrong is not None:
            np.save(file, wrong)
        words = [] if wrong is None else [str(file)]
        done = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(said)
        assert done.stderr.count("\n") == 1, "no traceback"


def test_a_model_behind_a_frozen_network_is_exported_whole(toy: Manifest, tmp_path: Path) -> None:
    torch.manual_seed(3)
    network = ResNet(BasicBlock, (1, 1, 1, 1), stem="small", width=8)
    network(torch.randn(16, 3, 16, 16))
    file = tmp_path / "my weights.safetensors"
    save_file(network.state_dict(), file)
    layers = {"name": "resnet10", "stem": "small", "width": 8, "weights": str(file), "frozen": 2}
    run = trained(toy, tmp_path / "run", backbone=layers)
    model = load_model(run.path, device="cpu")
    logits = model.logits(images_of(toy))
    assert model.export(tmp_path / "onnx", to="onnx", check=images_of(toy)).difference <= HALF_LIMIT
    assert model.export(tmp_path / "model", check=images_of(toy)).difference == 0
    shutil.rmtree(run.path)
    file.unlink()
    np.testing.assert_array_equal(load_model(tmp_path / "model", device="cpu").logits(images_of(toy)), logits)
    assert str(tmp_path) not in (tmp_path / "model" / "model.json").read_text()
    assert "the first 2 stages of resnet10, pretrained" in (tmp_path / "model" / "README.md").read_text()


def test_exports_that_cannot_be_made_leave_nothing(model: Model, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Expected argument 'to' .* but got 'onxx'. Did you mean 'onnx'"):
        model.export(tmp_path / "out", to="onxx")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="nothing: it does not exist"):
        model.export(tmp_path / "out", check=["nosuch.jpg"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(ExportError, match=r"to be a new folder, but there is something already"):
        model.export(tmp_path / "full")
    with pytest.raises(ExportError, match=r"to be a new folder, but there is something already"):
        model.export(tmp_path / "full", check=["nosuch.jpg"])  # before any work, such as reading these
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["full", "mine.txt"]


def test_a_wrong_export_is_refused(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ltds.engine.export import safetensors_folder

    def wrong(*arguments: object) -> None:
        safetensors_folder_write_weights(*arguments)
        arguments[1].classifier.bias.data += 1  # type: ignore[attr-defined]

    safetensors_folder_write_weights = safetensors_folder.write_weights
    monkeypatch.setattr(safetensors_folder, "write_weights", wrong)
    with pytest.raises(ExportError, match=r"but got a difference of .* on 5 random inputs. Nothing was written"):
        model.export(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["safetensors", "onnx"])
def test_a_full_disk_is_said_in_words_and_leaves_nothing(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExportError, match=r"room for '.*out', but its disk is full. Nothing was written"):
        model.export(tmp_path / "out", to=to)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said_in_words(model: Model, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ExportError, match=r"the system says: File exists \(.*file'\). Nothing was written"):
        model.export(tmp_path / "file" / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_folders_that_hold_no_model_say_so(model: Model, tmp_path: Path) -> None:
    model.export(tmp_path / "onnx", to="onnx")
    with pytest.raises(CheckpointError, match="an export for other programs"):
        load_model(tmp_path / "onnx")
    model.export(tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    content = json.loads((tmp_path / "model" / "model.json").read_text())
    (tmp_path / "model" / "model.json").write_text(json.dumps({**content, "training": {}}))
    with pytest.raises(CheckpointError, match="to be a model directory of ltds, but got KeyError"):
        load_model(tmp_path / "model")
    content["settings"]["backbone"]["name"] = "os:abort"
    (tmp_path / "model" / "model.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=r"they name the module 'os'"):
        load_model(tmp_path / "model")
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"to hold the weights of a model, but it could not be read"):
        load_model(tmp_path / "model")


FITS = "Both files must come from one export"
DESCRIBES = "to describe a model in format 2, but got ValueError"
IS_A_MODEL = "to be a model directory of ltds, but got"


@pytest.mark.parametrize(
    ("place", "wrong", "said"),
    [
        ("settings.backbone", {"name": "resnet10", "width": 10**6}, f"than 576,000,000,000,000. {FITS}"),
        ("settings.method", {"name": "masf", "metric_widths": [10**15, 9]}, "that fits into the memory of this"),
        ("preprocessing.transform.size", 100_000, f"{DESCRIBES}: the size 100000, which"),
        ("preprocessing.transform.size", 0, f"{DESCRIBES}: the size 0, which"),
        ("preprocessing.transform.std", [1e-320, 1, 1], f"{DESCRIBES}: the std [1e-320, 1.0, 1.0], which"),
        ("preprocessing.transform.mean", [1e300, 0, 0], f"{DESCRIBES}: the mean [1e+300, 0.0, 0.0], which"),
        ("preprocessing.transform.mean", [10**400, 0, 0], "in format 2, but got OverflowError"),
        ("preprocessing.transform.mean", [math.nan, 0, 0], "could not be read: the number NaN"),
        ("preprocessing.decoded_side", 0, f"{DESCRIBES}: decoded_side 0, which"),
        ("preprocessing.decoded_side", -5, f"{DESCRIBES}: decoded_side -5, which"),
        ("unknown.threshold", math.inf, "could not be read: the number Infinity"),
        ("unknown.threshold", 10**400, "in format 2, but got OverflowError"),
        ("training.counts", [[math.inf]], "could not be read: the number Infinity"),
        ("training.counts", [[2**70] * 6] * 2, f"{IS_A_MODEL} OverflowError"),
        ("training.counts", [[-1] * 6] * 2, f"{IS_A_MODEL} ValueError: counts below 0"),
        ("classes", ["ant", "ant", "cat", "dog", "elk", "fox"], f"{IS_A_MODEL} ValueError: classes with the same name"),
        ("scores", {"x": 1}, f"{IS_A_MODEL} KeyError: 'per_domain'"),
        ("scores.per_domain", 5, f"{IS_A_MODEL} AttributeError"),
        ("scores.per_domain.wax.accuracy", "high", f"{IS_A_MODEL} TypeError"),
        ("scores.per_domain.wax.accuracy", 80, f"{IS_A_MODEL} ValueError: scores with accuracy 80, which"),
        ("scores.per_domain.wax.open_images", None, f"{IS_A_MODEL} ValueError: scores with open_images None, which"),
        ("scores.per_shot", {"x": {}}, f"{IS_A_MODEL} ValueError: scores of 'x', which is none of"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(
    exported: Path, tmp_path: Path, place: str, wrong: object, said: str
) -> None:
    shutil.copytree(exported, tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    content = json.loads(file.read_text())
    *groups, name = place.split(".")
    group = content
    for key in groups:
        group = group[key]
    group[name] = wrong
    file.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=re.escape(said)):
        load_model(tmp_path / "model", device="cpu")


def test_a_number_above_all_numbers_is_refused(exported: Path, tmp_path: Path) -> None:
    """JSON can spell it, and Python reads it as infinity."""
    shutil.copytree(exported, tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    content = json.loads(file.read_text())
    content["unknown"]["temperature"] = "HERE"
    file.write_text(json.dumps(content).replace('"HERE"', "1e999"))
    with pytest.raises(CheckpointError, match="could not be read: the number 1e999"):
        load_model(tmp_path / "model")


def test_a_network_of_one_batch_size_only_is_refused(model: Model, tmp_path: Path) -> None:
    class Fixed(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images.mean(dim=(2, 3)).reshape(-1).reshape(images.numel() // 768, 3).repeat(1, 6)[:, :16]

    model.method.backbone = Fixed()
    assert model.export(tmp_path / "out", to="onnx").difference <= 1e-5
