"""Text files that people write: UTF-8, with or without a byte-order mark; anything else is a clear error."""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ltds.core.errors import DataError, expected

# Control characters except tab and line end, what terminals treat like them, and marks that reorder a line.
_COMMANDS = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}
_COMMANDS |= {code: f"\\u{code:04x}" for code in (0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes a cell that begins with one of these


def inert(text: str) -> str:
    """The text with control characters spelled out: a name from a file must not give commands to a terminal."""
    return text.translate(_COMMANDS)


def few(texts: Sequence[str], shown: int = 5) -> str:
    """The first of these texts, and how many more there are."""
    more = f" and {len(texts) - shown} more" if len(texts) > shown else ""
    return ", ".join(texts[:shown]) + more


def few_quoted(names: Sequence[str]) -> str:
    return few([f"'{name}'" for name in names])


def printable(path: Path | str) -> str:
    """The path or name as text that every terminal and file can hold: bytes that are no UTF-8 as \\x escapes."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def path_cell(path: Path | str) -> str:
    """The path for a cell of a table: ./=1+1.jpg for =1+1.jpg, which a spreadsheet would compute as a formula."""
    text = printable(path)
    return f"./{text}" if text.startswith(FORMULA_STARTS) else text


def is_utf8(name: str) -> bool:
    """Whether this is text: Python holds other bytes of a file's name as lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def composed(name: str) -> str:
    """The name in Unicode's form NFC: an accent may be encoded in two ways, and a Mac's files have the other one."""
    return unicodedata.normalize("NFC", name)


@contextmanager
def reading(file: Path) -> Iterator[TextIO]:
    """The file, open as UTF-8 text with or without a byte-order mark; other bytes are an error that names the line."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            yield stream
    except UnicodeDecodeError as error:
        got = f"the byte 0x{error.object[error.start]:02x} in line {_first_undecodable(file)}"
        remedy = "Save it again as UTF-8 (a spreadsheet calls it 'CSV UTF-8')."
        raise DataError(expected(f"'{file}'", "text in UTF-8", got, remedy)) from error
    except csv.Error as error:
        raise DataError(expected(f"'{file}'", "a CSV file", f"{error}", "Save it again as CSV.")) from error


def _first_undecodable(file: Path) -> int:
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def text_lines(file: Path) -> list[str]:
    """The lines of a small text file, without blank ones."""
    with reading(file) as stream:
        return [line.strip() for line in stream if line.strip()]
