"""Values from Python programs as plain ones: people pass NumPy's numbers, as np.arange gives them, and paths."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np


def plain_value(value: Any) -> Any:
    """The value without NumPy's types, and with paths as text, even inside mappings and lists."""
    match value:
        case np.generic():
            return value.item()
        case np.ndarray():
            return value.tolist()
        case PurePath():
            return str(value)
        case Mapping():
            return {name: plain_value(part) for name, part in value.items()}
        case list() | tuple():
            return [plain_value(part) for part in value]
        case _:
            return value
