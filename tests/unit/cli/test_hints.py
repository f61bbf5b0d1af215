"""How to type a remedy: what the command line adds to an error that names a setting, an argument or a run."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import typer

from ltds.cli.hints import find_command, hint
from ltds.cli.main import app
from ltds.core.errors import ConfigError, DataError, LtdsError

COMMAND = typer.main.get_command(app)


def said(error: LtdsError, *words: str) -> str:
    return hint(error, find_command(COMMAND, words))


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("The loss is NaN. Lower optimizer.lr.", "--set optimizer.lr=VALUE"),
        ("Setting 'optimizer.lr' was inf: not a finite number.", "--set optimizer.lr=VALUE"),
        ("Use optimizer.lr=0.01.", "--set optimizer.lr=0.01"),
        ("Setting 'optimizer.lr' was 9. Lower it: optimizer.lr=0.01", "--set optimizer.lr=0.01"),
        ("The setting 'method.strict' is now called 'method.hide_open_names'.", "--set method.hide_open_names=VALUE"),
        ("Use method.mixstyle.stages=[1, 2], or larger images.", "--set 'method.mixstyle.stages=[1, 2]'"),
        ("There is no setting 'optimizer.lrr'. Did you mean 'optimizer.lr'? Choices: data.size, optimizer.lr.",
         "--set optimizer.lr=VALUE"),
    ],
)  # fmt: skip
def test_a_setting_in_the_message(message: str, line: str) -> None:
    assert said(ConfigError(message), "train") == f"Give it as: {line} (or in the TOML file)"
    assert said(ConfigError(message), "-q", "demo") == f"Give it as: {line}"
    assert said(ConfigError(message), "evaluate", "run") == ""  # it has no option for settings


def test_words_that_are_no_settings_get_no_hint() -> None:
    text = "The line 3 of 'log.jsonl' and data.csv cannot be read. There is no setting 'ratioo'."
    assert said(ConfigError(text), "train") == ""
    assert said(ConfigError("Got argument 'data' and data.root. Leave one of them out."), "train") == ""
    two = "- Setting 'data.size' was 0: too small.\n- method.alpha has no effect without mixing: leave it out."
    assert said(ConfigError(two), "demo") == "Give it as: --set data.size=VALUE"


def test_a_setting_of_a_builder_has_its_option_or_set() -> None:
    build = ("data", "build", "pacs-odg")
    assert said(ConfigError("Setting 'order' was 'X': no."), *build) == "Give it as: --order VALUE"
    assert said(ConfigError("Setting 'damaged' was 'X': no."), *build) == "Give it as: --set damaged=VALUE"


def test_an_argument_of_another_function_names_its_command() -> None:
    text = "Name the dataset, or export the run again, with the argument 'nearest' of ltds.export."
    other = "Or type: ltds export ... --nearest"
    assert said(DataError(text), "predict") == other, "predict has an option of that name, too"
    assert said(DataError(text, arguments=["data"]), "predict") == f"Give it as: --data FOLDER\n{other}"


def test_attributes_come_before_the_message() -> None:
    error = ConfigError("Setting 'ratio' is too large.", settings=["ratio=5"])
    assert said(error, "data", "build", "pacs-lt") == "Give it as: --set ratio=5"
    error = DataError("Choose another folder.", arguments=["source=PACS"])
    assert said(error, "data", "build", "pacs-lt") == "Give it as: --source PACS"
    assert said(DataError("x", arguments=["tensorboard"]), "train") == "Give it as: --tensorboard"
    assert said(DataError("x", arguments=["nothing"]), "train") == ""


def test_where_the_output_goes_and_how_to_resume() -> None:
    assert said(DataError("It is not empty. Choose another folder."), "train") == "Give it as: --out FOLDER"
    assert said(DataError("It is not empty. Choose another folder."), "methods") == ""
    error = LtdsError("It is not finished. Resume it.", resume=Path("runs/a"))
    assert said(error, "report") == "Resume it with: ltds train --resume runs/a"
    error = LtdsError("It is not finished. Resume it.", resume=Path("my runs/a"))
    assert said(error, "report") == "Resume it with: ltds train --resume 'my runs/a'"


def test_an_argument_of_the_command_is_typed_as_it_is() -> None:
    error = ConfigError("Expected a dataset, but got none. Name one.", arguments=["data=my photos"])
    assert said(error, "train") == "Give it as: 'my photos'"
    assert said(error, "benchmark") == "Give it as: --data 'my photos'"
    assert said(ConfigError("x", arguments=["data"]), "train") == ""


def test_attributes_survive_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(DataError("x", settings=["a.b"], arguments=["out"], resume=Path("r"))))
    assert (str(error), error.settings, error.arguments, error.resume) == ("x", ("a.b",), ("out",), Path("r"))
