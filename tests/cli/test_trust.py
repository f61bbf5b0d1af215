"""Code that a file names runs only when the user asks for it: a stranger's run, settings or grid starts nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ltds
from command_line import QUICK, Command, refused
from ltds.core.errors import ConfigError
from ltds.core.runs import RunDirectory
from ltds.core.trust import code_needed, module_of, require_trust
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.engine.start import train_new_run
from toy import recorded, toy_config, toy_session

NAMES = ["method.name", "method.criterion.name", "backbone.name"]
STRANGER = """
from pathlib import Path
from ltds.methods.agg import Agg
import torch.nn.functional as F
from ltds.nn.small import TinyNet

Path(__file__).with_name("IMPORTED").touch()


class Method(Agg):
    "Agg of a stranger."


def criterion(logits, labels, domains, generator):
    return F.cross_entropy(logits, labels, reduction="none")


def backbone():
    return TinyNet()
"""
THINGS = {"method.name": "Method", "method.criterion.name": "criterion", "backbone.name": "backbone"}


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module 'stranger' on the import path; the file IMPORTED appears when it is imported."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "stranger.py").write_text(STRANGER)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "stranger", raising=False)
    yield folder
    sys.modules.pop("stranger", None)


def tampered(toy: Manifest, folder: Path, setting: str, *, stop: int | None) -> RunDirectory:
    """A run of ours whose config.toml was changed to name the stranger's code."""
    session = toy_session(toy)
    run = recorded(session, folder)
    train(session, run, stop_after=stop)
    config = run.read_config()
    *groups, last = setting.split(".")
    table = config
    for group in groups:
        table = table[group]
    table[last] = f"stranger:{THINGS[setting]}"
    run.write_config(config)
    return run


@pytest.mark.parametrize("setting", NAMES)
def test_loading_and_resuming_import_nothing_that_the_run_names(
    toy: Manifest, tmp_path: Path, stranger: Path, setting: str, command: Command
) -> None:
    finished = tampered(toy, tmp_path / "finished", setting, stop=None)
    with pytest.raises(ConfigError, match="they name the module 'stranger'"):
        ltds.load_model(finished.path)
    stopped = tampered(toy, tmp_path / "stopped", setting, stop=2)
    with pytest.raises(ConfigError, match="Importing a module runs its code"):
        ltds.train(resume=stopped.path)
    refused(command("train", "--resume", str(stopped.path)), "Give it as: --trust stranger")
    refused(command("train", "--config", str(stopped.config_file), "--out", "new"), "--trust stranger")
    assert not (stranger / "IMPORTED").exists()
    ltds.load_model(finished.path, trust="stranger")  # one module: its name, or a list of it
    assert (stranger / "IMPORTED").exists()


def test_what_the_user_names_is_imported_and_recorded(
    toy: Manifest, tmp_path: Path, stranger: Path, command: Command
) -> None:
    (tmp_path / "theirs.toml").write_text('[method]\nname = "stranger:Method"\n')
    words = ["train", str(toy.root), "--held-out", "wax", *QUICK]
    refused(command(*words, "--config", "theirs.toml", "--out", "a"), "--trust stranger")
    for number, asked in enumerate((["--trust", "stranger"], ["--method", "stranger:Method"])):
        done = command(*words, "--config", "theirs.toml", "--out", f"run{number}", *asked)
        assert done.returncode == 0, done.stderr
        assert RunDirectory(tmp_path / f"run{number}").read_environment()["code_needed"] == ["stranger"]
    overruled = command(*words, "--config", "theirs.toml", "--out", "own", "--method", "agg")
    assert overruled.returncode == 0, overruled.stderr


def test_a_grid_file_needs_trust_and_its_workers_inherit_it(
    toy: Manifest, tmp_path: Path, stranger: Path, command: Command
) -> None:
    quick = ["data.size=16", "data.batch_size=8", "backbone.name='tiny'", "schedule.epochs=1"]
    lines = [f'data = "{toy.root}"', 'methods = ["stranger:Method"]', 'held_out = ["wax"]', "seeds = [0]"]
    (tmp_path / "grid.toml").write_text("\n".join([*lines, "[settings]", *quick, "schedule.steps_per_epoch=2"]) + "\n")
    refused(command("benchmark", "grid.toml", "--out", "cells"), "Give it as: --trust stranger")
    assert not (stranger / "IMPORTED").exists()
    done = command("benchmark", "grid.toml", "--out", "cells", "--trust", "stranger", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "cells" / "runs").iterdir()
    (run / "DONE").unlink()  # now the worker resumes it from what the run directory says
    assert command("benchmark", "grid.toml", "--out", "cells", "--trust", "stranger", "--jobs", "1").returncode == 0


def test_a_trusted_package_covers_its_modules_and_no_others(toy: Manifest, tmp_path: Path) -> None:
    train_new_run(RunDirectory(tmp_path / "run"), toy_config(toy), toy)
    tables = RunDirectory(tmp_path / "run").read_config()
    tables["backbone"]["name"] = "torch.nn:Identity"
    assert code_needed(tables) == ("torch.nn",)
    for trusted in (["torch"], ["torch.nn"], ["numpy", "torch.nn"], "torch.nn", iter(["numpy", "torch"])):
        require_trust(tables, trusted)
    for not_enough in ([], ["tor"], ["torch.nn.functional"], ["numpy"], "numpy", "", iter(())):
        with pytest.raises(ConfigError, match=r"'torch\.nn'"):
            require_trust(tables, not_enough)


def test_only_plain_names_are_names_of_code() -> None:
    assert module_of("a.b:C") == "a.b"
    for text in ("agg", ":C", "a:", "a-b:C", "C:\\x", "a/b:C", "a..b:C", "a:b:c", "a:b.c"):
        assert module_of(text) is None


def test_the_current_folder_is_not_on_the_import_path(tmp_path: Path) -> None:
    (tmp_path / "stranger.py").write_text(STRANGER)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    script = Path(sys.executable).with_name("ltds")
    for words in ([str(script)], [sys.executable, "-m", "ltds"]):
        done = subprocess.run(
            [*words, "methods", "stranger:Method"], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "No module named 'stranger'" in done.stderr
    assert not (tmp_path / "IMPORTED").exists()
