"""Soft labels: cross-entropy of a mixed label, and every other criterion mixed in the same way."""

from __future__ import annotations

import json
from pathlib import Path

import mixing_reference as slow
import numpy as np
import pytest
import torch

from ltds.core.task import Task
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.losses.soft_labels import soft_label_loss

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"
COUNTS = np.array([[40, 8, 1, 0], [5, 0, 9, 0]])
TASK = Task("t", ("a", "b", "c", "d"), ("x", "y", "z"), "z", COUNTS)


def criterion(name: str) -> Criterion:
    settings = CriterionSettings(name=name, rare_share=0.2) if name == "equal" else CriterionSettings(name=name)
    return Criterion(settings, TASK)


def mixed_samples() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits of five samples with three labels each: of domain 0, 1 and 0."""
    g = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(5, 4, generator=g, dtype=torch.float64)
    weights = torch.rand(5, 3, generator=g, dtype=torch.float64)
    labels = torch.tensor([[0, 2, 1], [1, 0, 1], [2, 2, 0], [0, 0, 0], [1, 2, 2]])
    return logits, weights / weights.sum(1, keepdim=True), labels, torch.tensor([0, 1, 0]).expand(5, 3)


def test_the_worked_example_of_cumix() -> None:
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not next to this repository ({FILE.name})")
    example = json.loads(FILE.read_text())["examples"]["cumix_soft_ce"]
    given = example["inputs"]
    r = given["lambda"]
    logits = torch.tensor(given["logits"], dtype=torch.float64)
    plain = Criterion(CriterionSettings(), Task("t", ("a", "b", "c"), ("x", "y"), "y", np.ones((1, 3), dtype=np.int64)))
    labels, domains = torch.tensor([[given["y_i"], given["y_j"]]]), torch.zeros(1, 2, dtype=torch.long)
    loss = soft_label_loss(plain, logits, torch.tensor([[r, 1 - r]]), labels, domains)
    assert loss.item() == pytest.approx(example["expected"]["loss"], abs=1e-9)


def test_cross_entropy_of_a_mixed_label_is_the_mixture_of_cross_entropies() -> None:
    logits, weights, labels, domains = mixed_samples()
    loss = soft_label_loss(criterion("ce"), logits, weights, labels, domains)
    for i in range(5):
        label = slow.mixed_one_hot(4, list(zip(labels[i].tolist(), weights[i].tolist(), strict=True)))
        assert loss[i].item() == pytest.approx(slow.soft_cross_entropy(logits[i].tolist(), label), abs=1e-12)


@pytest.mark.parametrize("name", ["bsce", "dc"])
def test_each_part_is_calibrated_by_the_counts_of_its_own_domain(name: str) -> None:
    logits, weights, labels, domains = mixed_samples()
    loss = soft_label_loss(criterion(name), logits, weights, labels, domains)
    for i in range(5):
        wanted = 0.0
        for m in range(3):
            n = COUNTS.sum(0) if name == "bsce" else COUNTS[int(domains[i, m])]
            wanted += weights[i, m].item() * slow.calibrated(logits[i].tolist(), int(labels[i, m]), n.tolist())
        assert loss[i].item() == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("name", ["ce", "bsce", "dc", "equal", "adjusted"])
def test_a_label_with_all_the_weight_is_a_hard_label(name: str) -> None:
    logits, _, labels, domains = mixed_samples()
    weights = torch.tensor([1.0, 0.0, 0.0]).expand(5, 3)
    soft = soft_label_loss(criterion(name), logits, weights, labels, domains, torch.Generator().manual_seed(1))
    hard = criterion(name)(logits, labels[:, 0], domains[:, 0], torch.Generator().manual_seed(1))
    torch.testing.assert_close(soft, hard)


def test_the_gradient_is_that_of_the_formula() -> None:
    logits, weights, labels, domains = mixed_samples()
    logits.requires_grad_()
    soft_label_loss(criterion("ce"), logits, weights, labels, domains).sum().backward()
    target = torch.zeros_like(logits).scatter_add(1, labels, weights)
    torch.testing.assert_close(logits.grad, (torch.softmax(logits, 1) - target).detach())
    assert torch.autograd.gradcheck(
        lambda z, w: soft_label_loss(criterion("dc"), z, w, labels, domains), (logits, weights.requires_grad_())
    )
