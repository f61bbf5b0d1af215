"""The faults of `make mutants`: what they change, that they stay named, and which tests may notice them."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from faults import find_faults
from which_tests import ROOMS, noticing_tests

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''"""A docstring with 3 + 4."""
LIMIT: int = 5


def f(x: int, flag: bool = True) -> int:
    if x < LIMIT and not flag:
        raise ValueError(f"{x + 1} is {1 == 2}")
    y = (x + 2) * 3
    g.eval()
    return max(y, -x) if flag else y.detach().mean(dim=0)
'''


def test_each_fault_is_one_change() -> None:
    found = [(fault.line, fault.old, fault.new) for fault in find_faults("f.py", SOURCE)]
    assert found == [
        (2, "5", "6"),
        (5, "True", "False"),
        (6, "<", "<="),
        (6, "and", "or"),
        (6, "not ", ""),
        (8, "+", "-"),
        (8, "2", "3"),
        (8, "*", "/"),
        (8, "3", "4"),
        (9, "g.eval()", "pass"),
        (9, "eval", "train"),
        (10, "max", "min"),
        (10, "-", "+"),
        (10, "flag", "(not flag)"),
        (10, ".detach()", ""),
        (10, "mean", "sum"),
        (10, "0", "1"),
    ], "nothing in annotations, docstrings, messages"


@pytest.mark.parametrize("room", ROOMS)
def test_every_fault_of_the_package_is_python_and_has_a_name_and_tests(room: str) -> None:
    for file in sorted((ROOT / "src/ltds" / room).glob("*.py")):
        source, name = file.read_text(), str(file.relative_to(ROOT))
        faults = find_faults(name, source)
        assert len({fault.key for fault in faults}) == len(faults)
        for fault in faults[::7]:
            ast.parse(fault.applied(source))
        assert not faults or noticing_tests(ROOT, name), name


def test_a_fault_keeps_its_name_and_rank_when_lines_move() -> None:
    before = find_faults("f.py", SOURCE)
    after = find_faults("f.py", SOURCE.replace("LIMIT: int = 5\n", "LIMIT: int = 5\nOTHER: str = 'x'\n"))
    assert [fault.key for fault in before] == [fault.key for fault in after]
    assert [fault.rank(1) for fault in before] == [fault.rank(1) for fault in after]
    assert [fault.rank(1) for fault in before] != [fault.rank(2) for fault in before]


def test_equivalent_faults_still_exist() -> None:
    """A line of equivalent.toml whose fault is gone excuses nothing and should go, too."""
    for key in tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text()):
        name = key.split(" ")[0]
        assert key in {fault.key for fault in find_faults(name, (ROOT / name).read_text())}, key
