"""Grids: what cells they make, and what is wrong with a wrong one, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ltds.benchmarking.cells import cells_of
from ltds.benchmarking.grid import Grid, read_grid
from ltds.core.config import merge, parse
from ltds.core.errors import ConfigError
from ltds.data.manifest import Manifest

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
SMALL = {"data": {"size": 16, "batch_size": 8}, "backbone": {"name": "tiny"}}


def cells(toy: Manifest, out: Path, **given: Any) -> list[tuple[str, str, int]]:
    grid = parse(Grid, {"data": "toy", "methods": ["agg"], "settings": SMALL, **given})
    return [(cell.method, cell.held_out, cell.seed) for cell in cells_of(grid, out, lambda _: toy)]


def paths(toy: Manifest, settings: Mapping[str, Any]) -> list[str]:
    grid = parse(Grid, {"data": "toy", "methods": ["agg"], "seeds": [0], "held_out": ["wax"], "settings": settings})
    return [cell.run.path.name for cell in cells_of(grid, Path("out"), lambda _: toy)]


def test_methods_by_domains_by_seeds(toy: Manifest, tmp_path: Path) -> None:
    assert cells(toy, tmp_path, methods=["agg", "dc"], seeds=[3, 4], held_out=["wax"]) == [
        ("agg", "wax", 3),
        ("dc", "wax", 3),
        ("agg", "wax", 4),
        ("dc", "wax", 4),
    ]
    assert [held for _, held, _ in cells(toy, tmp_path, seeds=[0])] == ["ink", "oil", "wax"]
    assert cells(toy, tmp_path, seeds=[0], held_out=[""]) == [("agg", "", 0)]


def test_a_held_out_domain_may_be_typed_in_the_other_encoding(toy: Manifest, tmp_path: Path) -> None:
    stored, typed = "Z\u00fcrich", "Zu\u0308rich"
    zurich = replace(toy, domains=("ink", "oil", stored))
    assert cells(zurich, tmp_path, seeds=[0], held_out=[typed]) == [("agg", stored, 0)]


def test_variants_are_copies_of_the_grid_with_other_settings(toy: Manifest, tmp_path: Path) -> None:
    variants = {"slow": {"optimizer": {"lr": 0.01}}, "fast": {"optimizer": {"lr": 0.2}}}
    made_cells = cells(toy, tmp_path, seeds=[0], held_out=["wax"], variants=variants)
    assert [method for method, _, _ in made_cells] == ["agg (slow)", "agg (fast)"]


def test_a_variant_replaces_the_setting_of_a_method(toy: Manifest, tmp_path: Path) -> None:
    """Without its own setting a variant has the method's, which is over that of all runs."""
    variants = {"cold": {"method": {"temperature": 0.03}}, "plain": {"optimizer": {"lr": 0.05}}}
    settings = {**SMALL, "method": {"temperature": 0.7}}
    tables = {"data": "toy", "methods": ["daml"], "held_out": ["wax"], "seeds": [0], "settings": settings}
    tables |= {"by_method": {"daml": {"method": {"temperature": 0.1}}}, "variants": variants}
    made_cells = cells_of(parse(Grid, tables), tmp_path, lambda _: toy)
    temperatures = {cell.variant: cell.config.to_dict()["method"]["temperature"] for cell in made_cells}
    assert temperatures == {"cold": 0.03, "plain": 0.1}


def test_a_typed_setting_replaces_that_of_a_variant_and_of_a_method(toy: Manifest, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        'data = "toy"\nmethods = ["daml"]\nseeds = [0]\nheld_out = ["wax"]\n'
        "[by_method.daml.method]\ntemperature = 0.1\n[variants.cold.method]\ntemperature = 0.03\n"
    )
    grid = read_grid(file, {"settings": merge(SMALL, {"method": {"temperature": 0.5}})})
    (cell,) = cells_of(grid, tmp_path, lambda _: toy)
    assert cell.config.to_dict()["method"]["temperature"] == 0.5


def test_a_cell_is_named_by_what_decides_it(toy: Manifest) -> None:
    (plain,) = paths(toy, SMALL)
    (other,) = paths(toy, {**SMALL, "optimizer": {"lr": 0.05}})
    (threads,) = paths(toy, {**SMALL, "run": {"threads": 2, "device": "cpu"}})
    assert plain.startswith("agg-wax-0-")
    assert plain == threads != other


def test_the_same_cell_twice_is_one_cell(toy: Manifest, tmp_path: Path) -> None:
    assert len(cells(toy, tmp_path, seeds=[0, 0], held_out=["wax"])) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [({"optimizer": {"lr": 0.1}}, {"optimizer": {"lr": 0.1}}), ({"run": {"ranks": 1}}, {"run": {"ranks": 2}})],
)
def test_variants_that_are_the_same_run_are_a_mistake(
    toy: Manifest, tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="but 'a' and 'b' are the same run"):
        cells(toy, tmp_path, seeds=[0], held_out=["wax"], variants={"a": first, "b": second})


