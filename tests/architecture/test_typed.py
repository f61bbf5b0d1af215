"""A user's type checker sees the public names as what they are, not as Any, and accepts the examples."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest
from repository import ROOT

USER = """
import ltds
from ltds.evaluation import accuracy
from ltds.losses import DistributionCalibratedLoss
from ltds.nn import ResNet
from ltds.stats import Prototypes

reveal_type(ltds.Method)
reveal_type(ltds.Problem)
reveal_type(ltds.train)
reveal_type(ltds.load_model("runs/a").predict(["a.png"]))
reveal_type(ltds.list_methods)
reveal_type(ltds.report)
reveal_type(DistributionCalibratedLoss)
reveal_type(ResNet)
reveal_type(Prototypes)
reveal_type(accuracy)
"""


@pytest.fixture(scope="module")
def revealed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What `mypy --strict` says about a user's file and the examples: the revealed types, without other complaints."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs mypy: pip install 'ltds[dev]'")
    file = tmp_path_factory.mktemp("user") / "user.py"
    file.write_text(USER)
    examples = sorted(map(str, (ROOT / "examples").glob("*.py")))
    cache = ["--cache-dir", str(ROOT / ".mypy_cache")]
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), *cache]
    done = subprocess.run([*words, str(file), *examples], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r'Revealed type is "(.*)"', done.stdout)


def test_no_public_name_is_any(revealed: list[str]) -> None:
    assert len(revealed) == USER.count("reveal_type")
    assert [said for said in revealed if said == "Any"] == []


def test_classes_and_functions_have_their_types(revealed: list[str]) -> None:
    assert re.search(r"ltds\.methods\.base\.Method", revealed[0])
    assert revealed[2].startswith("def (data: ")
    assert revealed[2].endswith("ltds.core.runs.RunDirectory")
    assert re.fullmatch(r"(builtins\.)?list\[ltds\.engine\.model\.ImagePrediction\]", revealed[3])
