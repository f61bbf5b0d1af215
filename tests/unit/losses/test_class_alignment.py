"""The global loss of MASF: the worked example, the slow twin, and what it must ignore."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from ltds.losses.class_alignment import class_alignment_loss
from reference import masf_reference

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"


def drawn(seed: int = 0) -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(n, 5, generator=g, dtype=torch.float64) for n in (9, 7))
    return a, torch.randint(0, 4, (9,), generator=g), b, torch.randint(1, 5, (7,), generator=g)


def test_masf_global() -> None:
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not next to this repository ({FILE.name})")
    example = json.loads(FILE.read_text())["examples"]["masf_global"]
    given, wanted = example["inputs"], example["expected"]
    a, b = (torch.tensor(given[f"logits_{d}"], dtype=torch.float64) for d in "ab")
    loss = class_alignment_loss(a, torch.tensor(given["y_a"]), b, torch.tensor(given["y_b"]), temperature=given["T"])
    assert loss.item() == pytest.approx(wanted["loss"], abs=1e-12)
    assert loss.item() == pytest.approx(0.001373, abs=5e-7)
    assert loss.item() == pytest.approx(sum(wanted["sym_kl_by_class"].values()) / given["C"], abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_slow_twin(seed: int) -> None:
    a, y_a, b, y_b = drawn(seed)
    twin = masf_reference.global_loss(a.tolist(), y_a.tolist(), b.tolist(), y_b.tolist(), 1.5)
    got = class_alignment_loss(a, y_a, b, y_b, temperature=1.5)
    assert got.item() == pytest.approx(float(twin), abs=1e-12)
    assert got.item() > 0
    assert_close(class_alignment_loss(b, y_b, a, y_a, temperature=1.5), got)


def test_its_gradient_is_right() -> None:
    a, y_a, b, y_b = drawn()
    assert torch.autograd.gradcheck(
        lambda x, z: class_alignment_loss(x, y_a, z, y_b), (a.requires_grad_(), b.requires_grad_())
    )


def test_a_class_of_one_domain_alone_gets_no_gradient() -> None:
    a, y_a, b, y_b = drawn()
    a.requires_grad_()
    class_alignment_loss(a, y_a, b, y_b).backward()
    assert a.grad is not None
    assert (a.grad[~torch.isin(y_a, y_b)] == 0).all()
    assert (a.grad[torch.isin(y_a, y_b)] != 0).any()


def test_no_shared_class_and_equal_domains_give_nothing() -> None:
    a, _, b, _ = drawn()
    a.requires_grad_()
    none = class_alignment_loss(a, torch.zeros(9, dtype=torch.long), b, torch.ones(7, dtype=torch.long))
    none.backward()
    assert none.item() == 0
    assert (a.grad == 0).all()
    labels = torch.arange(9) % 5
    assert class_alignment_loss(a, labels, a, labels).item() == 0
