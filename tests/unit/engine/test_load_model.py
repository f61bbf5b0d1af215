"""A run directory alone rebuilds its model, and predicts as evaluation did."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import ltds
from ltds.core.errors import CheckpointError, ConfigError, DataError
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.model import _interpret
from ltds.engine.predict_files import predict_files
from ltds.evaluation.table import PredictionTable
from ltds.serving.answers import Answerer
from ltds.serving.limits import ServeLimits
from toy import recorded, toy_session, write_dataset

METHODS = ["agg", "la-posthoc", "agg-embeddings", "tau-norm", "ncm", "lws", "cumix-embeddings", "daml", "ltds"]


def trained(manifest: Manifest, path: Path, name: str = "agg", **groups: dict[str, object]) -> RunDirectory:
    session = toy_session(manifest, name, **groups)
    run = recorded(session, path)
    train(session, run)
    return run


@pytest.mark.parametrize("method", METHODS)
def test_the_model_of_a_run_predicts_as_stored_after_the_dataset_is_gone(tmp_path: Path, method: str) -> None:
    manifest = write_dataset(tmp_path / "data")
    run = trained(manifest, tmp_path / "run", method)
    table = PredictionTable.load(run.predictions_file("test"))
    images = [(manifest.root / manifest.paths[row]).read_bytes() for row in table.rows]
    shutil.rmtree(manifest.root)
    logits = load_model(run.path, device="cpu").logits(images, batch_size=len(images))
    np.testing.assert_array_equal(logits, table.logits)


def test_hidden_names_are_rebuilt_too(tmp_path: Path) -> None:
    manifest = write_dataset(tmp_path / "data")
    run = trained(manifest, tmp_path / "run", "ltds", method={"hide_open_names": True})
    table = PredictionTable.load(run.predictions_file("test"))
    files = [str(manifest.root / manifest.paths[row]) for row in table.rows]
    np.testing.assert_array_equal(load_model(run.path, device="cpu").logits(files, batch_size=999), table.logits)


def test_predictions_name_classes_and_unknown(toy: Manifest, tmp_path: Path) -> None:
    run = trained(toy, tmp_path / "run")
    model = load_model(run.path)
    file = toy.root / toy.paths[int(toy.rows("test")[0])]
    (certain,) = model.predict([file], threshold=-1e9, top=3)
    assert certain.label == certain.classes[0][0] in toy.classes
    assert certain.confidence == certain.classes[0][1] >= certain.classes[1][1] >= certain.classes[2][1]
    assert len(certain.classes) == 3
    assert not certain.unknown
    (unsure,) = model.predict([Image.open(file)], threshold=certain.score + 0.01)
    assert unsure.unknown
    assert unsure.label == "unknown"
    assert unsure.confidence == certain.confidence
    assert model.threshold == run.read_metrics()["choices"]["h_fixed"]["threshold"]
    assert model.predict([]) == []
    for image in (file, str(file), file.read_bytes(), Image.open(file)):
        assert model.predict(image) == model.predict([file]), "a single image needs no list"
    with pytest.raises(DataError, match="nothing: it does not exist"):
        model.predict(["no such file.jpg"])


def test_numbers_and_data_that_predict_cannot_use_are_refused(toy: Manifest, tmp_path: Path) -> None:
    model = load_model(trained(toy, tmp_path / "run").path)
    file = toy.root / toy.paths[0]
    for name, count in (("batch_size", 0), ("batch_size", -1), ("top", 0), ("nearest", -1)):
        part = f"Expected argument '{name}' to be at least {0 if name == 'nearest' else 1}, but got {count}"
        for predict in (
            model.predict,
            partial(ltds.predict, model),
            lambda f, **more: predict_files(model, [f], **more),
        ):
            with pytest.raises(ConfigError, match=part):
                predict(file, **{name: count})
    for outputs in (model.logits, model.features):
        with pytest.raises(ConfigError, match="argument 'batch_size'"):
            outputs([file], batch_size=-1)
    with pytest.raises(ConfigError, match="argument 'top'"):
        Answerer(model, ServeLimits(), top=0, threshold=None, nearest=0)
    with pytest.raises(ConfigError, match=r"argument 'data' only where .* but got it alone") as error:
        ltds.predict(model, file, data=toy)
    assert error.value.arguments == ("nearest=3",)


def test_what_is_no_image_is_refused_by_name(toy: Manifest, tmp_path: Path) -> None:
    model = load_model(trained(toy, tmp_path / "run").path)
    content = (toy.root / toy.paths[0]).read_bytes()
    pixels = np.zeros((3, 16, 5), np.uint8)
    for wrong, got in (
        (pixels, "ndarray of shape (16, 5)"),
        ([pixels], "ndarray of shape (3, 16, 5)"),
        (pixels.astype(np.float32), "ndarray of shape (16, 5)"),
        (torch.zeros(3, 16, 5), "ndarray of shape (16, 5)"),
        ([[0.5, 1.5]], "list"),
        (bytearray(content), "bytearray"),
        ([bytearray(content)], "bytearray"),
        (memoryview(content), f"memoryview of shape ({len(content)},)"),
        (None, "NoneType"),
        ([None], "NoneType"),
        (7, "int"),
    ):
        part = f"Expected an image to be a path, the content of a file (bytes) or a Pillow image, but got {got}. Give"
        for outputs in (model.predict, model.logits, model.features):
            with pytest.raises(DataError, match=re.escape(part)):
                outputs(wrong)


def test_generators_and_open_files_are_taken(toy: Manifest, tmp_path: Path) -> None:
    model = load_model(trained(toy, tmp_path / "run").path)
    files = [toy.root / path for path in toy.paths[:3]]
    wanted = model.predict(files, batch_size=2)
    assert model.predict((file for file in files), batch_size=2) == wanted
    assert model.predict(map(str, files), batch_size=2) == wanted
    assert model.predict(dict.fromkeys(files).keys(), batch_size=2) == wanted
    with files[0].open("rb") as first:
        assert model.predict(first) == model.predict([files[0]])


@pytest.mark.parametrize("method", ["agg", "daml"])  # daml's features are those of several networks
def test_no_images_give_arrays_of_the_right_width(toy: Manifest, tmp_path: Path, method: str) -> None:
    model = load_model(trained(toy, tmp_path / "run", method).path)
    one = [toy.root / toy.paths[0]]
    for outputs in (model.logits, model.features):
        for nothing in ([], (), np.array([], dtype=str), iter(())):
            assert outputs(nothing).shape == (0, outputs(one).shape[1])
    assert model.features(one).shape[1] != len(toy.classes), "the test can tell the two apart"
    assert model.predict([], nearest=1) == []


@pytest.mark.parametrize("threshold", [2.0, 1.001, float("nan")])
def test_a_threshold_that_no_score_reaches_is_refused(toy: Manifest, tmp_path: Path, threshold: float) -> None:
    model = load_model(trained(toy, tmp_path / "run").path)
    file = toy.root / toy.paths[0]
    part = f"Expected argument 'threshold' to be a score, which is at most 1, but got {threshold:g}"
    with pytest.raises(ConfigError, match=re.escape(part)):
        model.predict([file], threshold=threshold)
    with pytest.raises(ConfigError, match=re.escape(part)):
        ltds.predict(model, file, threshold=threshold)
    with pytest.raises(ConfigError, match=re.escape(part)):
        Answerer(model, ServeLimits(), top=1, threshold=threshold, nearest=0)
    assert not model.predict([file], threshold=-1.0)[0].unknown
    assert model.predict([file], threshold=math.inf)[0].unknown


def test_arguments_and_images_of_another_kind_are_sentences(toy: Manifest, tmp_path: Path) -> None:
    model = load_model(trained(toy, tmp_path / "run").path)
    file = toy.root / toy.paths[0]
    for arguments, part in (
        ({"top": None}, "argument 'top' to be a whole number of at least 1, but got None"),
        ({"top": 2.5}, "argument 'top' to be a whole number of at least 1, but got 2.5"),
        ({"nearest": "1"}, "argument 'nearest' to be a whole number of at least 0, but got '1'"),
        ({"threshold": "0.5"}, "argument 'threshold' to be a score, which is at most 1, but got '0.5'"),
    ):
        with pytest.raises(ConfigError, match=part):
            model.predict([file], **arguments)
    for size in ((0, 10), (10, 0)):
        with pytest.raises(DataError, match=f"at least one pixel large, but got {size[0]} x {size[1]} pixels"):
            model.predict(Image.new("RGB", size))
    assert len(model.predict([file], top=np.int64(2), threshold=np.float32(0.5))[0].classes) == 2


def test_an_open_class_is_never_predicted(toy: Manifest, tmp_path: Path) -> None:
    model = load_model(trained(toy, tmp_path / "run").path)
    assert model.task.open_classes == (5,)
    (huge,) = model.interpret(np.array([[500.0, 501, 0, 0, 0, 9999]], np.float32), top=2, threshold=-1e9)
    assert huge.classes == (("bee", pytest.approx(1 / (1 + np.exp(-1)))), ("ant", pytest.approx(1 / (1 + np.exp(1)))))
    with torch.no_grad():
        model.method.classifier.bias.copy_(torch.tensor([0.0, 0, 0, 0, 0, 100]))
    (answer,) = model.predict([toy.root / toy.paths[0]], threshold=-1e9, top=9)
    assert "fox" not in [name for name, _ in answer.classes]
    assert sum(probability for _, probability in answer.classes) == pytest.approx(1)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_say_nothing_get_no_answer(toy: Manifest, tmp_path: Path, bad: float) -> None:
    """The largest of NaN and numbers is any of them: the answer was a class with the confidence nan."""
    model = load_model(trained(toy, tmp_path / "run").path)
    logits = np.zeros((9, 6), np.float32)
    logits[[2, 7], 0] = bad
    for threshold in (None, 0.0, 0.9):
        with pytest.raises(DataError, match=r"finite \(-inf .*\), but got NaN or infinity in the rows 2, 7\. Look for"):
            model.interpret(logits, threshold=threshold)
    nothing = np.full((1, 6), -np.inf, np.float32)
    with pytest.raises(DataError, match="in the rows 0"):
        model.interpret(nothing)
    nothing[0, 3], logits[:, 5] = 1.0, bad
    assert model.interpret(nothing)[0].classes[0] == ("dog", 1.0)
    assert len(model.interpret(logits[:2])) == 2, "the logit of an open class does not matter"
    assert model.interpret(logits[:0]) == []


def test_a_file_without_finite_logits_is_skipped(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(trained(toy, tmp_path / "run").path, device="cpu")
    files = [toy.root / toy.paths[row] for row in range(5)]
    wanted, compute = model.predict(files), model.method.predict

    def predict(images: torch.Tensor) -> ltds.Prediction:
        found = compute(images)
        found.logits[1] = np.nan
        return found

    monkeypatch.setattr(model.method, "predict", predict)
    done = ltds.predict(model, files)
    assert [(row.file, row.answer) for row in done] == [(files[i], wanted[i]) for i in (0, 2, 3, 4)]
    assert [(bad.file, bad.reason) for bad in done.skipped] == [(files[1], "the model computes NaN or infinity")]


def test_unknown_is_decided_as_the_metric_h_fixed_does(toy: Manifest, tmp_path: Path) -> None:
    run = trained(toy, tmp_path / "run", "ltds")
    table, metrics = PredictionTable.load(run.predictions_file("test")), run.read_metrics()
    answers = load_model(run.path).predict([toy.root / toy.paths[row] for row in table.rows], batch_size=999)
    known = table.labels != 5
    accepted = [a.label == toy.classes[label] for a, label in zip(answers, table.labels, strict=True)]
    a = np.mean([ok for ok, k in zip(accepted, known, strict=True) if k])
    b = np.mean([answer.unknown for answer, k in zip(answers, known, strict=True) if not k])
    assert metrics["summary"]["h_fixed"] == pytest.approx(2 * a * b / (a + b) if a + b else 0.0)


def test_runs_that_cannot_be_loaded_say_why(toy: Manifest, tmp_path: Path) -> None:
    run = trained(toy, tmp_path / "run")
    content = run.read_model()
    run.write_model({**content, "format": 99})
    with pytest.raises(CheckpointError, match=r"describe a model in format 2, but got ValueError: format 99"):
        load_model(run.path)
    for name, wrong, said in (
        ("threshold", "x", "the threshold 'x', which is neither a number nor null"),
        ("threshold", [0.5], "the threshold [0.5], which is neither a number nor null"),
        ("threshold", True, "the threshold True, which is neither a number nor null"),
        ("temperature", 0, "the temperature 0, which is no number above 0"),
        ("temperature", -1.5, "the temperature -1.5, which is no number above 0"),
        ("temperature", None, "the temperature None, which is no number above 0"),
    ):
        run.write_model({**content, "unknown": {**content["unknown"], name: wrong}})
        with pytest.raises(CheckpointError, match=re.escape(f"model in format 2, but got ValueError: {said}. Train")):
            load_model(run.path)
    run.write_model({**content, "unknown": {**content["unknown"], "threshold": None, "temperature": 2}})
    assert load_model(run.path).threshold is None
    run.model_file.unlink()
    with pytest.raises(CheckpointError, match="older version of ltds made this run"):
        load_model(run.path)
    run.done_file.unlink()
    with pytest.raises(CheckpointError, match="its training has not ended"):
        load_model(run.path)


def test_a_pretrained_backbone_is_not_read_again(toy: Manifest, tmp_path: Path) -> None:
    weights = tmp_path / "weights.pth"
    torch.save(toy_session(toy).method.backbone.state_dict(), weights)
    run = trained(toy, tmp_path / "run", backbone={"name": "tiny", "weights": str(weights)})
    weights.unlink()
    assert load_model(run.path).classes == toy.classes


def test_loading_imports_nothing_of_reports_or_plots(toy: Manifest, tmp_path: Path) -> None:
    run = trained(toy, tmp_path / "run", "ltds")
    code = (
        "import sys; from ltds.engine.load import load_model; load_model(sys.argv[1]); "
        "print([m for m in ('matplotlib', 'jinja2', 'sklearn', 'transformers', 'ray') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code, str(run.path)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_class_that_is_called_unknown_is_not_an_unknown_image() -> None:
    names, logits = ("cat", "unknown"), np.array([0.0, 9.0])
    sure = _interpret(logits, score=0.9, names=names, top=1, threshold=0.5)
    assert (sure.label, sure.unknown) == ("unknown", False)
    unsure = _interpret(logits, score=0.4, names=names, top=1, threshold=0.5)
    assert (unsure.label, unsure.unknown, unsure.classes[0][0]) == ("unknown", True, "unknown")
