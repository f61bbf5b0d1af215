"""What damage to a run's files does: it is noticed, said, and costs as little as it can."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from torch import Tensor

from command_line import PROGRAM
from ltds.core.errors import CheckpointError, LtdsWarning
from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine import checkpoint
from ltds.engine.checkpoint import TrainState, load_checkpoint, save_checkpoint
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.start import resume_run
from ltds.reporting.journal_file import read_journal
from other_disks import no_links
from resuming import assert_same_outcome
from toy import recorded, toy_session, write_dataset


def flip(file: Path, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)


def stopped(toy: Manifest, folder: Path, steps: int, **groups: dict[str, object]) -> RunDirectory:
    session = toy_session(toy, **groups)
    run = recorded(session, folder)
    train(session, run, stop_after=steps)
    return run


@pytest.fixture(scope="module")
def straight(toy: Manifest, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    session = toy_session(toy)
    run = recorded(session, tmp_path_factory.mktemp("straight") / "run")
    train(session, run)
    return run


def test_every_flipped_bit_of_a_checkpoint_is_noticed(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    file = tmp_path / "c.safetensors"
    save_checkpoint(file, session.method, session.optimizer, TrainState(3, 0.5, 2), "identity")
    whole, rng = file.read_bytes(), numpy_generator(0, "tests/bits")
    header = 8 * (8 + int.from_bytes(whole[:8], "little"))
    bits = [*rng.integers(0, header, 150), *rng.integers(header, 8 * len(whole), 150)]
    for bit in bits:
        file.write_bytes(whole)
        flip(file, int(bit))
        try:
            state = load_checkpoint(file, session.method, identity="identity")
        except CheckpointError:
            continue
        # JSON has more than one spelling of the same thing: only such a flip may pass, and changes nothing.
        assert bit < header
        assert state == TrainState(3, 0.5, 2)


def test_a_flip_in_the_best_weights_changes_no_prediction_silently(straight: RunDirectory, tmp_path: Path) -> None:
    run = RunDirectory(Path(shutil.copytree(straight.path, tmp_path / "run")))
    flip(run.best_checkpoint, 8 * run.best_checkpoint.stat().st_size - 3)
    with pytest.raises(CheckpointError, match="does not match its checksum: the disk or a copy has changed it"):
        load_model(run.path)


def test_a_checkpoint_of_the_format_before_is_still_read(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    tensors = {f"method.{name}": value.contiguous() for name, value in session.method.state_dict().items()}
    header = {"format": 2, "state": {"step": 3, "best_accuracy": 0.5, "best_step": 2}, "identity": "x"}
    save_file(tensors, tmp_path / "old.safetensors", {"ltds": json.dumps(header)})
    assert load_checkpoint(tmp_path / "old.safetensors", session.method) == TrainState(3, 0.5, 2)


@pytest.mark.parametrize("damage", ["flipped", "cut", "missing"])
def test_a_damaged_last_checkpoint_falls_back_to_the_one_before(
    toy: Manifest, tmp_path: Path, straight: RunDirectory, damage: str
) -> None:
    run = stopped(toy, tmp_path / "run", 4)
    assert load_file(run.previous_checkpoint).keys() == load_file(run.last_checkpoint).keys()
    match damage:
        case "flipped":
            flip(run.last_checkpoint, 8 * run.last_checkpoint.stat().st_size - 100)
        case "cut":
            os.truncate(run.last_checkpoint, run.last_checkpoint.stat().st_size // 2)
        case "missing":
            run.last_checkpoint.unlink()
    with pytest.warns(LtdsWarning, match="Continuing from the checkpoint before it, after 2 steps"):
        resume_run(run)
    assert_same_outcome(straight, run)
    assert not run.previous_checkpoint.exists()


def test_without_any_checkpoint_a_long_run_does_not_silently_start_again(toy: Manifest, tmp_path: Path) -> None:
    run = stopped(toy, tmp_path / "run", 4)
    shutil.rmtree(run.last_checkpoint.parent)
    with pytest.raises(CheckpointError, match=r"because the journal goes to step 4, but got none\. Put 'last"):
        resume_run(run)


def test_a_run_killed_before_its_first_checkpoint_starts_again(
    toy: Manifest, tmp_path: Path, straight: RunDirectory
) -> None:
    run = stopped(toy, tmp_path / "run", 1)
    shutil.rmtree(run.last_checkpoint.parent)
    resume_run(run)
    assert_same_outcome(straight, run)


def test_a_run_is_not_continued_on_another_dataset(tmp_path: Path) -> None:
    own = write_dataset(tmp_path / "data")
    run = stopped(own, tmp_path / "run", 1)
    shutil.rmtree(run.last_checkpoint.parent)  # no checkpoint yet, which would know its dataset
    lines = (own.root / "manifest.csv").read_text().splitlines()
    kept = [line for line in lines if "train/ink/ant/8" not in line]
    assert len(kept) == len(lines) - 1
    (own.root / "manifest.csv").write_text("\n".join(kept) + "\n")
    header = json.loads((own.root / "manifest.json").read_text())
    header.pop("checksum", None)
    (own.root / "manifest.json").write_text(json.dumps(header))
    with pytest.raises(CheckpointError, match=r"has other counts than 'task\.json' says\. Restore the dataset"):
        resume_run(run)


@pytest.mark.parametrize(
    ("state", "metadata"),
    [({"step": -5, "best_accuracy": 0.1, "best_step": 0}, None), (7, None), ({"step": "3"}, None), (None, "[1]")],
)
def test_odd_metadata_is_a_sentence(toy: Manifest, tmp_path: Path, state: object, metadata: str | None) -> None:
    session = toy_session(toy)
    tensors = {f"method.{name}": value.contiguous() for name, value in session.method.state_dict().items()}
    text = metadata or json.dumps({"format": 2, "state": state, "identity": "x"})
    save_file(tensors, tmp_path / "odd.safetensors", {"ltds": text})
    with pytest.raises(CheckpointError, match=r"odd\.safetensors' to"):
        load_checkpoint(tmp_path / "odd.safetensors", session.method)


def test_odd_values_in_json_files(toy: Manifest, tmp_path: Path, straight: RunDirectory) -> None:
    run = stopped(toy, tmp_path / "run", 4)
    environment = run.read_environment()
    run.write_environment({**environment, "resumed": 5})
    resume_run(run)
    assert len(run.read_environment()["resumed"]) == 1
    assert_same_outcome(straight, run)
    task = json.loads(run.task_file.read_text())
    for change in ({"counts": [[10**30] * 6] * 2}, {"classes": "abcdef"}, {"classes": [1] * 6}, {"domains": 3}):
        run.task_file.write_text(json.dumps({**task, **change}))
        with pytest.raises(CheckpointError, match=r"task\.json' to describe a task"):
            run.read_task()
    for text in ("9" * 5000, "[" * 100_000):
        run.task_file.write_text(text)
        with pytest.raises(CheckpointError, match=r"task\.json' to be valid JSON"):
            run.read_task()
    run.config_file.write_text(f"a = {'9' * 5000}")
    with pytest.raises(CheckpointError, match=r"config\.toml' to be valid TOML"):
        run.read_config()


@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_damaged_class_embeddings_are_written_again(toy: Manifest, tmp_path: Path, damage: str) -> None:
    """They are a copy; without them some numbers would be missing in metrics.json."""
    straight = stopped(toy, tmp_path / "straight", 6, method={"name": "ltds"})
    run = stopped(toy, tmp_path / "run", 4, method={"name": "ltds"})
    whole = run.embeddings_file.read_bytes()
    if damage == "missing":
        run.embeddings_file.unlink()
    else:
        flip(run.embeddings_file, 8 * whole.index(b"vectors") + 8 * 200)
    resume_run(run)
    assert run.embeddings_file.read_bytes() == whole
    assert_same_outcome(straight, run)


def test_a_damaged_journal_line_costs_that_line(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.journal_file.write_bytes(b'{"step": 1}\n{"st\xff\x00p"\n[1]\n{"step": "2"}\n{"step": 3}\n{"step": 4')
    assert run.read_journal() == [{"step": 1}, {"step": 3}]
    with run.journal_file.open("a") as stream:  # too deep for a parser
        stream.write("\n" + "[" * 100_000 + '\n{"step": 5}')
    assert run.read_journal() == list(read_journal(run.journal_file)) == [{"step": 1}, {"step": 3}, {"step": 5}]
    assert run.last_line(0.0)[0] == 5


def test_leftovers_of_killed_writers_are_removed(toy: Manifest, tmp_path: Path, straight: RunDirectory) -> None:
    run = stopped(toy, tmp_path / "run", 4)
    hexadecimal = "0123456789ab"
    leftovers = [run.path / f".log.jsonl.{hexadecimal}.part"]
    leftovers += [run.last_checkpoint.parent / f".last.safetensors.{hexadecimal}.part"]
    others = [run.path / ".download.part", run.path / "other" / f".last.safetensors.{hexadecimal}.part"]
    others[1].parent.mkdir()
    for file in leftovers + others:
        file.write_bytes(b"half")
    resume_run(run)
    assert not any(file.exists() for file in leftovers)
    assert all(file.exists() for file in others)
    assert_same_outcome(straight, run)


def test_a_kill_between_keeping_the_old_checkpoint_and_the_new_one_leaves_nothing(
    toy: Manifest, tmp_path: Path, straight: RunDirectory
) -> None:
    """Then `previous` and `last` are two names of one file, and renaming a third name onto the first does nothing."""
    run = stopped(toy, tmp_path / "run", 4)
    run.previous_checkpoint.unlink()
    os.link(run.last_checkpoint, run.previous_checkpoint)
    resume_run(run)
    assert list(run.path.rglob("*.part")) == []
    assert_same_outcome(straight, run)


def test_the_command_line_says_that_it_fell_back(toy: Manifest, tmp_path: Path) -> None:
    run = stopped(toy, tmp_path / "run", 4)
    os.truncate(run.last_checkpoint, 100)
    code = [*PROGRAM, "train", "--resume", str(run.path)]
    done = subprocess.run(code, capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "ltds: Expected" in done.stderr
    assert "Continuing from the checkpoint before it, after 2 steps." in done.stderr
    assert "LtdsWarning" not in done.stderr


def test_without_hard_links_the_old_checkpoint_is_kept_too(
    toy: Manifest, tmp_path: Path, straight: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)
    run = stopped(toy, tmp_path / "run", 4)
    run.last_checkpoint.unlink()
    with pytest.warns(LtdsWarning, match="Continuing from the checkpoint before it, after 2 steps"):
        resume_run(run)
    assert_same_outcome(straight, run)


def test_without_hard_links_a_kill_between_the_two_renames_loses_no_step(
    toy: Manifest, tmp_path: Path, straight: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = checkpoint.rename

    def killed(source: Path, target: Path) -> None:
        real(source, target)
        if target.name == "previous.safetensors":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(checkpoint, "rename", killed)
    with pytest.raises(KeyboardInterrupt):  # where it would have written its second checkpoint
        stopped(toy, tmp_path / "run", 4)
    monkeypatch.undo()
    run = RunDirectory(tmp_path / "run")
    assert not run.last_checkpoint.exists()
    with pytest.warns(LtdsWarning, match="is missing. Continuing from the checkpoint before it, after 2 steps"):
        resume_run(run)
    assert_same_outcome(straight, run)


def test_a_checkpoint_that_was_read_may_be_replaced_or_cut(toy: Manifest, tmp_path: Path) -> None:
    """Windows replaces no file that is mapped into memory, and Linux kills who reads a mapped file that was cut."""
    adamw = {"optimizer": {"name": "adamw"}, "averaging": {"name": "swad"}}
    run = stopped(toy, tmp_path / "run", 4, **adamw)
    session, average = toy_session(toy, **adamw), dict[str, Tensor]()
    load_checkpoint(run.last_checkpoint, session.method, session.optimizer, average=average)
    steps = [state["step"] for state in session.optimizer.state.values()]
    if Path("/proc/self/maps").exists():
        assert str(run.path) not in Path("/proc/self/maps").read_text()
    os.truncate(run.last_checkpoint, 0)
    assert {float(step) for step in steps} == {4.0}
