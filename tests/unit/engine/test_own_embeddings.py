"""Which class embeddings a run takes when its settings name none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ltds.core.errors import DataError
from ltds.data.manifest import Manifest
from ltds.engine.assemble import load_embeddings
from ltds.semantics.archive import write_embeddings
from ltds.semantics.embeddings import ClassEmbeddings
from toy import toy_config, write_dataset


@pytest.fixture
def own(tmp_path: Path) -> Manifest:
    return write_dataset(tmp_path / "own")


def loaded(manifest: Manifest) -> ClassEmbeddings:
    found = load_embeddings(toy_config(manifest, "ltds"), manifest, manifest.task("wax"))
    assert found is not None
    return found


def test_attributes_come_first_then_the_one_table_that_was_made(own: Manifest) -> None:
    attributes = loaded(own)
    assert attributes.width == 4
    folder = own.root / "semantics"
    made = ClassEmbeddings(own.classes, torch.rand(6, 5))
    write_embeddings(folder / "minilm.npz", made)
    assert torch.equal(loaded(own).vectors, attributes.vectors), "attributes come first"
    (folder / "attributes.csv").unlink()
    assert torch.equal(loaded(own).vectors, ClassEmbeddings.from_table(folder / "minilm.npz").vectors)
    assert loaded(own).width == 5


def test_several_tables_or_none_are_an_error_that_says_what_to_type(own: Manifest) -> None:
    folder = own.root / "semantics"
    (folder / "attributes.csv").unlink()
    with pytest.raises(
        DataError, match=r"has no '.*attributes\.csv' and no \.npz beside it\. Make some \(ltds data embed"
    ):
        loaded(own)
    for name in ("glove", "minilm"):
        write_embeddings(folder / f"{name}.npz", ClassEmbeddings(own.classes, torch.eye(6)))
    with pytest.raises(DataError, match=r"but got 2: .*--set semantics\.table=.*glove\.npz"):
        loaded(own)