def test_datasets_with_one_manifest_are_named_as_the_reason(toy: Manifest, tmp_path: Path) -> None:
    """Two renderings of the same images: their manifests have the same rows."""
    datasets = {name: replace(toy, root=tmp_path / name) for name in ("plain", "other")}
    variants = {"a": {"data": {"root": "plain"}}, "b": {"data": {"root": "other"}}}
    grid = parse(Grid, {"data": "toy", "methods": ["agg"], "settings": SMALL, "seeds": [0], "variants": variants})
    message = r"'a' and 'b' are the same run\. .* by their manifest only, .*/plain' and '.*/other' have the same one"
    with pytest.raises(ConfigError, match=message) as error:
        cells_of(grid, tmp_path, datasets.__getitem__)
    assert "threads" not in str(error.value)


@pytest.mark.parametrize(
    ("where", "settings", "instead"),
    [
        ("settings", {"run": {"seed": 7}}, "seeds"),
        ("settings", {"method": {"name": "bsce"}}, "methods"),
        ("settings", {"data": {"root": "elsewhere"}}, "data"),
        ("settings", {"data": {"held_out": "wax"}}, "held_out"),
        ("variants", {"run": {"seed": 7}}, "seeds"),
        ("by_method", {"data": {"held_out": "wax"}}, "held_out"),
    ],
)
def test_settings_that_the_grid_decides_are_refused(where: str, settings: dict[str, Any], instead: str) -> None:
    tables = {"data": "toy", "methods": ["agg"], where: settings if where == "settings" else {"mine": settings}}
    with pytest.raises(ConfigError, match=rf"in {where}.* has no effect, .* use '{instead}'"):
        parse(Grid, tables)


def test_typed_settings_replace_those_of_methods_and_variants(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        'data = "toy"\nmethods = ["daml"]\n[by_method.daml.method]\ntemperature = 0.1\nwarmup = 0.2\n'
        "[variants.slow.optimizer]\nlr = 0.05\nmomentum = 0.5\n"
    )
    typed = {"optimizer": {"lr": 0.3}, "method": {"temperature": 0.5}}
    grid = read_grid(file, {"settings": typed})
    assert grid.by_method == {"daml": {"method": {"temperature": 0.5, "warmup": 0.2}, "optimizer": {"lr": 0.3}}}
    assert grid.variants["slow"]["optimizer"] == {"lr": 0.3, "momentum": 0.5}


