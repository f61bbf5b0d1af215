"""The files of the repository, for the tests that read them as text."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "ltds"
MODULES = sorted(SOURCE.rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TOLD = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """(line number, text) of what a file says in words: a Python file's strings and comments, all of any other."""
    content = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        yield from enumerate(content.splitlines(), start=1)
        return
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type in TOLD:
            yield from enumerate(token.string.splitlines(), start=token.start[0])


def find(pattern: str, files: list[Path]) -> list[str]:
    """Each match of the pattern in what the files say, as "path:line: match"."""
    return [
        f"{file.relative_to(ROOT)}:{line}: {match.group()}"
        for file in files
        for line, text in texts(file)
        for match in re.finditer(pattern, text)
    ]


def needs_pinned(package: str) -> pytest.MarkDecorator:
    """Skip where the package is not the version of constraints.txt, of which the files in the repository were made."""
    pinned = re.search(rf"(?m)^{package}==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert pinned is not None
    same = version(package) == pinned[1]
    return pytest.mark.skipif(
        not same, reason=f"{package} {version(package)} is not the {pinned[1]} of constraints.txt"
    )


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def is_type_checking(node: ast.AST) -> bool:
    """Whether the node is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def benchmark_module(name: str) -> ModuleType:
    """A script of benchmarks/, imported; as when it is run, it finds its neighbours."""
    if str(ROOT / "benchmarks") not in sys.path:
        sys.path.append(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
