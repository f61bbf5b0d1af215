"""Datasets by name, and datasets from outside the package: a function, or a folder with a manifest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from ltds.cli.main import app
from ltds.core.config import Settings
from ltds.core.errors import ConfigError
from ltds.data.datasets import BUILDERS, config_type, find_builder, find_recipe
from ltds.data.manifest import Manifest

OUTSIDE = '''
from __future__ import annotations
from pathlib import Path
import numpy as np
from PIL import Image
from pydantic import Field
from ltds import Manifest
from ltds.core.config import Settings


class DiscSettings(Settings):
    count: int = Field(default=2, ge=1, description="images of each class")


def build(out: Path, config: DiscSettings, *, colour: str, scans: Path | None = None) -> Manifest:
    """Coloured squares.

    Example: ltds data build discs:build --colour red
    """
    rows = [(f"{split}/{label}-{i}.png", label, s) for s, split in enumerate(("train", "val", "test"))
            for label in range(2) for i in range(config.count)]
    for path, _, _ in rows:
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), colour).save(out / path)
    paths, labels, splits = zip(*rows)
    manifest = Manifest(out, "discs", ("a", "b"), ("only",), paths, np.array(labels), np.zeros(len(rows), np.int64),
                        np.array(splits), provenance={"scans": str(scans)})
    manifest.write()
    return manifest
'''


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "discs.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "discs", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["data", *words])


def test_every_entry_can_be_imported_and_has_settings() -> None:
    for name, entry in BUILDERS.items():
        builder = find_builder(name)
        settings = config_type(builder)
        assert settings is not None
        assert issubclass(settings, Settings)
        assert entry.description
        assert all(field.description for field in settings.model_fields.values()), name


def test_a_recipe_belongs_to_its_dataset() -> None:
    assert find_recipe("bestiary").settings["data"]["size"] == 32
    assert find_recipe("my photos").settings == find_recipe("pacs").settings == {}


def test_a_dataset_from_outside_is_built_by_the_name_of_its_function(outside: Path) -> None:
    done = call("build", "discs:build", "--colour", "red", "--set", "count=3", "--scans", "x.csv", "--out", "mine")
    assert done.exit_code == 0, done.output
    manifest = Manifest.read(outside / "mine")
    assert (manifest.name, len(manifest), manifest.provenance) == ("discs", 18, {"scans": "x.csv"})
    assert "discs: 18 images" in call("info", "mine").output
    assert call("build", "discs:build", "--colour", "red").exit_code == 0
    assert len(Manifest.read(outside / "data" / "discs")) == 12, "the settings have their defaults"


def test_the_help_of_a_dataset_from_outside_lists_its_inputs_and_settings(outside: Path) -> None:
    done = call("build", "discs:build", "--help")
    assert done.exit_code == 0, done.output
    for word in ("Coloured squares.", "--colour", "--scans", "count=2", "images of each class"):
        assert word in done.output


def test_bad_names_and_bad_input_are_told(outside: Path) -> None:
    assert call("build", "discs:build").exit_code == 2, "the colour is required"
    for name, said in (("pasc", "Did you mean 'pacs'"), ("discs:nothing", "no attribute 'nothing'")):
        with pytest.raises(ConfigError, match=said):
            find_builder(name)
    with pytest.raises(ConfigError, match="There is no setting 'cuont'"):
        CliRunner().invoke(
            app, ["data", "build", "discs:build", "--colour", "red", "--set", "cuont=3"], catch_exceptions=False
        )


@pytest.mark.parametrize("module", ["ltds.data.datasets", "ltds.bestiary", "ltds.bestiary.files"])
def test_torch_is_not_imported(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('torch', 'ltds.engine', 'ltds.data.cache') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
