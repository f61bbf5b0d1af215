"""Whose code an unexpected error comes from: that of ltds, or a module of the user."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from traceback import FrameSummary

import ltds

_LTDS = Path(ltds.__file__).resolve().parent
_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
_INSTALLED = {"site-packages", "dist-packages"}


def users_frame(error: BaseException) -> FrameSummary | None:
    """Where in the user's own file an error arose; None if it arose in ltds.

    Frames in libraries do not count: the fault is with whoever called them. A method that is installed as a package
    cannot be told from a library.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.resolve().is_relative_to(_LTDS):
            return None
        if file.is_file() and not _is_library(file):
            return frame
    return None


def say_where(frame: FrameSummary, error: BaseException) -> str:
    """The sentence that ends the traceback of an error in the user's own file."""
    text = str(error)
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"'{frame.filename}', line {frame.lineno}, in {frame.name}: {what}"


def _is_library(file: Path) -> bool:
    return bool(_INSTALLED & set(file.parts)) or file.resolve().is_relative_to(_LIBRARY)
