"""Text files that people write: UTF-8, with or without a byte-order mark; anything else is a clear error."""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
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


def count(number: int, one: str, several: str = "") -> str:
    """ "1 image", "2 images". `several`: the words for other numbers, as in count(n, "image was", "images were")."""
    plural = several or (f"{one}es" if one.endswith("ss") else f"{one}s")
    return f"1 {one}" if number == 1 else f"{number} {plural}"


def few_quoted(names: Sequence[str]) -> str:
    return few([f"'{name}'" for name in names])


def printable(path: Path | str) -> str:
    """The path or name as text that every terminal and file can hold: bytes that are not UTF-8 as \\x escapes."""
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


def score_decimals(score: float, others: Iterable[float] = ()) -> int:
    """How many decimals show a score: four, or as many as tell it from others and, with one digit more, from 0 and 1.

    Scores for "unknown" are often close to 1: of a threshold of 0.99996, four decimals would say that it is 1.
    """

    def differs(other: float, decimals: int) -> bool:
        return other == score or f"{score:.{decimals}f}" != f"{other:.{decimals}f}"

    compared = list(others)
    for decimals in range(4, 17):
        if all(differs(end, decimals - 1) for end in (0, 1)) and all(differs(other, decimals) for other in compared):
            return decimals
    return 17


def score_text(score: float, others: Iterable[float] = ()) -> str:
    """The score with `score_decimals`."""
    return f"{score:.{score_decimals(score, others)}f}"


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
