"""Reinitialised copies: new weights from the same distribution, and pretrained weights kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.nn.networks import new_domain_network, reinitialised_copy


def same(one: nn.Module, other: nn.Module) -> bool:
    mine, theirs = one.state_dict(), other.state_dict()
    assert mine.keys() == theirs.keys()
    return all(torch.equal(mine[key], theirs[key]) for key in mine)


@pytest.mark.parametrize("name", ["resnet10", "resnet50"])
def test_a_resnet_is_drawn_anew_by_its_own_law(name: str) -> None:
    torch.manual_seed(0)
    backbone = build_backbone(BackboneSettings(name=name, width=16))
    twin = reinitialised_copy(backbone)
    for (key, old), new in zip(backbone.named_parameters(), twin.parameters(), strict=True):
        assert new is not old
        if new.ndim == 4:  # Kaiming normal, fan-out: variance 2 / (outputs x kernel area)
            assert not torch.equal(new, old), key
            fan_out = new.shape[0] * new.shape[2] * new.shape[3]
            tolerance = 5 / (2 * new.numel()) ** 0.5  # five standard errors of a standard deviation
            assert float(new.detach().std()) == pytest.approx((2 / fan_out) ** 0.5, rel=tolerance), key
        else:
            assert torch.equal(new, old), key  # BatchNorm: 1 and 0


def test_the_tiny_network_is_drawn_anew_too() -> None:
    torch.manual_seed(0)
    backbone = build_backbone(BackboneSettings(name="tiny"))
    copies = [reinitialised_copy(backbone) for _ in range(2)]
    assert not same(copies[0], backbone)
    assert not same(copies[0], copies[1])
    bound = (1 / 27) ** 0.5  # torch's rule for 3 x 3 x 3 inputs
    assert bound * 0.8 < float(copies[0].body[0].weight.detach().abs().max()) <= bound


def test_weights_from_a_file_are_kept_in_every_copy(tmp_path: Path) -> None:
    trained = build_backbone(BackboneSettings(width=8))
    trained.train()(torch.randn(4, 3, 32, 32))
    torch.save(trained.state_dict(), tmp_path / "weights.pth")
    backbone = build_backbone(BackboneSettings(width=8, weights=str(tmp_path / "weights.pth")))
    assert same(backbone, trained)
    assert same(reinitialised_copy(backbone), trained)


def test_a_user_s_network_is_kept_unless_it_says_how_to_draw_itself() -> None:
    plain = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
    assert same(reinitialised_copy(plain), plain)

    class Custom(nn.Linear):
        def reset_parameters(self) -> None:
            nn.init.normal_(self.weight, 100.0)

    custom = Custom(3, 2, bias=False)
    assert not same(reinitialised_copy(custom), custom)
    assert float(reinitialised_copy(custom).weight.detach().mean()) == pytest.approx(100, abs=3)


def test_the_classifier_is_always_new() -> None:
    torch.manual_seed(0)
    head = nn.Linear(4, 3)
    network = new_domain_network(nn.Identity(), head)
    assert network.classifier.weight.shape == (3, 4)
    assert not torch.equal(network.classifier.weight, head.weight)
    images = torch.randn(2, 4)
    torch.testing.assert_close(network(images), network.classifier(images))
