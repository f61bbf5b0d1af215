"""L_S2S and L_S2Z over a sample of classes: against slow twins, against all classes, and what is unbiased in them."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from test_semantic_alignment import heads, saved_bytes, small_blocks, tables
from torch.testing import assert_close

from ltds.core.rng import generator
from ltds.losses.class_sample import ClassSample, draw_classes
from ltds.losses.semantic_alignment import semantic_alignment_loss
from ltds.losses.semantic_to_visual import semantic_to_visual_loss
from reference import sampled_equations as eq

__all__ = ["small_blocks"]  # a fixture
SPHERE = {"margin": 0.1, "temperature": 1 / 30}
SOFT = {"margin": 0.1, "temperature": 0.3}


def sample_of(batch: list[int], drawn: list[int], total: int) -> ClassSample:
    return ClassSample(torch.tensor([*batch, *drawn], dtype=torch.long), len(batch), total)


CASES = [([1, 4], [0, 3, 6], 9), ([], [2, 5], 6), ([0, 1, 2, 3], [5, 7], 8), ([3], [0, 1, 2, 4, 5], 7)]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("options", [{}, {"negatives": "released"}, {"to_semantics": False}])
@pytest.mark.parametrize(("batch", "drawn", "C"), CASES)
@pytest.mark.parametrize("T", [1, 3])
def test_alignment_equals_the_slow_twin(T, batch, drawn, C, options, fused):
    t, s = tables(T, C)
    sample = sample_of(batch, drawn, C)
    part = t[:, sample.classes], s[sample.classes]
    loss = semantic_alignment_loss(*part, fused=fused, sample=sample, **options, **SPHERE)
    reading = options.get("negatives") == "released", options.get("to_semantics", True)
    twin = eq.align(t.tolist(), s.tolist(), batch, drawn, 0.1, 1 / 30, *reading)
    assert loss.item() == pytest.approx(float(twin), abs=1e-11)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("cycle", ["s2s", "z2s"])
@pytest.mark.parametrize(("batch", "drawn", "C"), CASES)
def test_semantic_to_visual_equals_the_slow_twin(batch, drawn, C, cycle, fused):
    visual, W, b = heads(2, C)
    cycled, s = tables(2, C)
    sample = sample_of(batch, drawn, C)
    i = sample.classes
    part = visual[:, i], W[i], b[i], 3 * cycled[:, i], s[i]
    loss = semantic_to_visual_loss(*part, weights=(0.7, 0.4), cycle=cycle, fused=fused, sample=sample, **SPHERE)
    settings = (batch, drawn, 0.1, 1 / 30, (0.7, 0.4), 1.0 if cycle == "s2s" else 0.0)
    twins = [
        eq.s2z(v, W.tolist(), b.tolist(), c, s.tolist(), *settings)
        for v, c in zip(visual.tolist(), (3 * cycled).tolist(), strict=True)
    ]
    assert loss.item() == pytest.approx(float(sum(twins)) / 2, abs=1e-11)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("negatives", ["paper", "released"])
@pytest.mark.parametrize("certain", [0, 9])
def test_fused_equals_plain_with_its_gradient(share, negatives, certain):
    """With copies of s among the rows, and without."""
    t, s = tables(3, 33)
    sample = ClassSample(torch.arange(33), certain, 90)
    projected = torch.rand(3, 33, generator=torch.Generator().manual_seed(1)) < share
    filled = torch.where(projected[..., None], t, s)
    visual, W, b = heads(3, 33)
    values = []
    for fused in (True, False):
        align = semantic_alignment_loss(
            filled, s, fused=fused, projected=projected, negatives=negatives, sample=sample, **SPHERE
        )
        back = semantic_to_visual_loss(visual, W, b, t, s, fused=fused, sample=sample, **SPHERE)
        values.append([align, back, *torch.autograd.grad(align + 2 * back, [t, visual, W, b], retain_graph=True)])
    for fused, plain in zip(*values, strict=True):
        assert_close(fused, plain, rtol=1e-9, atol=1e-11)


def test_the_readable_form_has_two_derivatives():
    t, s = tables(2, 4, S=3)
    sample = ClassSample(torch.arange(4), 1, 9)
    assert torch.autograd.gradcheck(lambda x: semantic_alignment_loss(x, s, fused=True, sample=sample, **SOFT), t)
    assert torch.autograd.gradgradcheck(lambda x: semantic_alignment_loss(x, s, fused=False, sample=sample, **SOFT), t)


def test_a_draw_has_the_batch_and_distinct_others():
    sample = draw_classes(torch.tensor([7, 3, 7, 90]), 100, 20, generator(0, "main/contrast", 4))
    again = draw_classes(torch.tensor([90, 3, 3, 7]), 100, 20, generator(0, "main/contrast", 4))
    later = draw_classes(torch.tensor([7, 3, 7, 90]), 100, 20, generator(0, "main/contrast", 5))
    assert sample.classes[:3].tolist() == [3, 7, 90]
    assert sample.certain == 3
    assert len(sample.classes.unique()) == 20
    assert torch.equal(sample.classes, again.classes)
    assert not torch.equal(sample.classes, later.classes)


def test_a_sample_for_another_device_is_known_on_the_host() -> None:
    here, there = (
        draw_classes(torch.tensor([7, 3]), 100, 20, generator(0, "x"), torch.device(device))
        for device in ("cpu", "meta")
    )
    assert there.classes.device.type == "meta"
    assert torch.equal(there.host_classes, here.classes)
    assert torch.equal(ClassSample(here.classes, 2, 100).host_classes, here.classes)


@pytest.mark.parametrize(("in_batch", "size", "drawn"), [(0, 10, 10), (4, 10, 6), (8, 10, 5), (30, 10, 5), (9, 2, 2)])
def test_a_batch_of_many_classes_is_kept_whole_and_others_are_drawn(in_batch, size, drawn):
    sample = draw_classes(torch.arange(in_batch), 100, size, generator(0, "x"))
    assert sample.certain == in_batch
    assert len(sample.classes) == in_batch + drawn


@pytest.mark.parametrize(("in_batch", "size"), [(0, 9), (5, 9), (0, 20), (7, 4), (8, 2), (9, 3)])
def test_a_sample_that_would_be_all_classes_is_none(in_batch, size):
    assert draw_classes(torch.arange(in_batch), 9, size, generator(0, "x")) is None


def test_every_other_class_is_as_likely_as_any():
    counts = torch.zeros(12)
    for step in range(600):
        counts[draw_classes(torch.tensor([2, 5]), 12, 6, generator(0, "x", step)).classes] += 1
    assert counts[[2, 5]].tolist() == [600, 600]
    others = torch.tensor([c for c in range(12) if c not in (2, 5)])
    assert (counts[others] / 600 - 0.4).abs().max() < 4 * (0.4 * 0.6 / 600) ** 0.5


@pytest.mark.parametrize(("certain", "drawn", "C"), [(2, 3, 8), (0, 2, 6), (1, 5, 7)])
def test_anchors_and_denominators_are_unbiased(certain, drawn, C):
    """Over all samples there are: the mean over anchors, and each anchor's sum over negatives where it is sampled."""
    value = torch.rand(C, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pair = torch.rand(C, C, generator=torch.Generator().manual_seed(1), dtype=torch.float64).fill_diagonal_(0)
    means, sums, times = [], torch.zeros(C, dtype=torch.float64), torch.zeros(C)
    for others in combinations(range(certain, C), drawn):
        sample = sample_of(list(range(certain)), list(others), C)
        i = sample.classes
        means.append((sample.anchor_weights * value[i]).mean())
        assert sample.anchor_weights.mean().item() == pytest.approx(1, abs=1e-14)
        sums[i] += (sample.log_weights.exp() * pair[i][:, i]).sum(1)
        times[i] += 1
    assert torch.stack(means).mean().item() == pytest.approx(value.mean().item(), abs=1e-14)
    assert_close(sums / times, pair.sum(1), rtol=0, atol=1e-12)


def test_without_a_batch_negatives_count_c_less_one_over_m_less_one():
    assert_close(sample_of([], [1, 3, 4, 7], 10).factors, torch.full((4,), 9 / 3, dtype=torch.float64))


def mean_gradient_error(size: int, draws: int) -> tuple[float, float, float]:
    """Relative error of the mean gradient over draws, its standard error, and full loss less the mean loss."""
    t, s = tables(2, 60, S=16)
    visual, W, b = heads(2, 60)
    inputs = [t, visual, W, b]

    def loss(sample: ClassSample | None) -> torch.Tensor:
        i = slice(None) if sample is None else sample.classes
        align = semantic_alignment_loss(t[:, i], s[i], sample=sample, **SOFT)
        return align + semantic_to_visual_loss(visual[:, i], W[i], b[i], t[:, i], s[i], sample=sample, **SOFT)

    def gradient(value: torch.Tensor) -> torch.Tensor:
        return torch.cat([g.flatten() for g in torch.autograd.grad(value, inputs)])

    full, found, values = gradient(loss(None)), [], []
    for step in range(draws):
        value = loss(draw_classes(torch.arange(8), 60, size, generator(0, "test", step)))
        found.append(gradient(value))
        values.append(value.item())
    stacked = torch.stack(found)
    noise = (stacked.var(0).sum() / draws).sqrt() / full.norm()
    below = loss(None).item() - sum(values) / draws
    return ((stacked.mean(0) - full).norm() / full.norm()).item(), noise.item(), below


def test_the_mean_gradient_over_draws_approaches_the_full_one():
    """Beyond the noise of 80 draws, 5 % is left at M = 45 of 60: the bias of the logarithm, which falls with M."""
    few, many = (mean_gradient_error(size, 80) for size in (20, 45))
    error, noise, below = many
    assert error < 0.12
    assert error**2 < noise**2 + 0.05**2
    assert error < few[0] / 2
    assert 0 < below < few[2] / 4


def test_memory_depends_on_the_sample_not_on_the_classes():
    def kept(C: int) -> int:
        sample = draw_classes(torch.arange(20), C, 300, generator(0, "x"))
        t, s = tables(3, 300, S=8, dtype=torch.float32)
        visual, W, b = (x.detach().float().requires_grad_() for x in heads(3, 300))
        return saved_bytes(
            lambda: (
                semantic_alignment_loss(t, s, sample=sample, **SPHERE)
                + semantic_to_visual_loss(visual, W, b, t, s, sample=sample, **SPHERE)
            )
        )

    assert kept(10_000) == kept(1000)
