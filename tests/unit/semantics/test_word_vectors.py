"""Word vectors: every file kind gives the same, names of several words, spellings, and files that cannot be used."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltds.core.errors import ConfigError, DataError
from ltds.semantics.texts import name_texts, read_aliases, read_descriptions, words
from ltds.semantics.word_vectors import from_word_vectors, read_vectors, sha256

VECTORS = {
    ".": (9.0, 9.0, 9.0),
    "killer": (1.0, 0.0, 0.5),
    "whale": (0.0, 1.0, 0.5),
    "Paris": (0.25, 0.5, -1.0),
    "tv": (-1.0, 2.0, 4.0),
    "NASA": (3.0, 0.0, 0.0),
    "café": (0.5, 0.5, 0.5),
}
CLASSES = ("killer+whale", "Whale", "paris", "TV", "nasa", "café")


def glove(file: Path) -> None:
    file.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in VECTORS.items()), encoding="utf-8")


def headed(file: Path) -> None:
    glove(file)
    file.write_text(f"{len(VECTORS)} 3\n" + file.read_text(encoding="utf-8"), encoding="utf-8")


def binary(file: Path, end: bytes = b"\n") -> None:
    entries = [word.encode() + b" " + struct.pack("<3f", *row) + end for word, row in VECTORS.items()]
    file.write_bytes(f"{len(VECTORS)} 3\n".encode() + b"".join(entries))


def binary_without_line_ends(file: Path) -> None:
    binary(file, b"")


def packed(file: Path) -> None:
    binary(file)
    file.write_bytes(gzip.compress(file.read_bytes()))


@pytest.mark.parametrize("write", [glove, headed, binary, binary_without_line_ends, packed])
def test_every_kind_of_file_gives_the_same(write: Callable[[Path], None], tmp_path: Path) -> None:
    file = tmp_path / "vectors"
    write(file)
    made = from_word_vectors(file, CLASSES)
    assert made.names == CLASSES
    rows = [np.mean([VECTORS["killer"], VECTORS["whale"]], axis=0)]
    rows += [np.array(VECTORS[word]) for word in ("whale", "Paris", "tv", "NASA", "café")]
    wanted = torch.tensor(np.stack([row / np.linalg.norm(row) for row in rows])).float()
    assert_close(made.vectors, wanted)
    assert made.provenance["words"]["paris"] == ["Paris"]
    assert made.provenance["sha256"] == sha256(file)


def test_only_what_is_needed_is_kept(tmp_path: Path) -> None:
    glove(tmp_path / "glove.txt")
    assert read_vectors(tmp_path / "glove.txt", ["whale", "absent"]).keys() == {"whale"}


def test_the_word_as_written_goes_before_other_spellings(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("turkey 1 0\nTurkey 0 1\nturkey 5 5\n")
    made = from_word_vectors(tmp_path / "g.txt", ("Turkey", "turkey"))
    assert_close(made.vectors, torch.tensor([[0.0, 1.0], [1.0, 0.0]]))


def test_every_missing_word_is_named_at_once(tmp_path: Path) -> None:
    glove(tmp_path / "glove.txt")
    with pytest.raises(
        DataError, match=r"'humpback' \(humpback\+whale\), 'ox' \(ox\), '\+\+' \(no words in it\).*argument 'alias'"
    ):
        from_word_vectors(tmp_path / "glove.txt", ("humpback+whale", "ox", "whale", "++"))
    aliases = read_aliases(["humpback+whale=whale", "ox=tv whale"], ("humpback+whale", "ox"))
    made = from_word_vectors(tmp_path / "glove.txt", ("humpback+whale", "ox"), aliases)
    assert made.provenance["words"] == {"humpback+whale": ["whale"], "ox": ["tv", "whale"]}
    with pytest.raises(ConfigError, match="Did you mean 'ox'"):
        read_aliases(["oxx=tv"], ("ox",))
    with pytest.raises(ConfigError, match="CLASS=WORDS"):
        read_aliases(["ox"], ("ox",))


def test_phrases_of_glove_840b_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("the 1 2\nat name@domain.com 3 4\nat 5 6\n")
    assert read_vectors(tmp_path / "g.txt", ["at"])["at"].tolist() == [5.0, 6.0]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda f: f.write_text("whale 0.1 0.2\nox 0.3\n"), "entry 2 of .* a word and 2 numbers"),
        (lambda f: f.write_text("whale 0.1 0.2\nox 0.3 nan\n"), "entry 2 of"),
        (lambda f: f.write_text("3 2\nwhale 0.1 0.2\n"), "3 words, as its first line says, but got 1"),
        (lambda f: (binary(f), f.write_bytes(f.read_bytes()[:60])), "7 words, as its first line says.*after 3"),
        (lambda f: (packed(f), f.write_bytes(f.read_bytes()[:-20])), "readable to its end"),
        (lambda f: f.write_bytes(b"PK\x03\x04 zipped"), "the first line of"),
        (lambda f: f.write_text(""), "the first line of"),
    ],
)
def test_damaged_files(write: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    write(tmp_path / "v")
    with pytest.raises(DataError, match=message):
        from_word_vectors(tmp_path / "v", ("ox", "whale"))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing there"):
        from_word_vectors(tmp_path / "v", ("ox",))


def test_texts_of_classes(tmp_path: Path) -> None:
    assert words("Polar_bear-cub (young)") == ("Polar", "bear", "cub", "young")
    assert name_texts(["grizzly+bear"], "a photo of a {}") == {"grizzly+bear": "a photo of a grizzly bear"}
    with pytest.raises(ConfigError, match=r"one \{\}"):
        name_texts(["ox"], "a photo")
    file = tmp_path / "d.csv"
    file.write_text('class,description\nGrizzly bear,"Large, brown."\nox, Strong \n')
    wanted = {"ox": "Strong", "grizzly+bear": "Large, brown."}
    assert read_descriptions(file, ["ox", "grizzly+bear"]) == wanted
    file.write_text("class,description\nSTRASSE (urban),Grey.\n", encoding="utf-8")
    assert read_descriptions(file, ["Straße, urban"]) == {"Straße, urban": "Grey."}
    with pytest.raises(DataError, match="none for cow, elk"):
        read_descriptions(file, ["Straße, urban", "cow", "elk"])
    file.write_text("name,text\nox,Strong\n")
    with pytest.raises(DataError, match="columns class and description"):
        read_descriptions(file, ["ox"])
    with pytest.raises(DataError, match="nothing there"):
        read_descriptions(tmp_path / "none.csv", ["ox"])


def test_classes_that_differ_in_a_sign_keep_their_own_descriptions(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("class,description\nHER2+,Much of it.\nHER2-,Little of it.\nher3,Other.\n")
    wanted = {"HER2+": "Much of it.", "HER2-": "Little of it.", "HER3": "Other."}
    assert read_descriptions(file, ["HER2+", "HER2-", "HER3"]) == wanted
    with pytest.raises(DataError, match=r"none for HER2\. Add"):
        read_descriptions(file, ["HER2"])  # either could be meant
    file.write_text("class,description\nHER2+,Much of it.\n")
    with pytest.raises(DataError, match=r"none for HER2-\. Add"):
        read_descriptions(file, ["HER2+", "HER2-"])


def test_descriptions_in_another_encoding(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_bytes("class,description\nox,Café\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"text in UTF-8, but got the byte 0xe9 in line 2.*CSV UTF-8"):
        read_descriptions(file, ["ox"])


def test_twins_of_imagenet_are_spoken_of_without_their_number(tmp_path: Path) -> None:
    twins = ["missile (n03773504)", "missile (n04008634)"]
    assert set(name_texts(twins, "a photo of a {}").values()) == {"a photo of a missile"}
    assert words("n03773504") == ("n03773504",)  # where a dataset knows no names
    assert words("(n03773504)") == ("n03773504",)
    assert words("crane (bird)") == ("crane", "bird")
    file = tmp_path / "d.csv"
    file.write_text(f"class,description\n{twins[0]},Flies.\n{twins[1]},Is thrown.\n")
    assert read_descriptions(file, twins) == {twins[0]: "Flies.", twins[1]: "Is thrown."}
