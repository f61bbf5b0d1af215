"""Other packages that print while they work, made silent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def silenced(transformers: Any) -> Iterator[None]:
    """No progress bars and no warnings of the package transformers; afterwards it is as loud as before."""
    logging = transformers.utils.logging
    loudness, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(loudness)
        if bars:
            logging.enable_progress_bar()
