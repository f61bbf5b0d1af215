"""Eqs. (4) and (5) against their slow twins; the fused way against the plain one; memory of the fused one."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from ltds.core.errors import ConfigError
from ltds.losses.kernels import contrast, contrast_pass
from ltds.losses.kernels import tiles as tiling
from ltds.losses.kernels.choice import FUSED_FROM, in_range
from ltds.losses.kernels.contrast_pass import ContrastPass
from ltds.losses.kernels.linear import linear_cross_entropy
from ltds.losses.semantic_alignment import prototype_contrast, semantic_alignment_loss
from ltds.losses.semantic_to_visual import semantic_to_visual_loss
from reference import equations as eq

SPHERE = {"margin": 0.1, "temperature": 1 / 30}


def tables(T, C, S=5, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(T + 1, C, S, generator=generator, dtype=torch.float64)
    unit = F.normalize(rows, dim=-1).to(dtype)
    return unit[:T].clone().requires_grad_(), unit[T]


def heads(T, C, D=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((T, C, D), (C, D), (C,))
    return [torch.randn(*s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that small tables cross many block borders."""
    monkeypatch.setattr(tiling, "ROWS", 6)
    monkeypatch.setattr(tiling, "COLUMNS", 7)


@pytest.mark.parametrize("C", [2, 4])
def test_pair_equals_the_slow_twin(C):
    (m, n), _ = tables(2, C)
    loss = prototype_contrast(m, n, **SPHERE)
    for c in range(C):
        twin = eq.s2s_of_class(m.tolist(), n.tolist(), c, 0.1, 1 / 30)
        assert loss[c].item() == pytest.approx(float(twin), abs=1e-11)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("negatives", ["paper", "released"])
@pytest.mark.parametrize("to_semantics", [True, False])
@pytest.mark.parametrize(("T", "C"), [(1, 3), (2, 2), (3, 4)])
def test_all_pairs_equal_the_slow_twin(T, C, negatives, to_semantics, fused):
    t, s = tables(T, C)
    options = {"negatives": negatives, "to_semantics": to_semantics}
    loss = semantic_alignment_loss(t, s, fused=fused, **options, **SPHERE)
    twin = eq.align(t.tolist(), s.tolist(), 0.1, 1 / 30, negatives == "released", to_semantics)
    assert loss.item() == pytest.approx(float(twin), abs=1e-11)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("cycle", ["s2s", "z2s"])
@pytest.mark.parametrize("T", [1, 3])
def test_semantic_to_visual_equals_the_slow_twin(T, cycle, fused):
    visual, W, b = heads(T, 4)
    cycled, s = tables(T, 4)
    loss = semantic_to_visual_loss(visual, W, b, 3 * cycled, s, weights=(0.7, 0.4), cycle=cycle, fused=fused, **SPHERE)
    twins = [
        eq.s2z(v, W.tolist(), b.tolist(), c, s.tolist(), 0.1, 1 / 30, (0.7, 0.4), 1.0 if cycle == "s2s" else 0.0)
        for v, c in zip(visual.tolist(), (3 * cycled).tolist(), strict=True)
    ]
    assert loss.item() == pytest.approx(float(sum(twins)) / T, abs=1e-11)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("negatives", ["paper", "released"])
@pytest.mark.parametrize("to_semantics", [True, False])
@pytest.mark.parametrize(("T", "C"), [(1, 13), (2, 40), (3, 13), (3, 41)])
def test_fused_equals_plain_with_its_gradient(T, C, negatives, to_semantics):
    t, s = tables(T, C)
    options = {"negatives": negatives, "to_semantics": to_semantics, **SPHERE}
    losses = [semantic_alignment_loss(t, s, fused=fused, **options) for fused in (True, False)]
    assert_close(*losses, rtol=0, atol=1e-11)
    if T > 1 or to_semantics:
        assert_close(*(torch.autograd.grad(2 * loss, t)[0] for loss in losses), rtol=0, atol=1e-11)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("cycle", ["s2s", "z2s"])
@pytest.mark.parametrize("C", [7, 41])
def test_fused_cycle_and_classification_equal_plain(C, cycle):
    inputs = [*heads(3, C), tables(3, C)[0]]
    s = tables(3, C)[1]
    losses = [semantic_to_visual_loss(*inputs, s, cycle=cycle, fused=fused, **SPHERE) for fused in (True, False)]
    assert_close(*losses, rtol=0, atol=1e-11)
    for pair in zip(*(torch.autograd.grad(loss, inputs) for loss in losses), strict=True):
        assert_close(*pair, rtol=0, atol=1e-11)


def test_fused_in_float32_agrees_with_float64():
    t, s = tables(3, 300, S=32, dtype=torch.float32)
    single = semantic_alignment_loss(t, s, fused=True, **SPHERE)
    double = semantic_alignment_loss(t.detach().double().requires_grad_(), s.double(), fused=True, **SPHERE)
    assert single.item() == pytest.approx(double.item(), rel=1e-5)


@pytest.mark.usefixtures("small_blocks")
def test_gradcheck():
    t, s = tables(3, 4, S=3)
    soft = {"margin": 0.1, "temperature": 0.5}
    for fused in (False, True):
        assert torch.autograd.gradcheck(lambda x, f=fused: semantic_alignment_loss(x, s, fused=f, **soft), t)
        inputs = (*heads(2, 4), tables(2, 4, S=3)[0])
        assert torch.autograd.gradcheck(lambda *x, f=fused: semantic_to_visual_loss(*x, s, fused=f, **soft), inputs)
    assert torch.autograd.gradgradcheck(lambda x: semantic_alignment_loss(x, s, fused=False, **soft), t)


