"""Distillation from several networks: the worked example, its direction, its scale, and who gets gradient."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from ltds.losses.distillation import distillation_loss, mixed_teacher

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not next to this repository ({FILE.name})")
    return dict(json.loads(FILE.read_text())["examples"]["daml"])


def double(value: object) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def test_the_worked_example(example: dict[str, Any]) -> None:
    given, wanted = example["inputs"], example["expected"]
    others, weights = double(given["other_net_logits"]), double(given["dirichlet_teacher_weights"])
    teacher = mixed_teacher(others, weights, given["T"])
    assert_close(teacher, double(wanted["teacher"]), rtol=0, atol=1e-9)
    loss = distillation_loss(double(given["student_logits"]), teacher, given["T"]).mean()
    assert_close(loss, double(wanted["kd_loss"]), rtol=0, atol=1e-9)


def test_teacher_and_student_are_not_exchanged() -> None:
    """KL(teacher || student): by hand for two classes, T = 1."""
    teacher, student = double([[0.9, 0.1]]), double([[0.0, 0.0]])
    by_hand = 0.9 * torch.log(double(0.9 / 0.5)) + 0.1 * torch.log(double(0.1 / 0.5))
    assert_close(distillation_loss(student, teacher, 1.0), by_hand[None])
    assert abs(by_hand - 0.5 * torch.log(double(0.5 / 0.9)) - 0.5 * torch.log(double(0.5 / 0.1))) > 0.1


def test_no_loss_where_all_agree_and_no_gradient_for_the_teacher() -> None:
    generator = torch.Generator().manual_seed(0)
    student = torch.randn(5, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    weights = torch.softmax(torch.randn(5, 3, generator=generator, dtype=torch.float64), dim=1)
    alike = student.detach().expand(3, 5, 4).clone().requires_grad_()
    loss = distillation_loss(student, mixed_teacher(alike, weights, 2.0), 2.0)
    assert_close(loss, torch.zeros_like(loss), rtol=0, atol=1e-14)
    other = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    distillation_loss(student, mixed_teacher(other, weights, 2.0), 2.0).sum().backward()
    assert other.grad is None
    assert student.grad is not None
    assert student.grad.abs().sum() > 0.1


def test_the_gradient_keeps_its_size_when_the_temperature_grows() -> None:
    """T^2 times a gradient of order 1/T^2: for small logits, half of what it is worth, whatever T."""
    sizes = []
    for temperature in (50.0, 100.0):
        student = double([[0.3, -0.2, 0.1]]).requires_grad_()
        teacher = mixed_teacher(double([[[-0.1, 0.2, 0.4]]]), double([[1.0]]), temperature)
        distillation_loss(student, teacher, temperature).sum().backward()
        assert student.grad is not None
        sizes.append(student.grad)
    assert_close(sizes[0], sizes[1], rtol=0.02, atol=0)


def test_a_class_that_the_teacher_excludes_costs_nothing() -> None:
    loss = distillation_loss(double([[0.0, 0.0, 5.0]]), double([[0.5, 0.5, 0.0]]), 1.0)
    assert torch.isfinite(loss).all()
