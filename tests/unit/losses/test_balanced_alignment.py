"""The two alignment losses of BoDA: worked example, slow twins, gradients, and what they must ignore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ltds.losses.balanced_alignment import balanced_alignment_loss, moment_alignment_loss
from reference import boda_reference as twin

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"
COUNTS = torch.tensor([[30, 5, 2, 0], [2, 0, 4, 7], [1, 9, 0, 3]])
PAIRS = COUNTS.nonzero()


def exact(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def drawn(seed: int, samples: int = 11) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features of samples from pairs with images, and a centroid for each pair."""
    g = torch.Generator().manual_seed(seed)
    pairs = PAIRS[torch.randint(len(PAIRS), (samples,), generator=g)]
    features, centroids = (torch.randn(n, 3, generator=g, dtype=torch.float64) for n in (samples, len(PAIRS)))
    return features, pairs[:, 1], pairs[:, 0], centroids


def loss(features: Tensor, labels: Tensor, domains: Tensor, centroids: Tensor, **settings: float) -> Tensor:
    return balanced_alignment_loss(features, labels, domains, centroids, PAIRS[:, 1], PAIRS[:, 0], COUNTS, **settings)


@pytest.fixture
def example() -> Any:
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not next to this repository ({FILE.name})")
    return json.loads(FILE.read_text())["examples"]["boda"]


def test_boda(example: Any) -> None:
    given, wanted = example["inputs"], example["expected"]
    features = exact(given["features"]).requires_grad_()
    labels, domains = torch.tensor(given["labels"]), torch.tensor(given["domains"])
    pairs = torch.tensor(given["centroid_class"]), torch.tensor(given["centroid_domain"])
    settings = {"nu": given["nu"], "temperature": given["temperature"]}
    centroids, counts = exact(given["centroids"]), exact(given["counts_domain_class"])
    total = balanced_alignment_loss(features, labels, domains, centroids, *pairs, counts, **settings)
    assert total.item() == pytest.approx(wanted["loss"], abs=1e-12)
    total.backward()
    assert features.grad is not None
    assert (features.grad[2] == 0).all(), "its class lives in one domain only"
    assert (features.grad[:2] != 0).any(dim=1).all()


def test_moments_of_the_worked_example(example: Any) -> None:
    wanted, rows = example["expected"], exact(example["inputs"]["features"])
    for other, name in ((rows + 0.5, "its_shift_by_0.5"), (2 * rows, "twice_itself")):
        expected = wanted[f"macro_alignment_of_batch_with_{name}"]
        assert moment_alignment_loss([rows, other]).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("settings", [{}, {"nu": 0.0}, {"nu": 1.3, "temperature": 0.2}])
def test_it_is_the_slow_twin(seed: int, settings: dict[str, float]) -> None:
    features, labels, domains, centroids = drawn(seed)
    means = {tuple(pair): mu for pair, mu in zip(PAIRS.tolist(), centroids.tolist(), strict=True)}
    nu, temperature = settings.get("nu", 0.5), settings.get("temperature", 1.0)
    counts = COUNTS.tolist()
    slow = twin.alignment(features.tolist(), labels.tolist(), domains.tolist(), means, counts, nu, temperature)
    assert loss(features, labels, domains, centroids, **settings).item() == pytest.approx(float(slow), abs=1e-12)
    assert slow > 0.1


@pytest.mark.parametrize("sizes", [(4, 7), (5, 1, 6), (3, 4, 5)])
def test_moments_are_the_slow_twin(sizes: tuple[int, ...]) -> None:
    g = torch.Generator().manual_seed(1)
    features = [torch.randn(n, 3, generator=g, dtype=torch.float64) + i for i, n in enumerate(sizes)]
    slow = twin.moments([x.tolist() for x in features])
    assert moment_alignment_loss(features).item() == pytest.approx(float(slow), abs=1e-12)
    assert moment_alignment_loss([features[0], features[0].flip(0)]).item() == pytest.approx(0, abs=1e-15)


def test_gradients_are_right() -> None:
    features, labels, domains, centroids = drawn(0)
    assert torch.autograd.gradcheck(lambda x: loss(x, labels, domains, centroids), features.requires_grad_())
    parts = [features[:4].detach().requires_grad_(), features[4:].detach().requires_grad_()]
    assert torch.autograd.gradcheck(lambda a, b: moment_alignment_loss([a, b]), parts)


def test_its_own_centroid_changes_nothing_and_others_do() -> None:
    features, labels, domains, centroids = drawn(2, samples=1)
    own = (torch.stack([domains, labels], dim=1) == PAIRS).all(dim=1)
    assert own.sum() == 1
    before = loss(features, labels, domains, centroids)
    assert_close(loss(features, labels, domains, centroids + own[:, None]), before, rtol=0, atol=0)
    assert (loss(features, labels, domains, centroids + ~own[:, None]) - before).abs() > 1e-4


def test_a_sample_on_a_centroid_has_a_finite_gradient() -> None:
    features, labels, domains, centroids = drawn(3)
    features = centroids[: len(features)].clone().requires_grad_()
    loss(features, labels[: len(features)], domains[: len(features)], centroids).backward()
    assert features.grad is not None
    assert features.grad.isfinite().all()


def test_classes_of_one_domain_alone_cost_nothing() -> None:
    counts, pairs = torch.tensor([[3, 0], [0, 4]]), torch.tensor([0, 1])
    features = exact([[1.0, 2.0], [0.5, 0.1]]).requires_grad_()
    total = balanced_alignment_loss(features, pairs, pairs, exact([[0.0, 1.0], [1.0, 1.0]]), pairs, pairs, counts)
    total.backward()
    assert total.item() == 0
    assert (features.grad == 0).all()


def pulls(label: int, domain: int, nu: float) -> tuple[Tensor, Tensor]:
    """Gradients on one image at the origin and on each centroid: those of class 0 are in one place, others in another.

    At a high temperature all centroids are about as likely, so only their counts make a difference.
    """
    away = torch.where(PAIRS[:, 1] == 0, 1.0, -1.0)
    centroids = torch.stack([away, torch.ones(len(PAIRS))], dim=1).double().requires_grad_()
    image = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    loss(image, torch.tensor([label]), torch.tensor([domain]), centroids, nu=nu, temperature=1e4).backward()
    assert image.grad is not None
    assert centroids.grad is not None
    return image.grad.norm(), centroids.grad.norm(dim=1)


def test_images_of_rare_pairs_are_pulled_harder() -> None:
    """30 and 1 training images of class 0 in domains 0 and 2."""
    frequent, rare = (pulls(0, domain, nu=0.0)[0] for domain in (0, 2))
    assert (rare / frequent).item() == pytest.approx(30, rel=1e-3)


@pytest.mark.parametrize("nu", [0.0, 0.5, 1.0])
def test_centroids_of_frequent_pairs_pull_more(nu: float) -> None:
    """2 and 1 training images of class 0 in domains 1 and 2."""
    of_centroids = pulls(0, 0, nu)[1][PAIRS[:, 1] == 0]
    assert of_centroids[0] == 0, "its own takes no part"
    assert (of_centroids[1] / of_centroids[2]).item() == pytest.approx(2**nu, rel=1e-3)
