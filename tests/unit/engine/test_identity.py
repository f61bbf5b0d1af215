"""The identity of a run: what decides its outcome, by content and not by the name of a file."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ltds.core import files
from ltds.core.added import ADDED
from ltds.core.files import sha256
from ltds.data.manifest import Manifest
from ltds.engine import identity as identities
from ltds.engine.config import RunConfig, resolve
from ltds.engine.identity import RANDOM, file_checksums, former_identities, identity
from ltds.engine.semantics import semantics_checksum
from ltds.nn.small import TinyNet
from toy import toy_config


def of(toy: Manifest, weights: str) -> str:
    layer = {"data": {"root": str(toy.root), "size": 16}, "backbone": {"name": "tiny", "weights": weights}}
    return identity(resolve(layer), toy)


def test_pretrained_weights_count_by_their_content(toy: Manifest, tmp_path: Path) -> None:
    file, other = tmp_path / "weights.safetensors", tmp_path / "again.safetensors"
    torch.manual_seed(0)
    save_file(TinyNet().state_dict(), file)
    other.write_bytes(file.read_bytes())
    before = of(toy, str(file))
    assert of(toy, str(other)) == before, "the same weights in another place"
    assert of(toy, os.path.relpath(file)) == before, "another spelling of the path"
    assert of(toy, "") != before
    save_file(TinyNet().state_dict(), file)
    assert of(toy, str(file)) != before, "other weights under the same name"


def on_folder(toy: Manifest, folder: Path, weights: str = "") -> RunConfig:
    """A run on hf:FOLDER; nothing but the weights is read from the folder, because the network is described."""
    network = {"name": f"hf:{folder}", "architecture": '{"config": {}}', "weights": weights}
    return resolve({"data": {"root": str(toy.root), "size": 16}, "backbone": network})


def test_a_folder_counts_by_its_weights(toy: Manifest, tmp_path: Path) -> None:
    folder, moved = tmp_path / "vit", tmp_path / "elsewhere" / "net"
    folder.mkdir()
    file = folder / "model.safetensors"
    file.write_bytes(b"weights")
    before = identity(on_folder(toy, folder), toy)
    shutil.copytree(folder, moved)
    assert identity(on_folder(toy, moved), toy) == before, "the same weights in another place"
    file.write_bytes(b"others!")
    assert identity(on_folder(toy, folder), toy) != before, "other weights in the same folder"
    file.unlink()
    assert identity(on_folder(toy, folder), toy) != before
    assert file_checksums(on_folder(toy, folder)) == {"backbone.name": RANDOM}


def test_a_folder_whose_weights_are_not_loaded_does_not_count(toy: Manifest, tmp_path: Path) -> None:
    weights = tmp_path / "mine.safetensors"
    weights.write_bytes(b"mine")
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_text(name)
        config = on_folder(toy, tmp_path / name, str(weights))
        assert file_checksums(config) == {"backbone.weights": sha256(weights)}
        found.append(identity(config, toy))
    assert found[0] == found[1]


def test_earlier_versions_took_a_folder_by_its_path(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = on_folder(toy, tmp_path)
    former = former_identities(config, toy)
    monkeypatch.setattr(identities, "library_of", lambda name: None)  # as if hf: were nothing special
    assert former == (identity(config, toy),)
    assert former != (identity(on_folder(toy, tmp_path / "moved"), toy),)
    assert former_identities(config, toy) == (), "of other networks nothing has changed"


# Identities from before each loss had a settings class of its own; a run that was stored then goes on.
BEFORE = [
    ("ce", "1e97f2de98abba770b81cbd455ec12174bf9c3233a19f7958c1eea0da606f1ee"),
    ("dc", "56f053bbd68dd775380f5b471c1a39f5c09ac3258569af5bb1a736e461e3fca0"),
    ({"name": "equal", "rare_share": 0.05}, "f15ff9b15d3441b6dd7b06b1492d11085754d4774cc5b50aa43b029238e9aa71"),
    (
        {"name": "adjusted", "zero_count": "blend", "blend": 0.2},
        "6039f6aaf40132e7729795db540e950821ae9c91154adc2f9c6b56e7553bb643",
    ),
    ("outside_losses:focal", "846632c54b4b9a1608e0db1408e15713a61cac9b35287bc923637edc23e1a315"),
    (
        {"name": "outside_losses:WeightedLoss", "tau": 0.5},
        "613f67c190c1ed0462610fd0e6243a9c7f99f15c2884863f2b5d2be21395f165",
    ),
]


@pytest.mark.parametrize(("criterion", "stored"), BEFORE)
def test_criteria_count_as_before(toy: Manifest, criterion: object, stored: str) -> None:
    config = toy_config(toy, method={"criterion": criterion})
    assert identity(config, toy) == stored
    assert identity(resolve(config.to_dict()), toy) == stored


def test_ranks_are_no_part_of_it(toy: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports tell runs of several ranks apart, but such a run can be resumed with one."""

    def ranked(ranks: int, sync: bool) -> str:
        run = {"ranks": ranks, "sync_batchnorm": sync}
        return identity(resolve({"data": {"root": str(toy.root), "size": 16}, "run": run}), toy)

    (only,) = {ranked(1, False), ranked(2, False), ranked(2, True)}
    for name in ("run.ranks", "run.sync_batchnorm"):
        monkeypatch.delitem(ADDED, name)
    assert ranked(1, False) == only, "the identity of runs from before these were listed as added"


def test_class_embeddings_are_read_once_for_all_runs_of_a_grid(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "words.csv"
    table.write_text("ant,1\nbee,2\n")
    layer = {"method": {"name": "ltds"}, "data": {"root": str(toy.root)}, "semantics": {"table": str(table)}}
    read: list[Path] = []
    monkeypatch.setattr(files, "sha256", lambda file: read.append(file) or sha256(file))
    first = semantics_checksum(resolve(layer), toy)
    assert first == hashlib.sha256(b"ant,1\nbee,2\n").hexdigest()
    assert semantics_checksum(resolve(layer), toy) == first
    assert len(read) == 1
    table.write_text("ant,1\nbee,23\n")
    assert semantics_checksum(resolve(layer), toy) == hashlib.sha256(b"ant,1\nbee,23\n").hexdigest()
