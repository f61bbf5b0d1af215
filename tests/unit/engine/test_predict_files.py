"""Predictions for files, beyond what the command shows: which models are refused, what is read in advance."""

from __future__ import annotations

import csv
import json
import os
import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import ltds
from ltds.core.errors import DataError
from ltds.data.manifest import Manifest
from ltds.data.transforms import EvalTransform
from ltds.engine import other_data, use
from ltds.engine.loop import train
from ltds.engine.model import ImagePrediction
from ltds.engine.predict_files import FilePredictions, PredictedFile, SkippedFile, predict_files
from ltds.engine.preprocessing import FeaturePreprocessing, ImagePreprocessing
from ltds.engine.training_index import NearestImage
from ltds.engine.write_predictions import check_output, write_predictions
from toy import recorded, toy_session


def test_a_model_of_features_is_refused_before_any_file_is_read() -> None:
    model: Any = SimpleNamespace(record=SimpleNamespace(preprocessing=FeaturePreprocessing(4, 1.0)))
    with pytest.raises(DataError, match="Expected a model of images, but this one was trained on precomputed features"):
        predict_files(model, [])


def test_many_predictions_are_shown_in_a_line() -> None:
    answers = [SimpleNamespace(label=label, unknown=False) for label in ("cat", "dog", "cat")]
    files: Any = tuple(PredictedFile(Path(f"{i}.png"), answer) for i, answer in enumerate(answers))  # type: ignore[arg-type]
    bad = SkippedFile(Path("bad.png"), "no image")
    predictions = FilePredictions(files, (bad,))
    assert repr(predictions) == "<FilePredictions: 3 predicted, 1 skipped; {'cat': 2, 'dog': 1}>"
    assert (len(predictions), list(predictions)) == (3, list(files))


def test_two_batches_are_read_while_the_network_computes_another() -> None:
    """More would only take memory."""
    read: list[str] = []
    predicted: list[int] = []
    third = threading.Event()

    class Reader(ImagePreprocessing):
        def decode(self, image: Any) -> torch.Tensor:
            read.append(image.name)
            if len(read) == 3:
                third.set()
            return torch.zeros(3, 8, 8, dtype=torch.uint8)

    def predict(images: torch.Tensor) -> Any:
        if not predicted:
            assert third.wait(10)
            threading.Event().wait(0.05)  # time in which a fourth could be read
            assert sorted(read) == ["0.png", "1.png", "2.png"]
        predicted.append(len(images))
        return SimpleNamespace(logits=images.flatten(1), features=images)

    model: Any = SimpleNamespace(
        record=SimpleNamespace(preprocessing=Reader(8, EvalTransform(8))),
        method=SimpleNamespace(predict=predict),
        device=torch.device("cpu"),
        has_answer=lambda logits: np.ones(len(logits), dtype=np.bool_),
        interpret=lambda logits, **_: ["seen"] * len(logits),
    )
    found = predict_files(model, [Path(f"{i}.png") for i in range(6)], batch_size=1)
    assert predicted == [1] * 6
    assert [row.file.name for row in found.predicted] == [f"{i}.png" for i in range(6)]


def test_a_class_called_unknown_is_told_from_the_answer_unknown(tmp_path: Path) -> None:
    def answer(best: str, unknown: bool) -> ImagePrediction:
        return ImagePrediction("unknown" if unknown else best, 0.5, 0.5, ((best, 0.5),), unknown=unknown)

    answers = [answer("unknown", False), answer("unknown", True), answer("cat", True), answer("cat", False)]
    found = FilePredictions(tuple(PredictedFile(Path(f"{i}.png"), a) for i, a in enumerate(answers)), ())
    assert found.counts == {"unknown": 2, "unknown (a class)": 1, "cat": 1}
    write_predictions(found, tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as file:
        rows = [(row["label"], row["unknown"]) for row in csv.DictReader(file)]
    assert rows == [("unknown", "no"), ("unknown", "yes"), ("unknown", "yes"), ("cat", "no")]
    write_predictions(found, tmp_path / "p.jsonl")
    lines = map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())
    assert [line["unknown"] for line in lines] == [False, True, True, False]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.csv", "path,class,domain\na.png,cat,night\n"),
        ("images.csv", "image,label\na.png,cat\n"),
        ("bytes.CSV", b"\xff\xfe\x00"),
        ("labels.jsonl", '{"image": "a.png", "label": "cat"}\n'),
        ("list.jsonl", '["image", "label"]\n'),
        ("text.jsonl", "my notes\n"),
        ("deep.jsonl", "[" * 100_000),
        ("bytes.jsonl", b"\xff\xfe\x00"),
    ],
)
def test_a_table_that_predictions_did_not_write_is_not_replaced(
    tmp_path: Path, name: str, content: str | bytes
) -> None:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=r"a new file, or .* of predictions, but got .*, which would be lost"):
        check_output(file)