def test_fused_refuses_second_order():
    t, s = tables(2, 4)
    W, b = heads(2, 5, D=5)[1:]
    for loss in (
        semantic_alignment_loss(t, s, fused=True, **SPHERE),
        linear_cross_entropy(t[0], W, b, torch.arange(4), fused=True),
    ):
        with pytest.raises(ConfigError, match="fused=False"):
            torch.autograd.grad(0.1 * loss, t, create_graph=True)
        assert torch.autograd.grad(0.1 * loss, t)[0].abs().max() > 0


def test_far_logits_do_not_overflow():
    rows, labels = torch.tensor([[200.0], [-200.0]]), torch.tensor([0, 0])
    W, b = torch.tensor([[1.0], [-1.0]]), torch.zeros(2)
    assert_close(linear_cross_entropy(rows, W, b, labels, fused=True), torch.tensor(200.0))


def test_temperature_too_low_for_float32_takes_the_plain_way():
    t, s = tables(2, 4, dtype=torch.float32)
    assert in_range(t, 0.1, 1 / 50)
    assert in_range(t, 0.1, 1 / 77)  # exp(1.1 * 77) * 18 is 1.1e38, the largest float32 3.4e38
    assert not in_range(t, 0.1, 1 / 79)
    assert not in_range(t, 0.1, 1 / 200)
    cold = {"margin": 0.1, "temperature": 1 / 200}
    loss = semantic_alignment_loss(t, s, fused=True, **cold)
    twin = semantic_alignment_loss(t.double(), s.double(), fused=False, **cold)
    assert loss.item() == pytest.approx(twin.item(), rel=1e-4)


def test_semantics_that_learn_get_their_gradient():
    t, s = tables(2, 4)
    s.requires_grad_()
    pairs = [torch.autograd.grad(semantic_alignment_loss(t, s, fused=f, **SPHERE), s)[0] for f in (True, False)]
    assert_close(*pairs)
    assert pairs[0].abs().max() > 0


@pytest.mark.parametrize("kept", [0, 2000, 10**6])
@pytest.mark.parametrize("options", [{}, {"negatives": "released"}, {"to_semantics": False}])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_copies_of_the_semantics_change_nothing(share, options, kept, small_blocks, monkeypatch):
    monkeypatch.setattr(contrast_pass, "KEPT_BYTES", kept)
    t, s = tables(3, 17)
    projected = torch.rand(3, 17, generator=torch.Generator().manual_seed(1)) < share
    projected[2] = False  # a domain without prototypes
    filled = torch.where(projected[..., None], t, s)
    losses = [
        semantic_alignment_loss(filled, s, fused=True, projected=projected, **options, **SPHERE),
        semantic_alignment_loss(filled, s, fused=False, **options, **SPHERE),
    ]
    assert_close(losses[0], losses[1], rtol=1e-11, atol=0)
    fused, plain = (torch.autograd.grad(loss, t, retain_graph=True)[0] for loss in losses)
    assert_close(fused, plain, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(("room", "tiles"), [(0, 0), (6 * 7 * 8 - 1, 0), (6 * 7 * 8, 1), (3 * 6 * 7 * 8, 3)])
def test_tiles_are_kept_as_long_as_there_is_room(room, tiles, small_blocks, monkeypatch):
    kept = []

    class Watched(ContrastPass):
        def _push_apart(self, share):
            kept.extend(self.kept)
            super()._push_apart(share)

    monkeypatch.setattr(contrast_pass, "KEPT_BYTES", room)
    monkeypatch.setattr(contrast, "ContrastPass", Watched)
    t, s = tables(3, 17)
    semantic_alignment_loss(t, s, fused=True, **SPHERE).backward()
    assert [tile.numel() * tile.element_size() for tile in kept] == tiles * [6 * 7 * 8]


def test_copies_of_the_semantics_get_no_gradient():
    t, s = tables(2, 5)
    projected = torch.tensor([[True, True, False, True, False], [False, True, True, True, True]])
    filled = torch.where(projected[..., None], t, s).detach().requires_grad_()
    loss = semantic_alignment_loss(filled, s, projected=projected, fused=True, **SPHERE)
    (gradient,) = torch.autograd.grad(loss, filled)
    assert (gradient[~projected] == 0).all()
    assert (gradient[projected] != 0).any(dim=1).all()


def saved_bytes(function):
    """Bytes of the distinct tensors that autograd keeps for the backward pass of `function()`."""
    kept = {}

    def remember(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda x: x):
        result = function()
    del result
    return sum(kept.values())


def test_automatic_choice_keeps_memory_linear_in_classes():
    def kept(C):
        t, s = tables(3, C, S=8, dtype=torch.float32)
        visual, W, b = (x.detach().float().requires_grad_() for x in heads(3, C))
        return saved_bytes(
            lambda: semantic_alignment_loss(t, s, **SPHERE) + semantic_to_visual_loss(visual, W, b, t, s, **SPHERE)
        )

    assert kept(4 * FUSED_FROM) < 4.2 * kept(FUSED_FROM)


@pytest.mark.parametrize("fused", [False, True])
def test_autocast_does_not_coarsen_the_cosines(fused):
    t, s = tables(2, 6, dtype=torch.float32)
    loss = semantic_alignment_loss(t, s, fused=fused, **SPHERE)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(semantic_alignment_loss(t, s, fused=fused, **SPHERE), loss, rtol=1e-6, atol=0)
        coarse = semantic_alignment_loss(t.bfloat16(), s, fused=fused, **SPHERE)
    assert coarse.dtype == torch.float32
