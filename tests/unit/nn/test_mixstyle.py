"""MixStyle against its slow twin and the worked example; when it acts, on what, and with whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.testing import assert_close

from ltds.core.errors import ConfigError
from ltds.nn.mixstyle import MixStyle, MixStyleSettings, draw_partners, mix_styles
from ltds.nn.resnet import BasicBlock, ResNet
from ltds.nn.small import TinyNet
from ltds.nn.stages import split_backbone
from reference import criteria_reference as twin

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"
DOMAINS = torch.tensor([0, 0, 0, 1, 1, 1])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def maps(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=seeded(), dtype=torch.float64)


def layer(backbone: nn.Module, **settings: Any) -> MixStyle:
    return MixStyle(MixStyleSettings(**{"p": 1.0} | settings), backbone)


def test_worked_example() -> None:
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not next to this repository ({FILE.name})")
    example = json.loads(FILE.read_text())["examples"]["mixstyle"]
    x, share = (torch.tensor(example["inputs"][k], dtype=torch.float64) for k in ("x", "lambda"))
    out = mix_styles(x, torch.tensor(example["inputs"]["perm"]), share)
    wanted = {k: torch.tensor(v, dtype=torch.float64) for k, v in example["expected"].items()}
    assert_close(out, wanted["out"], rtol=0, atol=1e-9)
    assert_close(out.mean((2, 3)), wanted["out_mean"], rtol=0, atol=1e-9)
    assert_close(out.std((2, 3)), wanted["out_std_unbiased"], rtol=0, atol=1e-9)


def test_it_is_its_twin() -> None:
    x, partners, share = maps(4, 3, 5, 2), torch.tensor([2, 0, 3, 1]), torch.tensor([0.1, 0.9, 0.5, 0.0])
    wanted = twin.mixstyle(x.tolist(), partners.tolist(), share.double().tolist())
    assert_close(mix_styles(x, partners, share.double()), torch.tensor(wanted, dtype=torch.float64))


def test_a_share_of_one_is_the_identity() -> None:
    x = maps(3, 2, 4, 4)
    assert_close(mix_styles(x, torch.tensor([1, 2, 0]), torch.ones(3)), x, rtol=0, atol=1e-12)


def test_no_gradient_through_the_statistics() -> None:
    """d out / d x is then mixed sigma / sigma at every position, and a partner gets nothing."""
    x = maps(2, 1, 3, 3).requires_grad_()
    share = torch.tensor([0.3, 0.6], dtype=torch.float64)
    mix_styles(x, torch.tensor([1, 0]), share)[0].sum().backward()
    sigma = [twin.style(channel[0])[1] for channel in x.tolist()]
    slope = (0.3 * sigma[0] + 0.7 * sigma[1]) / sigma[0]
    assert_close(x.grad[0], torch.full((1, 3, 3), slope, dtype=torch.float64))
    assert (x.grad[1] == 0).all()


def test_partners_across_domains_are_of_another_domain_and_each_once() -> None:
    domains = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2])
    for seed in range(20):
        partners = draw_partners(domains, "crossdomain", seeded(seed))
        assert (domains[partners] != domains).all()
        assert sorted(partners.tolist()) == list(range(9))
    uneven = torch.tensor([0, 0, 0, 1])
    assert (uneven[draw_partners(uneven, "crossdomain", seeded())] != uneven).all()


def test_random_partners_are_a_permutation_of_the_batch() -> None:
    drawn = [draw_partners(DOMAINS, "random", seeded(seed)).tolist() for seed in range(20)]
    assert all(sorted(partners) == list(range(6)) for partners in drawn)
    assert len({tuple(partners) for partners in drawn}) > 15


@pytest.mark.parametrize("backbone", [TinyNet(8), ResNet(BasicBlock, (1, 1, 1, 1), stem="small", width=4)])
def test_it_acts_in_training_inside_the_with_and_nowhere_else(backbone: nn.Module) -> None:
    mixstyle, x = layer(backbone), torch.randn(6, 3, 16, 16, generator=seeded())
    backbone.train()
    plain = backbone(x)
    with mixstyle.mixing(DOMAINS, seeded(1)):
        mixed = backbone(x)
        backbone.eval()
        quiet = backbone(x)
    assert (mixed - plain).abs().max() > 1e-3
    assert torch.equal(backbone(x), quiet)
    assert torch.equal(backbone.train()(x), plain)
    assert not any(module._forward_hooks for module in backbone.modules())


def test_the_same_generator_mixes_the_same_way() -> None:
    backbone, x = TinyNet(8), torch.randn(6, 3, 16, 16, generator=seeded())
    outs = []
    for seed in (1, 1, 2):
        with layer(backbone).mixing(DOMAINS, seeded(seed)):
            outs.append(backbone(x))
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])


def test_each_stage_mixes_with_its_own_draw_at_probability_p() -> None:
    """Stages of identity show whether they were mixed."""

    class Stages(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stages = nn.ModuleList([nn.Identity(), nn.Identity()])

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            first = self.stages[0](x)
            return first, self.stages[1](first)

    backbone, x, changed = Stages(), maps(6, 2, 3, 3), []
    mixstyle = layer(backbone, p=0.3, stages=(1, 2))
    with mixstyle.mixing(DOMAINS, seeded()):
        for _ in range(400):
            first, second = backbone(x)
            changed.append([not torch.equal(first, x), not torch.equal(second, first)])
    rates = torch.tensor(changed).double()
    assert_close(rates.mean(0), torch.tensor([0.3, 0.3], dtype=torch.float64), rtol=0, atol=0.07)
    assert abs(torch.corrcoef(rates.T)[0, 1]) < 0.15


def test_hooks_go_also_after_an_error() -> None:
    backbone = TinyNet(8)
    with pytest.raises(RuntimeError, match="size"), layer(backbone).mixing(DOMAINS, seeded()):
        backbone(torch.zeros(6, 5, 16, 16))
    assert not any(module._forward_hooks for module in backbone.modules())


@pytest.mark.parametrize(
    ("frozen", "settings", "mixed"),
    [(0, {}, [1, 2, 3]), (1, {}, [2, 3]), (2, {}, [3]), (1, {"stages": (2, 4)}, [2, 4]), (3, {"stages": (4,)}, [4])],
)
def test_stages_are_counted_in_the_whole_network(frozen: int, settings: dict[str, Any], mixed: list[int]) -> None:
    backbone: nn.Module = ResNet(BasicBlock, (1, 1, 1, 1), stem="small", width=8)
    number = {id(stage): i for i, stage in enumerate(backbone.stages, 1)}
    if frozen:
        _, backbone = split_backbone(backbone, frozen)
    assert [number[id(point)] for point in layer(backbone, **settings).points] == mixed


@pytest.mark.parametrize(("frozen", "settings"), [(3, {}), (1, {"stages": (1, 2)}), (4, {}), (2, {"stages": (1,)})])
def test_frozen_stages_cannot_be_mixed(frozen: int, settings: dict[str, Any]) -> None:
    _, later = split_backbone(ResNet(BasicBlock, (1, 1, 1, 1), stem="small", width=8), frozen)
    mixstyle = layer(later, **settings)  # of a model that is only used
    with (
        pytest.raises(ConfigError, match=rf"from {frozen + 1} on with backbone\.frozen={frozen}, .* Name later stages"),
        mixstyle.mixing(DOMAINS, seeded()),
    ):
        pass


def test_bad_backbones_and_batches() -> None:
    with pytest.raises(ConfigError, match="Expected a backbone with stages for MixStyle, but Sequential has no"):
        layer(nn.Sequential(nn.Flatten()))
    with pytest.raises(ConfigError, match="to be among 1 to 4, the stages of TinyNet"):
        layer(TinyNet(8), stages=(1, 5))
    for mix in ("random", "crossdomain"):
        with (
            pytest.raises(ConfigError, match="Expected a batch of two domains or more for MixStyle"),
            layer(TinyNet(8), mix=mix).mixing(torch.zeros(4, dtype=torch.long), seeded()),
        ):
            pass
    backbone = TinyNet(8)
    with (
        pytest.raises(ConfigError, match=r"of two positions or more for MixStyle, but a stage gave \(6, 8, 1, 1\)"),
        layer(backbone, stages=(2,)).mixing(DOMAINS, seeded()),
    ):
        backbone(torch.rand(6, 3, 2, 2))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"alpha": 0.3}, "alpha has no effect without MixStyle"),
        ({"mix": "crossdomain"}, "mix has no effect without MixStyle"),
        ({"p": 0.5, "stages": ()}, "one or more stages without repetition"),
        ({"p": 0.5, "stages": (1, 1)}, r"without repetition, but was \(1, 1\)"),
        ({"p": 0.5, "stages": (0,)}, "greater than 0"),
        ({"p": 1.5}, "less than or equal to 1"),
        ({"p": 0.5, "alpha": 0.0}, "greater than 0"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        MixStyleSettings(**settings)
