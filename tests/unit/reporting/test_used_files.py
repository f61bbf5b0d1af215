"""Runs are compared by the content of the files that their settings name, as the runs recorded it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ltds.core.runs import RunDirectory
from ltds.reporting.collection import Collection, collect
from ltds.reporting.used_files import UsedFile, file_texts, used_files

A, B = "a" * 64, "b" * 64


def with_files(path: Path, **recorded: Any) -> Path:
    """Let the run say what it was trained with."""
    run = RunDirectory(path)
    run.write_environment({**run.read_environment(), **recorded})
    return path


def rows_of(found: Collection) -> dict[str, list[int]]:
    """Label -> the seeds of its runs."""
    (dataset,) = found.datasets
    return {label: [run.seed for run in members] for label, members in dataset.rows.items()}


@pytest.mark.parametrize(("group", "key"), [("data", "features"), ("backbone", "weights")])
def test_other_content_is_another_row_and_another_path_is_not(make_run, runs: Path, group: str, key: str) -> None:
    setting = f"{group}.{key}"
    for seed, (file, checksum) in enumerate([("/x/f.npz", A), ("/y/f.npz", A), ("/y/renamed.npz", A)]):
        path = make_run("agg", seed=seed, config={group: {key: file}})
        with_files(path, files={setting: checksum})
    found = collect([runs])
    assert rows_of(found) == {"agg": [0, 1, 2]}, "the same content under three paths"
    assert found.problems == ()
    other = make_run("agg", seed=0, folder="overwritten", config={group: {key: "/x/f.npz"}})
    with_files(other, files={setting: B})
    found = collect([runs])
    assert rows_of(found) == {f"agg ({setting}='f.npz bbbbbb')": [0], f"agg ({setting}='f.npz aaaaaa')": [0, 1, 2]}
    assert not any("same settings" in problem for problem in found.problems)
    assert any(f"trained with different settings: {setting} is 'f.npz bbbbbb' for" in p for p in found.problems)


def test_files_of_different_names_need_no_digits(make_run, runs: Path) -> None:
    for seed, (name, checksum) in enumerate([("resnet.npz", A), ("vit.npz", B)]):
        path = make_run("agg", seed=seed, config={"data": {"features": f"/x/{name}"}})
        with_files(path, files={"data.features": checksum})
    assert rows_of(collect([runs])) == {"agg (data.features='resnet.npz')": [0], "agg (data.features='vit.npz')": [1]}


def test_runs_without_a_record_are_known_by_the_name_of_the_file(make_run, runs: Path) -> None:
    make_run("agg", seed=0, config={"data": {"features": "/x/f.npz"}})
    make_run("agg", seed=1, config={"data": {"features": "/y/f.npz"}})
    assert rows_of(collect([runs])) == {"agg": [0, 1]}
    with_files(make_run("agg", seed=2, config={"data": {"features": "/x/f.npz"}}), files={"data.features": A})
    assert rows_of(collect([runs])) == {"agg": [0, 1, 2]}, "no other content of this name is known"
    with_files(make_run("agg", seed=3, config={"data": {"features": "/x/f.npz"}}), files={"data.features": B})
    assert rows_of(collect([runs])) == {
        "agg (data.features='f.npz')": [0, 1],
        "agg (data.features='f.npz aaaaaa')": [2],
        "agg (data.features='f.npz bbbbbb')": [3],
    }
    make_run("agg", seed=4, config={"data": {"features": "/x/g.npz"}})
    assert rows_of(collect([runs]))["agg (data.features='g.npz')"] == [4]


def test_a_network_from_a_folder_is_known_by_its_weights(make_run, runs: Path) -> None:
    for seed, (folder, checksum) in enumerate([("/x/vit", A), ("/y/moved", A)]):
        path = make_run("agg", seed=seed, config={"backbone": {"name": f"hf:{folder}"}})
        with_files(path, files={"backbone.name": checksum})
    make_run("agg", seed=2, config={"backbone": {"name": "hf:/z/vit"}})  # of a version that recorded nothing
    assert rows_of(collect([runs])) == {"agg": [0, 1, 2]}
    other = make_run("agg", seed=0, folder="other", config={"backbone": {"name": "hf:/x/vit"}})
    with_files(other, files={"backbone.name": B})
    rows = rows_of(collect([runs]))
    assert rows["agg (backbone.name='hf:vit bbbbbb')"] == [0], "other weights in the same folder"


def test_weights_of_a_package_have_no_file(make_run, runs: Path) -> None:
    make_run("agg", seed=0, config={"backbone": {"weights": "imagenet"}})
    make_run("agg", seed=1, config={"backbone": {"weights": ""}})
    assert rows_of(collect([runs])) == {"agg (backbone.weights='imagenet')": [0], "agg (backbone.weights='')": [1]}


def test_other_class_embeddings_are_another_row_and_no_repetition(make_run, runs: Path) -> None:
    """The dataset's own table has no setting that names it: only the record tells that it was changed."""
    no_table = {"semantics": {"table": ""}}
    for folder, checksum in (("before", A), ("after", B)):
        with_files(make_run("ltds", folder=folder, config=no_table), semantics=checksum)
    with_files(make_run("agg", config=no_table), semantics="")
    found = collect([runs])
    one, two = "ltds (semantics.table='bbbbbb')", "ltds (semantics.table='aaaaaa')"
    assert rows_of(found) == {one: [0], two: [0], "agg": [0]}
    sentence = f"different settings: semantics.table is 'bbbbbb' for {one}; 'aaaaaa' for {two}."
    assert found.problems == (f"Rows of 'toy' were trained with {sentence}",), "agg uses none"


def test_methods_with_the_same_embeddings_or_none_do_not_differ(make_run, runs: Path) -> None:
    for method, checksum in (("ltds", A), ("agg-embeddings", A), ("agg", "")):
        with_files(make_run(method), semantics=checksum)
    found = collect([runs])
    assert rows_of(found) == {"agg": [0], "agg-embeddings": [0], "ltds": [0]}
    assert found.problems == ()


def test_a_table_elsewhere_is_the_same_unless_it_is_not_scaled() -> None:
    """A dataset's own attributes.csv is scaled, a copy of it is not; other tables are always taken as they are."""

    def embeddings(table: str) -> UsedFile:
        settings = {"data.root": "/data/toy", "semantics.table": table}
        return used_files(settings, {"semantics": A})["semantics.table"]

    own, copy = embeddings(""), embeddings("/copy/attributes.csv")
    assert embeddings("/data/toy/semantics/attributes.csv") == own
    assert embeddings("/elsewhere/glove.npz") == own, "the dataset's only table, by another path"
    assert copy != own
    assert copy == embeddings("/other/copy.csv")
    assert file_texts([own, copy]) == {own: "aaaaaa", copy: "attributes.csv"}
