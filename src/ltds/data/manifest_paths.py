"""Where the images of a manifest may be: below its folder, and in folders that the user names.

A dataset from somebody else could otherwise name any image of this machine, and reports show images.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ltds.core.errors import DataError

VARIABLE = "LTDS_OUTSIDE"  # folders, separated as in PATH


def require_inside(file: Path, paths: Iterable[str]) -> None:
    """Raise where a path of manifest.csv leads outside its folder, and not into a folder that LTDS_OUTSIDE names."""
    # "../" and absolute paths, in the spelling of this system; a link in the folder is the user's own affair.
    outside = [path for path in paths if (".." in path or os.path.isabs(path)) and _leads_out(path)]
    if not outside:
        return
    allowed = [os.path.abspath(folder) for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    root = os.path.abspath(file.parent)
    for path in outside:
        whole = os.path.normpath(os.path.join(root, path))
        if not any(whole.startswith(os.path.join(folder, "")) for folder in allowed):
            raise DataError(
                f"Expected the paths in '{file}' to be below its folder, but got '{path}'. Copy or link the images "
                f"into that folder; or, if you trust this dataset, name the folder of the images in the environment "
                f"variable {VARIABLE}."
            )


def _leads_out(path: str) -> bool:
    return os.path.isabs(path) or os.path.normpath(path).split(os.sep)[0] == ".."
