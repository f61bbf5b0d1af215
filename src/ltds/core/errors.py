"""Errors for people: what was expected, what came, what to do next.

A message below `cli` never spells a command-line flag, because it also reaches people who call Python functions. It
names the setting (optimizer.lr), the argument of the function or the thing ("another folder"). The command line prints
the message, then one line on how to type the remedy. It makes that line from the attributes of the error (see
`LtdsError`); where there are none, it looks in the message (`cli/hints.py`) for

- the dotted name of a setting, alone or with a value: optimizer.lr or optimizer.lr=0.05;
- setting 'ratio', for a setting without a dot, as dataset builders have them;
- argument 'source', for an argument of the function, which is an option of the command;
- argument 'nearest' of ltds.export, for one of another function, whose command has the same name;
- another folder, for where the output goes.

It ignores a line that says "leave it out", and lists of choices.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class LtdsError(ValueError):
    """A mistake that the user can correct. The command line prints the message without a traceback and exits with 2.

    `settings` are dotted names of settings to change, with a value where one can be recommended ("data.size=64").
    `arguments` are arguments of the called function, with or without a value ("out", "jobs=2"); an option of the
    command has the same name. `resume` is the run directory to resume. All three are optional: the message says what
    to do in words. `got` is what came instead, where `expected` made the message, otherwise "".

        raise ConfigError("Expected ..., but got ... . Lower optimizer.lr.", settings=["optimizer.lr"])
        raise DataError("Expected ..., but got ... . Choose another folder.", arguments=["out"])
    """

    def __init__(
        self, message: str, *, settings: Iterable[str] = (), arguments: Iterable[str] = (), resume: Path | None = None
    ) -> None:
        super().__init__(message)
        self.settings, self.arguments, self.resume = tuple(settings), tuple(arguments), resume
        self.got = message.got if isinstance(message, ExpectedSentence) else ""

    @property
    def reason(self) -> str:
        """What is wrong, in a few words for a list of many: without what was expected and what to do."""
        return self.got or str(self)


class TrainingInterrupted(KeyboardInterrupt):
    """The user interrupted the training. `folder` was chosen for its run or series."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder


class DataError(LtdsError):
    """Images, manifests or datasets that cannot be used as they are."""


class ConfigError(LtdsError):
    """Settings that contradict each other, have no effect, or do not exist."""


class CheckpointError(LtdsError):
    """A run or checkpoint that cannot be read, resumed or trusted."""


class TrainingError(LtdsError):
    """Training that cannot go on, such as a loss that became NaN."""


class ExportError(LtdsError):
    """A model that cannot be exported, or whose export does not compute the same."""


class LtdsWarning(UserWarning):
    """Something that the user should know, although the work goes on. The command line prints only the sentence."""


class ExpectedSentence(str):
    """A message that `expected` made; it knows what came, which nobody could find in the text again."""

    got = ""


def expected(thing: str, rule: str, got: object, remedy: str) -> ExpectedSentence:
    """The standard sentence: "Expected <thing> to be <rule>, but got <value>. <Remedy.>"."""
    sentence = ExpectedSentence(f"Expected {thing} to be {rule}, but got {got}. {remedy}")
    sentence.got = str(got)
    return sentence


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A hint that names the closest valid choice first, then all of them."""
    known = sorted(choices)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"Did you mean '{close[0]}'? " if close else ""
    return f"{guess}Choices: {', '.join(known) if known else '(none)'}."
