"""Which tests can notice a fault in a source file, the quick and likely ones first."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOMS = ("losses", "stats", "methods", "evaluation", "engine")
SLOW = (
    "test_averaging.py",
    "test_training_options.py",
    "test_export.py",
    "test_load_model.py",
    "test_extraction.py",
    "test_frozen.py",
    "test_feature_mode.py",
)
GENERAL = {
    "losses": ["tests/unit/losses", "tests/properties/test_loss_properties.py"],
    "stats": ["tests/unit/stats"],
    "methods": ["tests/unit/methods/test_methods_table.py"],
    "evaluation": ["tests/unit/evaluation"],
    "engine": [
        "tests/unit/engine/test_engine.py",
        "tests/unit/engine/test_what_is_evaluated.py",
        "tests/unit/engine/test_training_options.py",
    ],
}
WHOLE_RUNS = ("tests/resume/", "tests/ranks/")  # slow, so they come last
GOLDEN = "tests/golden/test_golden.py::test_thirty_steps_are_as_they_were"


def module_name(file: str) -> str:
    """src/ltds/losses/triplet.py -> ltds.losses.triplet"""
    return file.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def noticing_tests(root: Path, file: str) -> list[str]:
    """Arguments for pytest: test files that name the module, those of its room, golden journals, then whole runs."""
    module, room = module_name(file), file.split("/")[2]
    naming = sorted(_naming(root, module), key=lambda test: (f"/{room}/" not in test, test.endswith(SLOW), test))
    general = [test for test in GENERAL[room] if (root / test).exists()]
    if room == "engine":  # most of it is used through ltds.train, ltds.load_model and so on, and not named
        every = (str(f.relative_to(root)) for f in (root / "tests/unit/engine").glob("test_*.py"))
        general = [*general, *sorted(every, key=lambda test: (test.endswith(SLOW), test))]
    if ".table." in module:  # the table is seen through the registry
        naming = [*naming, *_naming(root, "ltds.methods.registry")]
    golden = [f"{GOLDEN}[{name}]" for name in _golden(root, module)] if room in ("losses", "stats", "methods") else []
    whole_runs = [test for test in naming if test.startswith(WHOLE_RUNS)]
    chosen = [test for test in naming if test not in whole_runs]
    return list(dict.fromkeys([*chosen, *general, *golden, *whole_runs]))


@cache
def _naming(root: Path, module: str) -> tuple[str, ...]:
    """The test files that import this module, or are called after it."""
    short = module.rpartition(".")
    pattern = re.compile(rf"{re.escape(module)}\b|from {re.escape(short[0])} import .*\b{re.escape(short[2])}\b")
    rooms = ("unit", "properties", "resume", "ranks")
    files = [f for room in rooms for f in sorted((root / "tests" / room).rglob("test_*.py"))]
    named = tuple(f"test_{part}" for part in module.split(".")[2:])  # test_export also for ltds.engine.export.card
    return tuple(str(f.relative_to(root)) for f in files if f.stem.startswith(named) or pattern.search(f.read_text()))


@cache
def _golden(root: Path, module: str) -> tuple[str, ...]:
    """One method of the table for each class whose code reaches this module, and the paper's own method."""
    if ".table." in module:
        return tuple(name for name, _ in _methods(root))
    chosen: dict[str, str] = {}
    for name, method in _methods(root):
        if module == method or module in _reached(root, method):
            chosen.setdefault(method if module != method else name, name)
    return tuple(chosen.values())


@cache
def _methods(root: Path) -> tuple[tuple[str, str], ...]:
    """(name, module of its class) of every method, read from the table without importing it."""
    found = []
    for file in sorted((root / "src/ltds/methods/table").glob("*.py")):
        tree = ast.parse(file.read_text())
        origin: dict[str, str] = {}
        for node in ast.walk(tree):
            match node:
                case ast.ImportFrom(module=str(module), names=names):
                    origin |= {alias.name: module for alias in names}
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(path))):
                    origin[name] = path.partition(":")[0]
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="MethodEntry"), args=[ast.Constant(value=str(name)), cls, *_]):
                    found.append((name, origin[ast.unparse(cls)]))
    return tuple(found)


@cache
def _reached(root: Path, module: str) -> frozenset[str]:
    """All modules of the package that this one imports, directly or not."""
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        for name in _imports(root, waiting.pop()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return frozenset(reached)


@cache
def _imports(root: Path, module: str) -> tuple[str, ...]:
    path = root / "src" / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.is_file():
        return ()
    tree = ast.parse(file.read_text())
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return tuple(name for name in names if name.startswith("ltds."))
