"""From a trained model to its use: predict, export, evaluate on another dataset, as people type it."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import save_file

import ltds
from command_line import Command, refused
from ltds.core.errors import ConfigError
from ltds.core.runs import RunDirectory
from ltds.core.text import score_decimals, score_text
from ltds.data.manifest import Manifest
from ltds.engine import use
from ltds.engine.loop import train
from ltds.evaluation.openset import softened_confidence
from ltds.evaluation.table import PredictionTable
from ltds.nn.small import TinyNet
from toy import recorded, toy_session


@pytest.fixture(scope="module")
def run(toy: Manifest, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    session = toy_session(toy)
    run = recorded(session, tmp_path_factory.mktemp("use") / "my run")
    train(session, run)
    return run


def rows_of(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))


def test_the_csv_has_the_stored_predictions(toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path) -> None:
    folder = toy.root / "images" / "test"
    done = command("predict", str(run.path), str(folder), "--out", "p.csv", "--top", "9", "--batch-size", "999")
    assert done.returncode == 0, done.stderr
    table = PredictionTable.load(run.predictions_file("test"))
    logits = {toy.root / toy.paths[row]: z for row, z in zip(table.rows, table.logits, strict=True)}
    rows = rows_of(tmp_path / "p.csv")
    assert {Path(row["image"]) for row in rows} == set(logits)
    assert [row["image"] for row in rows] == sorted(row["image"] for row in rows)
    rule = run.read_metrics()["choices"]["h_fixed"]
    threshold = rule["threshold"]
    for row in rows:
        known = logits[Path(row["image"])][:5].astype(np.float64)  # 'fox' is open
        best = toy.classes[int(known.argmax())]
        assert row["class_1"] == best
        score = 1 / np.exp((known - known.max()) / rule["temperature"]).sum()
        assert float(row["score"]) == pytest.approx(score, abs=1e-12)
        assert row["label"] == (best if score >= threshold else "unknown")
        shares = np.exp(known - known.max())
        assert float(row["confidence"]) == pytest.approx(shares.max() / shares.sum(), abs=1e-12)
    for label, count in Counter(row["label"] for row in rows).items():
        assert any(label in line and f" {count} " in line for line in done.stdout.splitlines())
    scores = [float(row["score"]) for row in rows[:20]]
    assert f"score is below {score_text(threshold, scores)}. The rule" in done.stderr
    assert f"│ {max(scores):.{score_decimals(threshold, scores)}f} │" in done.stdout
    assert "source-validation images" in done.stderr


def test_json_lines_and_a_sheet_for_any_script(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path
) -> None:
    photos = tmp_path / "фото 写真"
    photos.mkdir()
    for i, row in enumerate(toy.rows("test")[:3]):
        shutil.copy(toy.root / toy.paths[row], photos / f"狐 {i}.PNG")
    done = command("predict", str(run.path), str(photos), "--out", "p.jsonl", "--top", "2", "--threshold", "-99")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["image"] for row in rows] == [str(photos / f"狐 {i}.PNG") for i in range(3)]
    for row, answer in zip(rows, ltds.load_model(run.path).predict([r["image"] for r in rows], top=2), strict=True):
        assert row["label"] == answer.classes[0][0]
        assert row["classes"] == [{"class": name, "probability": share} for name, share in answer.classes]
    assert "below -99, as you asked" in done.stderr
    for _ in range(2):  # a sheet may be replaced, another picture not
        assert command("predict", str(run.path), str(photos), "--out", "sheet.png").returncode == 0
    Image.new("RGB", (16, 16)).save(tmp_path / "photo.png")
    before = (tmp_path / "photo.png").read_bytes()
    done = command("predict", str(run.path), str(photos), "--out", "photo.png")
    refused(done, "'photo.png' to be a new file, or a sheet of predictions, but got another file")
    assert (tmp_path / "photo.png").read_bytes() == before
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (6 + 3 * 134, 6 + 128 + 34 + 6)
        assert len(sheet.crop((6, 134, 402, 168)).getcolors(9999) or []) > 10, "there is text below the images"


def test_paths_come_from_standard_input_and_bad_images_are_named(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = toy.root / toy.paths[0]
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:60])
    (tmp_path / "no images").mkdir()
    lines = f"{good}\n{tmp_path / 'empty.jpg'}\r\n\n{tmp_path / 'cut.png'}\nno such.jpg\nno images\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    done = command("predict", str(run.path), "-", "--out", "p.csv")
    assert done.returncode == 1, done.stderr
    assert [row["image"] for row in rows_of(tmp_path / "p.csv")] == [str(good)]
    assert "4 images were skipped, because reading failed" in done.stderr
    assert "- no images: no image in it or below it" in done.stderr
    assert f"- {tmp_path / 'empty.jpg'}: an empty file (0 bytes)" in done.stderr
    assert "- no such.jpg: nothing there" in done.stderr
    assert "cut.png" in done.stderr


def test_links_to_images_that_were_not_fetched_are_named(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    new.mkdir()
    (new / "good.png").symlink_to(toy.root / toy.paths[0])
    (new / "annexed.png").symlink_to(tmp_path / "nowhere")
    done = command("predict", str(run.path), str(new), "--out", str(tmp_path / "p.csv"))
    assert done.returncode == 1, done.stderr
    assert len(rows_of(tmp_path / "p.csv")) == 1
    assert f"- {new / 'annexed.png'}: a link to a file that does not exist" in done.stderr


def test_a_list_on_standard_input_may_hold_anything(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = (toy.root / toy.paths[0]).read_bytes()
    names = [b"plain.png", b"caf\xe9.png", b"two\nlines.png", "Zürich.png".encode()]
    try:
        for name in names:
            Path(os.fsdecode(os.fsencode(tmp_path / "in") + name)).write_bytes(good)
    except OSError:
        pytest.skip("this file system takes only UTF-8")

    def predicted(content: bytes) -> tuple[list[str], str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))
        done = command("predict", str(run.path), "-", "--out", "p.csv")
        assert "Traceback" not in done.stderr
        return [row["image"] for row in rows_of(tmp_path / "p.csv")], done.stderr

    words = [b"in" + name for name in names]
    found, _ = predicted(b"\xef\xbb\xbf" + b"\r\n".join([words[0], words[1], words[3]]))
    assert found == ["inplain.png", "incaf\\xe9.png", "inZürich.png"]
    found, _ = predicted(b"\0".join(words) + b"\0")
    assert found == ["inplain.png", "incaf\\xe9.png", "intwo\nlines.png", "inZürich.png"]
    found, said = predicted(b"\n".join([words[0], b"x" * 5000, b"\xff\xfe.png"]))
    assert found == ["inplain.png"]
    assert "2 images were skipped" in said
    assert f"- {'x' * 300}...: File name too long" in said
    assert "- \\xff\\xfe.png: nothing there" in said


def test_the_screen_shows_what_the_threshold_is_compared_with(
    toy: Manifest, run: RunDirectory, command: Command
) -> None:
    """The confidence is another number than the score, and may be above the threshold of an image that is unknown."""
    file = toy.root / toy.paths[0]
    (answer,) = ltds.load_model(run.path).predict(file)
    threshold = answer.score + 3e-6
    done = command("predict", str(run.path), str(file), "--threshold", repr(threshold))
    decimals = score_decimals(threshold, [answer.score])
    assert decimals > 4
    shown = [cell.strip() for cell in done.stdout.splitlines()[3].split("│")]
    assert shown[2:5] == ["unknown", f"{answer.score:.{decimals}f}", f"{100 * answer.confidence:.1f} %"]
    assert f"if its score is below {threshold:.15g}, as you asked" in done.stderr
    assert "confidence: of the most probable class, named or not." in done.stderr


def test_what_cannot_be_predicted_is_said_first(run: RunDirectory, command: Command, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    for words, part in (
        (["nosuch"], "'nosuch' to be an image or a folder of images, but got nothing there"),
        (["nothing"], "a folder of images (."),
        (["nothing", "--out", "p.txt"], "a file .csv, .jsonl or .png, but got '.txt'"),
    ):
        done = command("predict", str(run.path), *words)
        assert done.returncode == 2, done.stderr
        assert part in done.stderr
        assert "Traceback" not in done.stderr
    Image.new("RGB", (16, 16)).save(tmp_path / "an image.png")
    done = command("predict", "nosuch", str(tmp_path))
    assert done.returncode == 2
    assert "nosuch" in done.stderr


def test_a_mistyped_path_is_said_before_the_model_is_loaded(
    run: RunDirectory, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ltds.engine.load.load_model", lambda *_, **__: pytest.fail("loaded"))
    done = command("predict", str(run.path), "nosuch")
    assert done.returncode == 2, done.stderr
    assert "Expected 'nosuch' to be an image or a folder of images, but got nothing there" in done.stderr


def test_an_interrupt_leaves_no_file_and_says_so(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(use, "predict_files", interrupt)
    words = ["predict", str(run.path), str(toy.root / toy.paths[0])]
    done = command(*words, "--out", "my labels.csv")
    assert done.returncode == 130
    assert "Interrupted. Nothing was written to 'my labels.csv'.\n" in done.stderr
    assert not any(tmp_path.iterdir())
    assert "Interrupted.\n" in command(*words).stderr


def test_the_hints_can_be_pasted(toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path) -> None:
    image = str(toy.root / toy.paths[0])
    done = command("predict", str(run.path), image)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("To write all of it to a file: ")]
    words = shlex.split(line.removeprefix("To write all of it to a file: "))
    assert words == ["ltds", "predict", str(run.path), image, "--out", "predictions.csv"]
    assert command(*words[1:]).returncode == 0
    assert len(rows_of(tmp_path / "predictions.csv")) == 1
    many = [str(toy.root / path) for path in toy.paths[:4]]
    done = command("predict", str(run.path), *many)
    assert "To write all of it to a file: the same command with --out predictions.csv" in done.stderr
    assert many[3] not in done.stderr, "a shell may have listed thousands"
    given = ["--top", "2", "--threshold", "-99.0", "--nearest", "1", "--data", str(toy.root), "--batch-size", "8"]
    given += ["--device", "cpu", "--trust", "a", "--trust", "b"]
    done = command("predict", str(run.path), image, *given)
    assert f"file: {shlex.join(['ltds', 'predict', str(run.path), image, *given])} --out predictions.csv" in done.stderr


def test_export_and_predict_with_the_export(toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path) -> None:
    image = str(toy.root / toy.paths[0])
    done = command("export", str(run.path), "--out", "the model", "--check", image)
    assert done.returncode == 0, done.stderr
    assert "Compared with the model on 1 input: largest difference 0" in done.stderr
    assert "Use it: ltds predict 'the model' IMAGES" in done.stderr
    for model, out in ((str(run.path), "a.csv"), ("the model", "b.csv")):
        assert command("predict", model, image, "--out", out).returncode == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    again = command("export", str(run.path), "--out", "the model")
    assert again.returncode == 2
    assert "to be a new folder" in again.stderr
    assert "--out FOLDER" in again.stderr
    wrong = command("export", str(run.path), "--to", "onxx", "--out", "other")
    assert (wrong.returncode, "Did you mean 'onnx'?" in wrong.stderr) == (2, True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.csv", "b.csv", "the model"]


def test_evaluation_on_other_data_is_that_of_the_run_on_its_test_images(
    toy: Manifest, run: RunDirectory, command: Command
) -> None:
    refused = command("evaluate", str(run.path), "--data", str(toy.root))
    assert refused.returncode == 2
    assert "Give it as: --split test" in refused.stderr
    done = command("evaluate", str(run.path), "--data", str(toy.root), "--split", "test")
    assert done.returncode == 0, done.stderr
    folder = run.path / "evaluations" / "toy"
    content = json.loads((folder / "evaluation.json").read_text())
    metrics = run.read_metrics()
    table = PredictionTable.load(run.predictions_file("test"))
    known = table.labels != 5
    best = table.logits[:, :5].argmax(axis=1)
    assert content["overall"]["accuracy"] == pytest.approx(np.mean(best[known] == table.labels[known]))
    assert content["overall"]["known_images"] == known.sum()
    for domain, row in content["per_domain"].items():
        assert row["known_images"] == metrics["per_domain"][domain]["known_images"]
    rule = metrics["choices"]["h_fixed"]
    accepted = softened_confidence(table.logits[:, :5].astype(np.float64), rule["temperature"]) >= rule["threshold"]
    assert content["overall"]["named_right"] == pytest.approx(np.mean((best == table.labels)[known] & accepted[known]))
    assert content["overall"]["open_called_unknown"] == pytest.approx(np.mean(~accepted[~known]))
    assert content["per_class"]["fox"]["open_images"] == np.sum(~known)
    assert len(rows_of(folder / "predictions.csv")) == len(table.rows)
    page = (folder / "report.html").read_text()
    right = 100 * np.mean(best[known] == table.labels[known])
    assert f"the model is right for {right:.0f} of 100 ({known.sum()} images of classes that it knows" in page
    assert "report.html" in done.stderr


def test_the_page_of_an_evaluation_names_the_model_also_from_inside_its_folder(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = command(
        "evaluate", ".", "--data", str(toy.root), "--split", "test", "--out", str(tmp_path / "a"), cwd=run.path
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(run.path)
    ltds.evaluate(".", data=toy, split="test", out=tmp_path / "b")
    pages = [(tmp_path / name / "report.html").read_text() for name in ("a", "b")]
    assert pages[0] == pages[1]
    assert "the model <bdi>my run</bdi> on other images" in pages[1]


def test_a_folder_of_a_new_site_with_other_classes(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path
) -> None:
    source = toy.root / "images" / "test" / "wax"
    for name, new in (("ant", "ant"), ("bee", "bee"), ("cat", "gnu"), ("dog", "Dog")):
        shutil.copytree(source / name, tmp_path / "new site" / "site 9" / new)
    (tmp_path / "new site" / "site 9" / "ant" / "bad.png").write_bytes(b"no image")
    done = command("evaluate", str(run.path), "--data", "new site", "--out", "outcome")
    assert done.returncode == 1, done.stderr
    assert "1 image was left out, because reading failed" in done.stderr
    content = json.loads((tmp_path / "outcome" / "evaluation.json").read_text())
    assert content["classes"] == {
        "matched": ["ant", "bee"],
        "missing": ["cat", "dog", "elk"],
        "open": ["Dog", "gnu"],
        "spelled_differently": ["Dog (dog)"],
    }
    assert content["overall"]["known_images"] == content["overall"]["open_images"] == 6
    assert content["data"]["skipped"] == 1
    assert "so 'unknown' is the right answer: gnu\n" in done.stderr
    assert "but that this dataset does not have: cat, elk\n" in done.stderr, "dog is only spelled differently"
    assert "counted as classes that it does not know; rename them: Dog (dog)\n" in done.stderr
    page = (tmp_path / "outcome" / "report.html").read_text()
    assert "right answer: <bdi>gnu</bdi>." in page
    assert "They count as classes that it does not know: Dog (dog)." in page
    assert "too few to rely on it" in page  # six images
    assert 'class="too-few" title="Too few images to trust it: 6 images' in page
    assert "Rename classes that are only spelled differently." in page
    assert "one could not be read and is left out" in page
    assert page.count('<li><img src="data:image/') == page.count("sure</span>")
    assert "‡ too few images to trust the number" in done.stderr
    assert "%‡" in done.stdout
    rows = rows_of(tmp_path / "outcome" / "predictions.csv")
    right = [row["most_probable"] == row["class"] for row in rows if row["known"] == "yes"]
    assert all((float(row["score"]) < content["unknown"]["threshold"]) == (row["unknown"] == "yes") for row in rows)
    assert content["overall"]["accuracy"] == pytest.approx(sum(right) / 6)
    assert content["per_domain"]["site 9"] == content["overall"]
    assert not (tmp_path / "data").exists(), "nothing is built"
    other = tmp_path / "other" / "site" / "zebra"
    other.mkdir(parents=True)
    shutil.copy(source / "ant" / "0.png", other)
    refused = command("evaluate", str(run.path), "--data", "other")
    assert refused.returncode == 2
    assert "Classes are matched by name" in refused.stderr


def test_a_threshold_is_chosen_tested_and_kept(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path
) -> None:
    shutil.copytree(toy.root / "images" / "test" / "wax", tmp_path / "site" / "wax")
    done = command("evaluate", str(run.path), "--data", "site")
    assert done.returncode == 0, done.stderr
    assert "report.html compares other thresholds. To judge with one, add --threshold T." in done.stderr
    content = json.loads((run.path / "evaluations" / "site" / "evaluation.json").read_text())
    rows = rows_of(run.path / "evaluations" / "site" / "predictions.csv")
    known, opened = ([float(r["score"]) for r in rows if r["known"] == flag] for flag in ("yes", "no"))
    wins = sum((k > o) + (k == o) / 2 for k in known for o in opened)
    assert content["unknown"]["auroc"] == pytest.approx(wins / (len(known) * len(opened)))
    assert f"AUROC of the score: {100 * content['unknown']['auroc']:.1f} %‡, on 3 open images" in done.stderr
    assert "accuracy (macro accuracy): " in done.stderr
    assert "over 5 of 5 classes, 15 images" in done.stderr
    listed = content["unknown"]["thresholds"]
    (in_use,) = [row for row in listed if row["threshold"] == content["unknown"]["threshold"]]
    shares = ("named_right", "known_called_unknown", "open_called_unknown")
    assert {name: in_use[name] for name in shares} == {name: content["overall"][name] for name in shares}
    chosen = next(row for row in listed if 0 < row["known_called_unknown"] < 1 and row != in_use)
    t = chosen["threshold"]
    done = command("evaluate", str(run.path), "--data", "site", "--threshold", str(t))
    assert done.returncode == 0, done.stderr
    assert (
        f"is below {score_text(t)}. The rule: the score is the softened confidence in a known class; the thr"
        in done.stderr
    )
    judged = json.loads((run.path / "evaluations" / f"site-threshold-{t}" / "evaluation.json").read_text())
    assert {name: judged["overall"][name] for name in shares} == {name: chosen[name] for name in shares}
    assert (judged["unknown"]["threshold"], judged["unknown"]["split"]) == (t, None)
    assert judged["unknown"]["auroc"] == content["unknown"]["auroc"]
    assert command("export", str(run.path), "--out", "model", "--threshold", str(t)).returncode == 0
    again = command("evaluate", "model", "--data", "site", "--out", "again")
    assert again.returncode == 0, again.stderr
    kept = json.loads((tmp_path / "again" / "evaluation.json").read_text())
    assert kept == judged
    numbers = ltds.evaluate(run.path, data=tmp_path / "site", threshold=t, out=tmp_path / "python")
    assert numbers == judged
    for words in (["evaluate", str(run.path), "--data", "site"], ["export", str(run.path), "--out", "other"]):
        for wrong in ("inf", "1.5", "nan"):
            refused = command(*words, "--threshold", wrong)
            assert (refused.returncode, "argument 'threshold' to be" in refused.stderr) == (2, True), words
    assert not (tmp_path / "other").exists()


def test_python_says_the_same(toy: Manifest, run: RunDirectory, tmp_path: Path) -> None:
    folder = toy.root / "images" / "test" / "wax"
    done = ltds.predict(run.path, folder, out=tmp_path / "p.csv", threshold=-99)
    assert sum(done.counts.values()) == len(done) == 18
    assert [one.file for one in done] == sorted(folder.rglob("*.png"))
    assert done.skipped == ()
    result = ltds.export(run.path, tmp_path / "model")
    assert result.difference == 0
    numbers = ltds.evaluate(tmp_path / "model", data=toy, split="test", out=tmp_path / "e")
    assert numbers["data"]["images"] == len(toy.rows("test"))


def test_the_nearest_training_images_in_every_format(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path
) -> None:
    row = int(toy.rows("train", "oil")[0])
    image = str(toy.root / toy.paths[row])
    done = command("predict", str(run.path), image, "--nearest", "2", "--out", "n.csv")
    assert done.returncode == 0, done.stderr
    assert f"1.00 ant in oil: {toy.paths[row]}" in done.stdout
    (line,) = rows_of(tmp_path / "n.csv")
    first = {name: line[f"nearest_1_{name}"] for name in ("path", "class", "domain")}
    assert first == {"path": toy.paths[row], "class": "ant", "domain": "oil"}
    assert float(line["nearest_1_similarity"]) >= float(line["nearest_2_similarity"])
    assert command("predict", str(run.path), image, "--nearest", "2", "--out", "n.jsonl").returncode == 0
    nearest = json.loads((tmp_path / "n.jsonl").read_text())["nearest"]
    assert nearest[0] == {**first, "similarity": float(line["nearest_1_similarity"])}
    assert len(nearest) == 2
    folder = str(toy.root / "images" / "test" / "wax" / "ant")
    assert command("predict", str(run.path), folder, "--nearest", "2", "--out", "n.png").returncode == 0
    with Image.open(tmp_path / "n.png") as sheet:
        assert sheet.size == (6 + 6 * 134, 6 + 2 * (128 + 34 + 6)), "two images with two neighbours each fit in a row"
    hint = command("predict", str(run.path), image, "--nearest", "2").stderr
    assert "--nearest 2 --out predictions.csv" in hint
    assert command("export", str(run.path), "--out", "model", "--nearest").returncode == 0
    assert command("predict", "model", image, "--nearest", "2", "--out", "e.csv").returncode == 0
    assert (tmp_path / "e.csv").read_text() == (tmp_path / "n.csv").read_text()
    assert command("export", str(run.path), "--out", "bare").returncode == 0
    refused = command("predict", "bare", image, "--nearest", "2")
    assert refused.returncode == 2
    assert "exported without them" in refused.stderr
    assert "ltds export ... --nearest" in refused.stderr
    assert "--data FOLDER" in refused.stderr


def test_options_for_other_data_need_other_data(run: RunDirectory, command: Command, tmp_path: Path) -> None:
    before = run.metrics_file.stat().st_mtime_ns
    for words in (
        ["--out", "o"],
        ["--split", "test"],
        ["--threshold", ".5"],
        ["--batch-size", "8"],
        ["--device", "cpu"],
        ["--trust", "mine"],
    ):
        refused = command("evaluate", str(run.path), *words)
        assert refused.returncode == 2, words
        assert "only with 'data', but got one without it" in refused.stderr
        assert "Give it as: --data FOLDER" in refused.stderr
    for argument in (
        {"out": tmp_path / "o"},
        {"split": "test"},
        {"threshold": 0.5},
        {"batch_size": 8},
        {"device": "cpu"},
        {"trust": ["m"]},
    ):
        with pytest.raises(ConfigError, match="only with 'data', but got one without it"):
            ltds.evaluate(run, **argument)  # type: ignore[arg-type]
    assert run.metrics_file.stat().st_mtime_ns == before, "nothing was computed"
    assert command("evaluate", str(run.path), "--split", "all", "--device", "auto").returncode == 0


@pytest.mark.parametrize("name", ["gpu", "cuda:0"])
def test_a_device_that_does_not_exist_is_a_sentence(
    toy: Manifest, run: RunDirectory, command: Command, tmp_path: Path, name: str
) -> None:
    image, data = str(toy.root / toy.paths[0]), str(toy.root)
    save_file(TinyNet().state_dict(), tmp_path / "tiny.safetensors")
    for words in (
        ["predict", str(run.path), image],
        ["serve", str(run.path)],
        ["evaluate", str(run.path), "--data", data, "--split", "test"],
        ["data", "features", data, "--backbone", "tiny", "--weights", "tiny.safetensors"],
        ["data", "stylize", str(toy.root / "images"), "--style", "classical:oil", "--out", "styled"],
    ):
        refused = command(*words, "--device", name)
        assert refused.returncode == 2, refused.stderr
        assert f"to be one of auto, cpu, cuda, mps, but got '{name}'" in refused.stderr, words
        assert "Give it as: --device auto\n" in refused.stderr


def test_a_model_of_vectors_is_never_said_to_take_images(toy: Manifest, command: Command, tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(len(toy), 7)).astype(np.float32)
    ltds.write_features(tmp_path / "own.npz", vectors, toy.paths)
    words = ["--set", "schedule.epochs=1", "--set", "schedule.steps_per_epoch=2", "--set", "data.batch_size=8"]
    done = command("train", str(toy.root), "--features", "own.npz", "--method", "agg", "--out", "run", *words)
    assert done.returncode == 0, done.stderr
    assert "To use the model in Python: ltds.load_model('run').predict(VECTORS)" in done.stderr
    assert len(ltds.load_model(tmp_path / "run").predict(vectors[:2])) == 2
    done = command("export", "run", "--out", "model")
    assert "Use it in Python: ltds.load_model('model').predict(VECTORS)" in done.stderr
    assert "ltds predict" not in done.stderr
    done = command("export", "run", "--to", "onnx", "--out", "onnx")
    assert "python onnx/predict_onnx.py VECTORS.npy" in done.stderr
