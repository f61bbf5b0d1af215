"""The public names: all exist, all have static types, and the examples use no others."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import MODULES, ROOT, SOURCE, is_type_checking, tree

import ltds

PACKAGES = [".".join(("ltds", *f.parent.relative_to(SOURCE).parts)) for f in MODULES if f.name == "__init__.py"]
PUBLIC = ["ltds", "ltds.losses", "ltds.stats", "ltds.nn", "ltds.evaluation", "ltds.sklearn"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def typed_imports() -> dict[str, str]:
    """Public name -> module, from the imports that only type checkers see."""
    blocks = [node for node in tree(SOURCE / "__init__.py").body if is_type_checking(node)]
    imports = [node for block in blocks for node in ast.walk(block) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: f"{node.module}:{alias.name}" for node in imports for alias in node.names}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_in_all_exists(package: str) -> None:
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [])
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(module, name)] == []


@pytest.mark.parametrize("package", PUBLIC)
def test_public_packages_say_what_they_export(package: str) -> None:
    assert importlib.import_module(package).__all__


def test_type_checkers_see_what_is_loaded() -> None:
    typed = typed_imports()
    assert set(typed) == set(ltds.__all__) - {"__version__"}
    for name, target in typed.items():
        module, _, attribute = target.partition(":")
        assert getattr(ltds, name) is getattr(importlib.import_module(module), attribute), name


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ltds.nothing


def imported_names(file: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda f: f.name)
def test_examples_import_public_names_only(file: Path) -> None:
    for module, name in imported_names(file):
        if module.split(".")[0] == "ltds":
            assert module in PUBLIC, f"{module} is not public"
            assert not name or name in importlib.import_module(module).__all__, f"{module}.{name} is not public"