def test_a_dataset_or_domain_beside_variants_that_have_their_own_is_refused(toy: Manifest, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text('data = "toy"\nmethods = ["agg"]\n[variants.v.data]\nroot = "other"\nheld_out = "wax"\n')
    with pytest.raises(ConfigError, match=r"no other 'data' .* variant 'v' has its own \(data.root\)"):
        read_grid(file, {"data": "mine"})
    with pytest.raises(ConfigError, match=r"no other 'held_out' .* \(data.held_out\)"):
        read_grid(file, {"held_out": ["oil"]})
    with pytest.raises(ConfigError, match=r"'waxx'.*wax"):
        cells(toy, tmp_path, variants={"v": {"data": {"held_out": "waxx"}}})


def test_every_mistake_is_named_before_anything_is_trained(toy: Manifest, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)agg: .*lrr.*bcse"):
        cells(toy, tmp_path, methods=["agg", "bcse"], settings={**SMALL, "optimizer": {"lrr": 1.0}})
    with pytest.raises(ConfigError, match=r"'waxx'.*wax"):
        cells(toy, tmp_path, held_out=["waxx"])
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_options_over_it(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text('data = "toy"\nmethods = ["agg"]\nseeds = [0]\n[settings.optimizer]\nlr = 0.5\n')
    grid = read_grid(file, {"seeds": [1, 2], "settings": {"optimizer": {"momentum": 0.5}}})
    assert grid.seeds == (1, 2)
    assert grid.settings == {"optimizer": {"lr": 0.5, "momentum": 0.5}}
    with pytest.raises(ConfigError, match=r"no setting 'method'.*methods"):
        read_grid(file, {"method": "agg"})


def test_other_methods_leave_the_settings_of_single_methods_behind(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        'data = "toy"\nmethods = ["agg", "la"]\n'
        "[by_method.la.method]\nposthoc_tau = 0.5\n[by_method.agg.method]\nz2s = 0.1\n"
    )
    assert read_grid(file, {"methods": ["la", "dc"]}).by_method == {"la": {"method": {"posthoc_tau": 0.5}}}
    assert read_grid(file, {"methods": ["dc"]}).by_method == {}
    file.write_text(file.read_text().removeprefix('data = "toy"\n'))
    assert read_grid(file, {"methods": ["dc"], "data": "given"}).data == "given"
    file.write_text('data = "toy"\nmethods = ["agg"]\n[by_method.la.method]\nposthoc_tau = 0.5\n')
    assert read_grid(file, {"methods": ["agg", "la"]}).by_method == {"la": {"method": {"posthoc_tau": 0.5}}}
    with pytest.raises(ConfigError) as raised:
        read_grid(file, {})
    assert str(raised.value) == (
        "by_method.la has no effect, as the grid does not train la: add la to methods, or leave it out (remove the "
        "table [by_method.la])."
    )
    file.write_text('data = "toy"\nmethods = ["agg"]\nby_method = 3\n')
    with pytest.raises(ConfigError, match=r"^Setting 'by_method' was 3: input should be a valid dictionary"):
        read_grid(file, {"methods": ["la"]})


def test_settings_of_one_method_alone(toy: Manifest, tmp_path: Path) -> None:
    by_method = {"la": {"method": {"criterion": {"tau": 1.5}}, "optimizer": {"lr": 0.003}}}
    grid = parse(
        Grid, {"data": "toy", "methods": ["agg", "la"], "settings": SMALL, "seeds": [0], "by_method": by_method}
    )
    configs = {cell.method: cell.config for cell in cells_of(grid, tmp_path, lambda _: toy)}
    assert (configs["la"].method.criterion.tau, configs["la"].optimizer.lr) == (1.5, 0.003)
    assert (configs["agg"].method.criterion.name, configs["agg"].optimizer.lr) == ("ce", 0.1)
    with pytest.raises(ConfigError, match=r"by_method\.dc has no effect"):
        cells(toy, tmp_path, by_method={"dc": {}})
    with pytest.raises(ConfigError, match=r"z2s = 0\.1 .* write it below \[by_method\.agg\.method\]"):
        cells(toy, tmp_path, by_method={"agg": {"z2s": 0.1}})


def test_a_recipe_is_said_once(toy: Manifest, tmp_path: Path) -> None:
    named = replace(toy, name="bestiary")
    tables = {
        "data": "drawn",
        "methods": ["agg", "ltds"],
        "seeds": [0, 1],
        "by_method": {"ltds": {"method": {"temperature": 0.1}}},
    }
    lines: list[str] = []
    cells = cells_of(parse(Grid, tables), tmp_path, lambda _: named, say=lines.append)
    assert len(cells) == 4 * len(toy.domains)
    assert len(lines) == 1
    assert lines[0].startswith("From the recipe for 'bestiary': data.size=32, data.batch_size=32,")
    assert "temperature" not in lines[0], "the grid gives it"
    cells_of(parse(Grid, tables), tmp_path, lambda _: toy, say=lines.append)
    assert len(lines) == 1, "a dataset without a recipe"
    variants = {name: {"data": {"root": name, "held_out": name}} for name in toy.domains[:2]}
    grid = parse(Grid, {"data": "drawn", "methods": ["agg"], "seeds": [0], "variants": variants})
    cells_of(grid, tmp_path, lambda name: replace(named, root=tmp_path / name), say=lines.append)
    assert len(lines) == 2, "two datasets with one recipe"


def _in_toy(variant: dict[str, Any]) -> dict[str, Any]:
    """A domain of the toy for a variant that holds one of its own out."""
    return {"data": {"held_out": "wax"}} if "held_out" in variant.get("data", {}) else {}


@pytest.mark.parametrize("file", sorted(CONFIGS.rglob("*.toml")), ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_every_published_grid_can_be_read(file: Path, toy: Manifest, tmp_path: Path) -> None:
    """Its settings too, each with every method of the grid; the first line is the command that runs it."""
    assert file.read_text().splitlines()[0] == f"# ltds benchmark configs/{file.parent.name}/{file.name}"
    grid = read_grid(file, {})
    variants = {name: merge(table, _in_toy(table)) for name, table in grid.variants.items()}
    grid = grid.model_copy(update={"held_out": ("wax",), "variants": variants})
    made_cells = cells_of(grid, tmp_path, lambda source: replace(toy, provenance={"builder": source}))
    assert {cell.held_out for cell in made_cells} == {"wax"}
    assert len(made_cells) == len(grid.methods) * len(grid.seeds) * max(1, len(variants))
    made = {(cell.config.method_name, cell.seed) for cell in made_cells}
    assert made == {(method, seed) for method in grid.methods for seed in grid.seeds}
