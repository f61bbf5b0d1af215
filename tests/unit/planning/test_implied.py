"""Names that a user's settings imply, before anything is planned."""

from __future__ import annotations

from typing import Any

import pytest

from ltds.planning import implied
from ltds.planning.implied import with_implied_names

PRETRAINED = {"name": "efficientnet-lite0", "weights": "imagenet"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"averaging": {"start": 0.5}}, {"averaging": {"name": "ema", "start": 0.5}}),
        ({"averaging": {"tolerance": 0.1}}, {"averaging": {"tolerance": 0.1}}),  # of SWAD: its name must be given
        ({"averaging": "none"}, {"averaging": "none"}),
        ({"backbone": {"frozen": 3}}, {"backbone": {"frozen": 3, **PRETRAINED}}),
        ({"backbone": {"batchnorm": "fixed"}}, {"backbone": {"batchnorm": "fixed", **PRETRAINED}}),
        ({"backbone": {"frozen": 3, "name": "resnet18"}}, {"backbone": {"frozen": 3, "name": "resnet18"}}),
        ({"backbone": {"frozen": 3, "weights": "a.pth"}}, {"backbone": {"frozen": 3, "weights": "a.pth"}}),
        ({"backbone": {"width": 32}}, {"backbone": {"width": 32}}),
    ],
)
def test_a_detail_implies_the_name(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    monkeypatch.setattr(implied, "pretrained_is_installed", lambda: True)
    assert with_implied_names(given) == expected


def test_without_the_extra_no_network_is_implied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implied, "pretrained_is_installed", lambda: False)
    assert with_implied_names({"backbone": {"frozen": 3}}) == {"backbone": {"frozen": 3}}
