"""Word vectors: class embeddings from GloVe and word2vec files, of which only the needed words are kept."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

import numpy as np
import torch
from numpy.typing import NDArray

from ltds.core.errors import DataError, expected
from ltds.core.files import sha256
from ltds.semantics.embeddings import ClassEmbeddings
from ltds.semantics.texts import words

BLOCK = 1 << 20
WIDEST = 100_000  # numbers of a vector: more is a damaged header
REMEDY = "Copy it again from its source: it is damaged, or another type of file."
Vector = NDArray[np.float64]


def from_word_vectors(file: Path, classes: Sequence[str], aliases: Mapping[str, str] | None = None) -> ClassEmbeddings:
    """The mean of the vectors of each class's words; one error names every word without a vector.

    A word is looked up as it is written, or else in lower case, Capitalised, or in CAPITALS. `aliases` gives other
    words for a class.
    """
    texts = {name: (aliases or {}).get(name, name) for name in classes}
    needed = {word for text in texts.values() for word in words(text)}
    vectors = read_vectors(file, needed)
    chosen = {word: next((form for form in _forms(word) if form in vectors), None) for word in needed}
    missing = [f"'{word}' ({name})" for name, text in texts.items() for word in words(text) if chosen[word] is None]
    wordless = [f"'{name}' (no words in it)" for name, text in texts.items() if not words(text)]
    if missing or wordless:
        remedy = "Give other words for those classes (argument 'alias', like CLASS=WORDS), or use a larger file."
        rule = f"in '{file.name}'"
        raise DataError(expected("the words of every class", rule, f"none for {', '.join(missing + wordless)}", remedy))
    rows = [np.mean([vectors[cast(str, chosen[word])] for word in words(text)], axis=0) for text in texts.values()]
    provenance = {
        "model": file.name,
        "sha256": sha256(file),
        "text": "names, mean of the words' vectors",
        "words": {name: [chosen[word] for word in words(text)] for name, text in texts.items()},
    }
    return ClassEmbeddings(tuple(classes), torch.from_numpy(np.stack(rows)), provenance)


def _forms(word: str) -> tuple[str, ...]:
    return (word, word.lower(), word.capitalize(), word.upper())


def read_vectors(file: Path, needed: Iterable[str]) -> dict[str, Vector]:
    """The vectors of these words in any of their spellings, read in one pass that keeps nothing else.

    The type of file is recognised: word2vec and fastText files start with a line of two numbers, GloVe files do not,
    and what follows is text or binary. Files may be compressed by gzip.
    """
    if not file.is_file():
        raise DataError(expected(f"'{file}'", "a file of word vectors", "nothing there", "Check the path."))
    exact = {word.encode() for word in needed}
    wanted = {form.encode() for word in needed for form in _forms(word)}
    vectors: dict[str, Vector] = {}
    try:
        with _opened(file) as stream:
            for word, vector in _entries(stream, file, wanted):
                vectors.setdefault(word.decode(), vector)  # of a repeated word the first is the most frequent
                exact.discard(word)
                if not exact:
                    break
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(expected(f"'{file}'", "readable to its end", f"'{error}'", REMEDY)) from error
    return vectors


def _opened(file: Path) -> IO[bytes]:
    with file.open("rb") as stream:
        compressed = stream.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(file)) if compressed else file.open("rb")


def _entries(stream: IO[bytes], file: Path, wanted: set[bytes]) -> Iterator[tuple[bytes, Vector]]:
    first = stream.readline(BLOCK)
    header = first.split()
    if len(header) == 2 and all(field.isdigit() and len(field) < 19 for field in header):
        count, width = map(int, header)
        if width > WIDEST:
            raise DataError(expected(f"the vectors of '{file}'", f"of at most {WIDEST} numbers", width, REMEDY))
        second = stream.readline(BLOCK)
        if _numbers(second.split()[1:], width) is None:
            yield from _binary(second, stream, file, count, width, wanted)
        else:
            yield from _text(second, stream, file, width, wanted, count)
    elif len(header) > 2 and _numbers(header[1:], len(header) - 1) is not None:
        yield from _text(first, stream, file, len(header) - 1, wanted)
    else:
        got = f"'{first[:60].decode(errors='replace').strip()}'"
        remedy = "Name a GloVe .txt, or a word2vec .bin or .vec file, compressed by gzip or not (no .zip)."
        raise DataError(expected(f"the first line of '{file}'", "a word and its numbers, or two counts", got, remedy))


def _text(
    first: bytes, stream: IO[bytes], file: Path, width: int, wanted: set[bytes], count: int | None = None
) -> Iterator[tuple[bytes, Vector]]:
    line, number = first, 0
    while line:
        number += 1
        word = line[: line.find(b" ")] if b" " in line else line.split(b"\t")[0]
        if word in wanted:
            fields = line.split()
            if len(fields) <= width + 1:  # more: a phrase such as "at name@domain.com", which GloVe 840B has
                vector = _numbers(fields[1:], width)
                if vector is None:
                    got = f"'{line[:60].decode(errors='replace').strip()}...'"
                    raise DataError(expected(f"entry {number} of '{file}'", f"a word and {width} numbers", got, REMEDY))
                yield word, vector
        line = stream.readline()
    if count is not None and number < count:
        raise DataError(expected(f"'{file}'", f"{count} words, as its first line says", number, REMEDY))


def _numbers(fields: list[bytes], width: int) -> Vector | None:
    try:
        vector = np.array([float(field) for field in fields])
    except ValueError:
        return None
    return vector if len(vector) == width and bool(np.isfinite(vector).all()) else None


def _binary(
    read: bytes, stream: IO[bytes], file: Path, count: int, width: int, wanted: set[bytes]
) -> Iterator[tuple[bytes, Vector]]:
    """Entries of word2vec's binary: the word, a space, `width` floats of 4 bytes, and perhaps a line end."""
    buffer, start, size = read, 0, 4 * width
    for number in range(count):
        while (end := buffer.find(b" ", start)) < 0 or len(buffer) < end + 1 + size:
            more = stream.read(BLOCK)
            if not more:
                got = f"an end after {number} of them"
                raise DataError(expected(f"'{file}'", f"{count} words, as its first line says", got, REMEDY))
            buffer, start = buffer[start:] + more, 0
        word = buffer[start:end].lstrip(b"\n")
        start = end + 1 + size
        if word in wanted:
            vector = np.frombuffer(buffer, dtype="<f4", count=width, offset=end + 1).astype(np.float64)
            yield word, vector
