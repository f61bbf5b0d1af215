"""Settings of a method from outside the package: which types a run can store, and that it is read from them again."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
import torch.nn.functional as F
from pydantic import Field

import ltds
from ltds.core.errors import ConfigError
from ltds.core.runs import RunDirectory
from ltds.core.storable import require_storable
from ltds.data.manifest import Manifest
from ltds.engine.config import resolve
from ltds.engine.load import load_model
from ltds.engine.start import train_new_run
from ltds.methods.registry import METHODS
from toy import toy_config


class Inner(ltds.Settings):
    depth: int = 2
    rate: float | None = None


class Plain(ltds.Method):
    """Cross-entropy with settings of every type that can be stored."""

    class Config(ltds.Settings):
        tau: float | None = None
        dims: tuple[int, ...] = (1, 2)
        parts: dict[str, float] = Field({"a": 1.0})
        kind: Literal["x", "y"] = "x"
        inner: Inner = Inner()

    def loss(self, batch: ltds.Batch, clock: ltds.Clock) -> ltds.StepLoss:
        return ltds.StepLoss(F.cross_entropy(self.predict(batch.images).logits, batch.labels))


class Colour(Enum):
    RED = "red"


class WithList(ltds.Settings):
    parts: dict[str, float] = Field({"a": 1.0})
    dims: list[int] = Field([1, 2])


class WithPath(ltds.Settings):
    file: Path = Path("x.txt")


class WithEnum(ltds.Settings):
    colour: Colour = Colour.RED


class NoneIsNotTheDefault(ltds.Settings):
    tau: float | None = 0.5


class Odd(Plain):
    Config = WithList  # type: ignore[assignment]


@pytest.mark.parametrize("given", [{}, {"tau": 0.5, "dims": [3], "parts": {"b": 2.0}, "inner": {"rate": 0.1}}])
def test_every_allowed_type_is_the_same_after_a_run(toy: Manifest, tmp_path: Path, given: dict[str, Any]) -> None:
    name = "test_own_settings:Plain"
    config = toy_config(toy, name, schedule={"epochs": 1, "steps_per_epoch": 1}, method=given)
    train_new_run(RunDirectory(tmp_path / "run"), config, toy)
    model = load_model(tmp_path / "run", trust=["test_own_settings"])
    assert model.stored.config.method == config.method
    assert config.method.model_dump(exclude_unset=True).keys() == given.keys()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (WithList(), r"setting 'method\.dims' to be .* got \[1, 2\] \(declared as list\[int\]\)\. .* tuple,"),
        (WithPath(), r"setting 'method\.file' to be a value that a file of settings can hold, .* str,"),
        (WithEnum(), r"setting 'method\.colour' to be .* Literal"),
        (NoneIsNotTheDefault(tau=None), r"'method\.tau' .* None, which must therefore be the default: tau: TYPE"),
    ],
    ids=["list", "Path", "Enum", "None"],
)
def test_other_types_are_refused_by_name(settings: ltds.Settings, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        require_storable(settings, "method.")


def test_a_run_is_refused_before_anything_is_written(toy: Manifest, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"setting 'method\.dims'"):
        train_new_run(RunDirectory(tmp_path / "run"), toy_config(toy, "test_own_settings:Odd"), toy)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_the_package_can_be_stored(name: str) -> None:
    config = resolve({"method": {"name": name}, "data": {"root": "x"}})
    require_storable(config.method, "method.")
    assert resolve(config.to_dict()) == config
