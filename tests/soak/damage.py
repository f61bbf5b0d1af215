"""Bits flipped in every file of a run: it is noticed, or it changes nothing that the run computes."""

from __future__ import annotations

import json
import shutil
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from ltds.core.errors import LtdsError
from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.start import resume_run
from ltds.evaluation.run_metrics import evaluate
from ltds.reporting.collection import collect
from resuming import assert_same_outcome, journal
from soak.child import in_child
from soak.tally import Tally
from toy import recorded, toy_session

METHOD = "ltds"  # it has class embeddings too
WITHOUT_CHECKSUM = ("config.toml", "task.json", "model.json", "environment.json")  # text that people may edit


def make_runs(data: Manifest, folder: Path) -> None:
    """A finished run, and one that was stopped after four of six steps."""
    for name, stop in (("done", None), ("stopped", 4)):
        session = toy_session(data, METHOD)
        train(session, recorded(session, folder / name), stop_after=stop)


def files_of(folder: Path, name: str) -> list[str]:
    root = folder / name
    return sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file() and file.stat().st_size)


def flip_in_stopped(folder: Path, file: str, flips: int, number: int) -> Tally:
    """Resume after each flip: an error in words, or the outcome of the undisturbed run."""
    tally = Tally("bit flipped in a file of a stopped run, then resumed")
    for turn in range(flips):
        work = _damaged(folder, "stopped", file, number + turn)
        end = in_child(partial(_resume_and_compare, folder / "done", work, file))
        _count(tally, end.kind, end.said, f"{file}, flip {number + turn}")
    return tally


def flip_in_done(folder: Path, file: str, flips: int, number: int) -> Tally:
    """Read it for a report and load its model after each flip: words, or the predictions of the undamaged model."""
    tally = Tally("bit flipped in a file of a finished run, then loaded and reported")
    for turn in range(flips):
        work = _damaged(folder, "done", file, number + turn)
        end = in_child(partial(load_and_compare, folder / "done", work, file))
        _count(tally, end.kind, end.said, f"{file}, flip {number + turn}")
    return tally


def _count(tally: Tally, kind: str, said: str, what: str) -> None:
    if kind == "refused":
        tally.add("ended with an error message")
    elif kind == "ended":
        tally.add(said)
    else:
        tally.fault(f"{what}: {kind}: {said[-2000:]}")


def _damaged(folder: Path, name: str, file: str, number: int) -> Path:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder / name, work)
    content = bytearray((work / file).read_bytes())
    bit = int(numpy_generator(number, f"soak/flip/{name}/{file}").integers(8 * len(content)))
    content[bit // 8] ^= 1 << bit % 8
    (work / file).write_bytes(content)
    return work


def _resume_and_compare(straight: Path, work: Path, file: str) -> str:
    run, whole = RunDirectory(work), RunDirectory(straight)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        resume_run(run)
    if file == "log.jsonl":  # a line may be lost or changed, and only that one
        mine, theirs = ([json.dumps(row, sort_keys=True) for row in journal(r)] for r in (run, whole))
        assert len(set(theirs) - set(mine)) <= 1, "more than one line of the journal is lost"
        shutil.copy(whole.journal_file, run.journal_file)
        evaluate(run)  # metrics.json names the step that was kept as the journal says
    assert_same_outcome(whole, run)
    return "same outcome after a warning" if said else "same outcome"


def load_and_compare(straight: Path, work: Path, file: str) -> str:
    with suppress(LtdsError):
        collect([work])
    images = [np.full((20, 20, 3), shade, np.uint8) for shade in (0, 90, 255)]
    before, after = (_predicted(path, images) for path in (straight, work))
    if before != after:
        assert file in WITHOUT_CHECKSUM, f"a flip in {file} changes predictions silently"
        return "other text in a file without checksum"
    return "same predictions"


def _predicted(run: Path, images: list[np.ndarray]) -> list[str]:
    model = load_model(run, device="cpu")
    return [str(prediction) for prediction in model.predict([Image.fromarray(image) for image in images])]
