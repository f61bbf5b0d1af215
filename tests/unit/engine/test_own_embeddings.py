"""Which class embeddings a run takes when its settings name none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ltds.core.errors import CheckpointError, ConfigError, DataError
from ltds.data.manifest import Manifest
from ltds.engine.identity import identity
from ltds.engine.loop import train
from ltds.engine.semantics import load_embeddings, semantics_checksum
from ltds.engine.start import resume_run
from ltds.semantics.archive import write_embeddings
from ltds.semantics.embeddings import ClassEmbeddings
from toy import recorded, toy_config, toy_session, write_dataset


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
        DataError,
        match=r"has no .*attributes\.csv.* no \.npz file next to it\. Make some .* \(ltds data embed",
    ):
        loaded(own)
    for name in ("glove", "minilm"):
        write_embeddings(folder / f"{name}.npz", ClassEmbeddings(own.classes, torch.eye(6)))
    with pytest.raises(
        DataError, match=r"but got 2: .*semantics\.table=.*glove\.npz\. To resume .* move the others away"
    ):
        loaded(own)


def test_other_embeddings_make_another_run(own: Manifest, tmp_path: Path) -> None:
    """The same words in another place do not; a run that was stopped is not taken up with others."""
    folder, config = own.root / "semantics", toy_config(own, "ltds")
    before = identity(config, own)
    places = [tmp_path / "here.csv", tmp_path / "there.csv"]
    for file in places:
        file.write_bytes((folder / "attributes.csv").read_bytes())
    named = [toy_config(own, "ltds", semantics={"table": str(file)}) for file in places]
    (same,) = {identity(other, own) for other in named}
    assert same != before, "a named table is not scaled as attributes are"
    assert semantics_checksum(toy_config(own, "agg"), own) == ""

    run = recorded(toy_session(own, "ltds"), tmp_path / "run")
    assert run.read_environment()["semantics"] == semantics_checksum(config, own)
    train(toy_session(own, "ltds"), run, stop_after=2)
    (folder / "attributes.csv").write_text((folder / "attributes.csv").read_text().replace("ant,6", "ant,7"))
    assert identity(config, own) != before
    with pytest.raises(CheckpointError, match="other"):
        resume_run(run)


def test_the_dataset_s_own_attributes_are_the_same_by_name(own: Manifest, tmp_path: Path) -> None:
    file, copy = own.root / "semantics" / "attributes.csv", tmp_path / "copy.csv"
    copy.write_bytes(file.read_bytes())
    by_name = toy_config(own, "ltds", semantics={"table": str(own.root / "semantics" / ".." / "semantics" / file.name)})
    found = load_embeddings(by_name, own, own.task("wax"))
    assert found is not None
    assert torch.equal(found.vectors, loaded(own).vectors)
    assert identity(by_name, own) == identity(toy_config(own, "ltds"), own)
    with pytest.raises(ConfigError, match=r"semantics\.key only for a file with several arrays"):
        load_embeddings(toy_config(own, "ltds", semantics={"table": str(file), "key": "x"}), own, own.task("wax"))
    other = load_embeddings(toy_config(own, "ltds", semantics={"table": str(copy)}), own, own.task("wax"))
    assert other is not None
    assert torch.equal(other.vectors, ClassEmbeddings.from_table(copy).vectors), "another table is taken as it is"


def test_a_key_reaches_the_dataset_s_own_table(own: Manifest) -> None:
    folder = own.root / "semantics"
    with pytest.raises(ConfigError, match=r"semantics\.key only for a file with several arrays"):
        load_embeddings(toy_config(own, "ltds", semantics={"key": "x"}), own, own.task("wax"))
    (folder / "attributes.csv").unlink()
    arrays = {"x": np.eye(6), "y": np.ones((6, 3)) + np.arange(6)[:, None]}
    np.savez(folder / "two.npz", class_names=np.array(own.classes), **arrays)
    found = load_embeddings(toy_config(own, "ltds", semantics={"key": "y"}), own, own.task("wax"))
    assert found is not None
    assert found.width == 3


def test_strict_runs_refuse_attributes_that_were_scaled_with_open_classes(own: Manifest) -> None:
    folder = own.root / "semantics"
    write_embeddings(folder / "attributes.npz", ClassEmbeddings(own.classes, torch.eye(6)))
    config = toy_config(own, "ltds", method={"hide_open_names": True})
    assert load_embeddings(config, own, own.task("wax")) is not None
    (folder / "attributes.csv").unlink()
    with pytest.raises(DataError, match=r"Put the attributes themselves into '.*attributes\.csv'"):
        load_embeddings(config, own, own.task("wax"))


@pytest.mark.parametrize("spelling", ["fox", "Fox", "fox ", "FOX"])
def test_hidden_classes_are_hidden_in_any_spelling(own: Manifest, spelling: str) -> None:
    file, config = own.root / "semantics" / "attributes.csv", toy_config(own, "ltds-hidden-names")
    wanted = load_embeddings(config, own, own.task("wax"))
    file.write_text(file.read_text().replace("\nfox,4,0", f"\n{spelling},400,90"))
    found = load_embeddings(config, own, own.task("wax"))
    assert wanted is not None
    assert found is not None
    assert found.names == wanted.names == own.classes[:5]
    assert torch.equal(found.vectors, wanted.vectors), "they influence the scale of the attributes"


def test_hidden_classes_are_not_taken_from_a_table_either(own: Manifest, tmp_path: Path) -> None:
    file, names = tmp_path / "minilm.npz", (*own.classes[:5], "Fox")
    write_embeddings(file, ClassEmbeddings(names, torch.rand(6, 5)))
    table, semantics = ClassEmbeddings.from_table(file), {"table": str(file)}
    session = toy_session(own, "ltds-hidden-names", semantics=semantics)
    run = recorded(session, tmp_path / "run")
    stored = ClassEmbeddings.from_table(run.embeddings_file)
    assert stored.names == own.classes[:5], "a model could name the open class"
    assert torch.equal(stored.vectors, table.vectors[:5])
    assert torch.equal(session.method.semantics.vectors, table.vectors[:5])
    everything = load_embeddings(toy_config(own, "ltds", semantics=semantics), own, own.task("wax"))
    assert everything is not None
    assert everything.names == names
