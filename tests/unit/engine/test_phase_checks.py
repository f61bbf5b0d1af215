"""Mistakes in the phases of a method are found before training, not when the phase begins or never."""

from __future__ import annotations

import pytest
from torch import nn

from ltds.core.errors import ConfigError
from ltds.data.manifest import Manifest
from ltds.engine.phase_checks import checked_phases
from ltds.engine.phases import schedule_phases
from ltds.engine.settings import ScheduleSettings
from ltds.methods.agg import Agg
from ltds.methods.base import Phase
from ltds.methods.registry import METHODS
from toy import toy_session


class Phased(Agg):
    """Agg in the phases that a test asks for."""

    asked: object = ()

    def phases(self) -> tuple[Phase, ...]:
        return Phased.asked  # type: ignore[return-value]


FIRST = Phase("a", 0.5)
REFUSED: dict[str, tuple[object, str]] = {
    "none": ((), r"Phased\.phases\(\) to be a tuple of one ltds\.Phase or more, but got \(\)"),
    "list": ([FIRST], r"to be a tuple of one ltds\.Phase or more, but got \[Phase"),
    "text": (("a",), r"to be a tuple of one ltds\.Phase or more, but got \('a',\)"),
    "one name twice": ((FIRST, Phase("a", 0.2)), r"names of Phased\.phases\(\) to be all different, but got 'a' twice"),
    "one object twice": ((FIRST, FIRST), r"to be all different, but got 'a' twice"),
    "sampler": (
        (FIRST, Phase("b", sampler="class")),  # type: ignore[arg-type]
        r"sampler in phase 'b' of Phased\.phases\(\) to be one of domains, classes, but got 'class'\. Did you mean 'cl",
    ),
    "decay": ((Phase("b", decay="none"),), r"decay in phase 'b' .* to be one of milestones, cosine, constant"),  # type: ignore[arg-type]
    "negative share": ((Phase("b", -1.0),), r"share in phase 'b' .* to be a number, 0 or more, but got -1\.0"),
    "share of NaN": ((Phase("b", float("nan")),), r"share in phase 'b' .* but got nan"),
    "lr_scale": ((Phase("b", lr_scale="2"),), r"lr_scale in phase 'b' .* to be a number, 0 or more, but got '2'"),  # type: ignore[arg-type]
    "list of prefixes": (
        (FIRST, Phase("b", trainable=["classifier."])),  # type: ignore[arg-type]
        r"trainable in phase 'b' .* to be a tuple of texts, but got \['classifier\.'\]\. .* with the comma",
    ),
    "no prefixes": ((Phase("b", trainable=()),), r"trainable in phase 'b' .* but got \(\), which are none that learn"),
    "unknown prefix": (
        (FIRST, Phase("b", trainable=("classifier.", "clasifier."))),
        r"the beginning of .* but got 'clasifier\.', which begins none\. Did you mean 'classifier\.'",
    ),
}


@pytest.mark.parametrize(("asked", "message"), REFUSED.values(), ids=list(REFUSED))
def test_mistakes_are_found_before_training(
    toy: Manifest, monkeypatch: pytest.MonkeyPatch, asked: object, message: str
) -> None:
    monkeypatch.setattr(Phased, "asked", asked)
    with pytest.raises(ConfigError, match=message):
        toy_session(toy, "test_phase_checks:Phased")


def test_a_prefix_of_frozen_parameters_trains_nothing(toy: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Phased, "asked", (Phase("b", trainable=("classifier.",)),))
    method = toy_session(toy, "test_phase_checks:Phased").method
    method.classifier.requires_grad_(False)
    with pytest.raises(ConfigError, match=r"\('classifier\.',\), which are none that learn"):
        checked_phases(method)


def test_a_backbone_without_parameters_can_be_named(toy: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (Phase("b", trainable=("backbone.", "classifier.")),)
    monkeypatch.setattr(Phased, "asked", asked)
    method = toy_session(toy, "test_phase_checks:Phased").method
    method.backbone = nn.Flatten()  # as with backbone.frozen=4
    assert checked_phases(method) == asked


def test_only_the_last_of_equal_phases_is_the_last() -> None:
    phase = Phase("a", 0.5)
    assert [s.last for s in schedule_phases((phase, phase), ScheduleSettings(epochs=4))] == [False, True]


@pytest.mark.parametrize("name", [name for name in METHODS if name in ("agg", "crt", "lws", "daml-warmup", "ltds")])
def test_the_phases_of_the_package_are_accepted(toy: Manifest, name: str) -> None:
    method = toy_session(toy, name).method
    assert checked_phases(method) == method.phases()