def test_a_picture_that_only_mentions_the_command_is_not_replaced(tmp_path: Path) -> None:
    mention = PngInfo()
    mention.add_text("Title", "what ltds predict printed")
    Image.new("RGB", (8, 8)).save(tmp_path / "screen.png", pnginfo=mention)
    with pytest.raises(DataError, match="which would be lost"):
        check_output(tmp_path / "screen.png")


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl", "p.png"])
def test_predictions_and_empty_files_are_replaced(tmp_path: Path, name: str) -> None:
    image = tmp_path / "a.png"
    Image.new("RGB", (8, 8)).save(image)
    near = (NearestImage("b.png", "cat", "night", 0.5, 0),)
    answers = [
        ImagePrediction("cat", 0.5, 0.5, (("cat", 0.5),)),
        ImagePrediction("unknown", 0.5, 0.5, (("cat", 0.5),), near, unknown=True, name="dog"),
    ]
    file = tmp_path / name
    file.touch()
    for i, rows in enumerate(([], answers[:1], answers, answers)):
        found, new = FilePredictions(tuple(PredictedFile(image, row) for row in rows), ()), tmp_path / f"{i}-{name}"
        for one in (file, new):
            write_predictions(found, one)
        assert file.read_bytes() == new.read_bytes()


def test_a_sheet_shows_grey_for_an_image_that_went_meanwhile(tmp_path: Path) -> None:
    answer = ImagePrediction("cat", 0.5, 0.5, (("cat", 0.5),))
    found = FilePredictions((PredictedFile(tmp_path / "gone.png", answer),), ())
    write_predictions(found, tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.getpixel((70, 70)) == (128, 128, 128)


def test_no_path_in_a_table_is_a_formula(tmp_path: Path) -> None:
    near = (NearestImage("=2+5.png", "-cat", "+site", 0.5, 0),)
    answer = ImagePrediction("-cat", 0.5, 0.5, (("-cat", 0.5),), near)
    names = ["=cmd|' /C calc'!A0.png", "+1.png", "-1.png", "@SUM(A1).png", "photos/=1.png", "/=1.png", "a=1.png"]
    write_predictions(
        FilePredictions(tuple(PredictedFile(Path(name), answer) for name in names), ()), tmp_path / "p.csv"
    )
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == [*(f"./{name}" for name in names[:4]), *names[4:]]
    assert [Path(row["image"]) for row in rows] == [Path(name) for name in names], "the same files"
    first = rows[0]
    assert [first[f"nearest_1_{name}"] for name in ("path", "class", "domain")] == ["./=2+5.png", "-cat", "+site"]
    assert (first["label"], first["class_1"]) == ("-cat", "-cat"), "classes keep their names"


def test_a_file_that_cannot_be_written_is_noticed_before_predicting(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = toy_session(toy)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    image = toy.root / toy.paths[int(toy.rows("test")[0])]
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("mine")
    closed = tmp_path / "closed"
    closed.mkdir()
    may = os.access  # root may write anywhere
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) not in (closed, run.path) and may(path, mode))
    monkeypatch.setattr(use, "predict_files", lambda *_, **__: pytest.fail("predicted first"))
    monkeypatch.setattr(other_data, "predict_files", lambda *_, **__: pytest.fail("predicted first"))
    for out, got in (
        (tmp_path / "folder.csv", "a file to write, but got a folder. Name a file in it."),
        (closed, "a file to write, but got a folder. Name a file in it."),
        (
            tmp_path / "file" / "p.csv",
            f"to be a folder that can be written to, but got the file '{tmp_path / 'file'}'.",
        ),
        (closed / "new" / "p.csv", f"a folder that can be written to, but got no permission to write in '{closed}'."),
    ):
        with pytest.raises(DataError, match=re.escape(got)):
            ltds.predict(run.path, image, out=out)
    for place, got in (
        (tmp_path / "file", f"the file '{tmp_path / 'file'}'"),
        (closed / "new", f"no permission to write in '{closed}'"),
        (None, f"no permission to write in '{run.path}'"),
    ):
        with pytest.raises(DataError, match=re.escape(f"a folder that can be written to, but got {got}.")):
            ltds.evaluate(run.path, data=toy, split="test", out=place)
    assert not any(closed.iterdir()), "nothing was made on the way"
    assert (tmp_path / "file").read_text() == "mine"
