"""ltds.build_data: any builder by its name, with errors in words."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

import pytest

import ltds
from ltds.core.errors import ConfigError
from ltds.data.datasets import by_name


@pytest.fixture
def photos(toy: ltds.Manifest, tmp_path: Path) -> Path:
    """The test images of the toy dataset, as <domain>/<class>/*."""
    shutil.copytree(toy.root / "images" / "test", tmp_path / "photos")
    return tmp_path / "photos"


def test_it_builds_as_the_command_does(photos: Path, tmp_path: Path) -> None:
    made = ltds.build_data("folder", source=str(photos), out=tmp_path / "made", name="mine", settings={"test": 0.4})
    assert (made.name, len(made.classes), made.domains) == ("mine", 6, ("ink", "oil", "wax"))
    assert made.provenance["config"]["test"] == 0.4
    assert ltds.Manifest.read(tmp_path / "made").checksum == made.checksum


@pytest.mark.parametrize("several", [True, False], ids=["a list of texts", "one text"])
def test_text_is_taken_for_every_path(photos: Path, tmp_path: Path, several: bool) -> None:
    images = sorted(photos.rglob("*.png"))
    kinds = sorted({image.parent.name for image in images})
    lines = [f"{i.relative_to(photos)} {kinds.index(i.parent.name)} {i.parent.parent.name}" for i in images]
    (tmp_path / "images.txt").write_text("\n".join(lines))
    (tmp_path / "names.txt").write_text("\n".join(kinds))
    files = str(tmp_path / "images.txt")
    made = ltds.build_data(
        "lists",
        source=str(photos),
        files=[files] if several else files,
        classes=str(tmp_path / "names.txt"),
        out=str(tmp_path / "made"),
    )
    assert (len(made), made.classes, made.domains) == (len(images), tuple(kinds), ("ink", "oil", "wax"))


@pytest.mark.parametrize(
    ("hint", "given", "made"),
    [
        (Path, "a", Path("a")),
        (Path | None, "a", Path("a")),
        (Optional[Path], None, None),  # noqa: UP045
        (Sequence[Path] | None, ["a", Path("b")], [Path("a"), Path("b")]),
        (tuple[Path, ...], "a", [Path("a")]),
        (Sequence[Path] | None, None, None),
        (str, "a", "a"),
        (list[str], ["a"], ["a"]),
    ],
)
def test_which_arguments_are_paths(hint: object, given: object, made: object) -> None:
    assert by_name._as_paths(given, hint) == made


@pytest.mark.parametrize(
    ("dataset", "inputs", "said"),
    [
        ("folders", {}, r"Did you mean 'folder'"),
        ("folder", {}, r"Expected argument 'source' for the dataset 'folder', but got none"),
        ("folder", {"sauce": "photos"}, r"Expected an argument of the dataset 'folder', but got 'sauce'.*'source'"),
        ("folder", {"source": ".", "settings": {"vall": 0.1}}, r"Did you mean 'val'"),
    ],
)
def test_mistakes_are_explained(dataset: str, inputs: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        ltds.build_data(dataset, out=tmp_path / "made", **inputs)  # type: ignore[arg-type]
    assert not (tmp_path / "made").exists()
