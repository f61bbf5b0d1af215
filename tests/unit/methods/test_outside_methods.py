"""Classes from outside the package that cannot work as a method are refused with a sentence, before training."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch.nn.functional as F
from torch import nn

import ltds
from ltds.core.errors import ConfigError
from ltds.data.manifest import Manifest
from ltds.methods.registry import find_method
from toy import toy_session


class Plain(ltds.Method):
    """Cross-entropy, with as little as a method can have: no settings."""

    def loss(self, batch: ltds.Batch, clock: ltds.Clock) -> ltds.StepLoss:
        return ltds.StepLoss(F.cross_entropy(self.predict(batch.images).logits, batch.labels))


class Blank(Plain):
    """ """


class Named(Plain):
    class Config(ltds.Settings):
        name: str = "x"


@dataclass
class Data:
    k: int = 3


class DataclassConfig(Plain):
    Config = Data  # type: ignore[assignment]


class WithoutLoss(ltds.Method):
    pass


class OneArgument(Plain):
    def __init__(self, config: Any) -> None:
        pass


class SetsFirst(Plain):
    def __init__(self, config: Any, problem: Any) -> None:
        self.head = nn.Linear(2, 2)


class WithoutBackbone(Plain):
    def __init__(self, config: Any, problem: Any) -> None:
        nn.Module.__init__(self)


REFUSED = {
    "Named": r"Config of '\S+Named' to be without a setting called 'name', .* give the setting another name",
    "DataclassConfig": r"Config of '\S+' to be a subclass of ltds\.Settings, but got .*Data.* or leave Config out",
    "WithoutLoss": r"to be a class with a method 'loss', but got one without it",
    "OneArgument": r"to be built as Class\(config, problem\), but got 'too many positional arguments'",
}
NOT_BUILT = {
    "SetsFirst": r"got AttributeError: cannot assign module .*\(\S+test_outside_methods\.py, line \d+\).*super\(\)",
    "WithoutBackbone": r"to be a module with a network 'backbone', but got none",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_class_that_cannot_work_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=REFUSED[name]):
        find_method(f"test_outside_methods:{name}")


def test_a_class_of_the_running_script_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "Plain", Plain, raising=False)
    with pytest.raises(ConfigError, match=r"but got '__main__'. Put it into a file .* 'mine:Plain' for mine\.py"):
        find_method("__main__:Plain")


@pytest.mark.parametrize("name", NOT_BUILT)
def test_what_goes_wrong_in_init_is_said_with_its_line(toy: Manifest, name: str) -> None:
    with pytest.raises(ConfigError, match=NOT_BUILT[name]):
        toy_session(toy, f"test_outside_methods:{name}")


def test_settings_and_a_description_can_be_left_out(toy: Manifest, tmp_path: Path) -> None:
    assert find_method("test_outside_methods:Blank").summary == "test_outside_methods:Blank"
    assert find_method("test_outside_methods:Plain").method.Config.model_fields == {}
    assert toy_session(toy, "test_outside_methods:Plain").config.to_dict()["method"] == {
        "name": "test_outside_methods:Plain"
    }
