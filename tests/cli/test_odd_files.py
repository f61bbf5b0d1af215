"""Words instead of tracebacks: odd files and values that were faults once, each with what is said today."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from command_line import PROGRAM, QUICK, Command, refused
from ltds.core.errors import ConfigError, DataError
from ltds.core.text import inert
from ltds.data.datasets.list_files import ListsConfig
from ltds.data.manifest import Manifest
from ltds.data.stylelist import read_style_list
from ltds.engine.trainable import require_sources
from ltds.semantics.word_vectors import read_vectors
from toy import toy_config, toy_session, write_dataset

ESCAPE = "\x1b]0;owned\x07\x1b[2J"


def test_a_root_that_is_no_text(command: Command) -> None:
    refused(command("train", "--set", "data.root=5", "--out", "run"), "Expected data.root to be the path", "but got 5")
    words = ["--data", "x", "--methods", "agg", "--set", "data.root=5", "--out", "grid"]
    refused(command("benchmark", *words), "data.root in settings has no effect", "use 'data'")


def test_numbers_of_5000_digits(command: Command, toy: Manifest, tmp_path: Path) -> None:
    digits = "9" * 5000
    words = ["train", str(toy.root), "--held-out", "wax", "--out", "run", *QUICK]
    refused(command(*words, "--set", f"optimizer.lr={digits}"), "optimizer.lr")
    (tmp_path / "a.toml").write_text(f"[optimizer]\nlr = {digits}\n")
    refused(command(*words, "--config", "a.toml"), "to be valid TOML")
    words = ["benchmark", "--data", str(toy.root), "--methods", "agg"]
    refused(command(*words, "--seeds", digits), "numbers separated by commas")
    (tmp_path / "v.txt").write_text(f"{digits} 3\nant 1 2 3\n")
    with pytest.raises(DataError, match="first line"):
        read_vectors(tmp_path / "v.txt", ["ant"])


def test_a_pattern_that_names_a_field_twice() -> None:
    with pytest.raises(ValidationError, match="each at most once"):
        ListsConfig(pattern="{split}{split}.txt")
    assert ListsConfig(pattern="{domain}_{split}.txt").pattern == "{domain}_{split}.txt"


def test_a_style_list_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "stylize.csv").write_bytes("path,source,style\nÄ.png,a.png,oil\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"stylize\.csv' to be text in UTF-8, but got the byte 0xc4 in line 2"):
        list(read_style_list(tmp_path))


def test_damaged_gzip_and_an_oversized_width(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b"word%d %f %f\n" % (i, i, i / 3) for i in range(5000)))
    rng, file = np.random.default_rng(0), tmp_path / "v.txt.gz"
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[rng.integers(20, len(whole))] ^= 0xFF
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"v\.txt\.gz'"):
            read_vectors(file, ["missing"])
    (tmp_path / "w.bin").write_bytes(b"3 900000000\nant " + bytes(4_000_000))
    with pytest.raises(DataError, match="of at most 100000 numbers, but got 900000000"):
        read_vectors(tmp_path / "w.bin", ["ant"])


def test_advice_for_one_source_domain(tmp_path: Path) -> None:
    manifest = write_dataset(tmp_path / "data")
    rows = np.flatnonzero(manifest.domain_ids != 1)
    two = Manifest(
        manifest.root,
        "two",
        manifest.classes,
        ("ink", "wax"),
        tuple(manifest.paths[i] for i in rows),
        manifest.labels[rows],
        manifest.domain_ids[rows] // 2,
        manifest.split_ids[rows],
    )
    with pytest.raises(ConfigError, match=r"Set method\.meta_test_domains=0\.$"):
        require_sources(toy_config(two, "ltds"), two, "wax")  # a plan asks this before it measures anything
    with pytest.raises(ConfigError, match=r"Set method\.meta_test_domains=0\.$"):
        toy_session(two, "ltds")


@pytest.mark.parametrize("path", ["{elsewhere}/a.png", "../elsewhere/a.png", "images/../../elsewhere/a.png"])
def test_a_manifest_names_files_outside_its_folder_only_by_option(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    own = write_dataset(tmp_path / "data")
    (tmp_path / "elsewhere").mkdir()
    (own.root / own.paths[0]).rename(tmp_path / "elsewhere" / "a.png")
    path = path.format(elsewhere=tmp_path / "elsewhere")
    paths = (path, "images/../" + own.paths[1], *own.paths[2:])  # the second stays inside
    columns = (own.labels, own.domain_ids, own.split_ids)
    Manifest(own.root, own.name, own.classes, own.domains, paths, *columns).write()
    refused(command("data", "info", "data"), f"to be below its folder, but got '{path}'", "LTDS_OUTSIDE")
    monkeypatch.setenv("LTDS_OUTSIDE", str(tmp_path / "else"))
    refused(command("data", "info", "data"), f"but got '{path}'")
    monkeypatch.setenv("LTDS_OUTSIDE", os.pathsep.join(["/nowhere", str(tmp_path / "elsewhere")]))
    assert command("data", "info", "data").returncode == 0


def test_the_demo_refuses_a_file_before_it_draws(command: Command, tmp_path: Path) -> None:
    (tmp_path / "afile").touch()
    refused(command("demo", "--out", "afile"), "Expected 'afile' to be a folder, but got a file")
    assert not (tmp_path / "data").exists()


def test_stylize_does_not_write_through_links(command: Command, tmp_path: Path) -> None:
    (tmp_path / "photos" / "in").mkdir(parents=True)
    Image.new("RGB", (16, 16)).save(tmp_path / "photos" / "in" / "a.png")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "in").symlink_to(tmp_path / "elsewhere")
    words = ["data", "stylize", "photos", "--style", "classical:oil", "--out", "out", "--jobs", "1"]
    refused(command(*words), "to be a folder inside 'out', but got")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_names_give_no_commands_to_the_terminal(command: Command, tmp_path: Path) -> None:
    assert inert("a\tb\nc") == "a\tb\nc"
    assert inert("\x1b[2J\x9b\u202e") == r"\x1b[2J\x9b\u202e"
    own = write_dataset(tmp_path / "data")
    hostile = f"ant{ESCAPE}"
    Manifest(
        own.root,
        f"toy{ESCAPE}",
        (hostile, *own.classes[1:]),
        (f"ink{ESCAPE}", *own.domains[1:]),
        own.paths,
        own.labels,
        own.domain_ids,
        own.split_ids,
    ).write()
    shown = command("data", "info", "data")
    assert shown.returncode == 0, shown.stderr
    refusal = command("train", "data", "--held-out", "nowhere", "--out", "run", *QUICK)
    refused(refusal, "ink\\x1b")
    for text in (shown.stdout, shown.stderr, refusal.stderr):
        assert "\x1b" not in text
        assert "\x07" not in text


def test_output_that_cannot_be_encoded_is_replaced(tmp_path: Path) -> None:
    code = [*PROGRAM, "train", "Äffchen→", "--out", "run"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(code, capture_output=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"'?ffchen?'" in done.stderr
