"""The paper's losses in your own training loop: plain PyTorch, with nothing else of this package.

    python examples/own_loss.py

Two domains have different class counts, and one of them has no image of the last class. Cross-entropy follows these
counts; the distribution-calibrated loss (Gu et al., ECCV 2022, Eq. 2) takes them into account, domain by domain.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ltds.losses import ClassificationLoss, DistributionCalibratedLoss, PlainCrossEntropy
from ltds.stats import Prototypes

COUNTS = torch.tensor([[400, 40, 8], [300, 90, 0]])  # training samples of each class (column) in each domain (row)
CENTRES = torch.tensor([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])


def samples(counts: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Points around the centre of their class, moved by their domain; their labels; their domains."""
    domains, labels = (part.repeat_interleave(counts.flatten()) for part in _grid(counts))
    noise = torch.randn(len(labels), 2, generator=generator)
    return CENTRES[labels] + 0.3 * domains[:, None] + 0.6 * noise, labels, domains


def _grid(counts: Tensor) -> tuple[Tensor, Tensor]:
    rows, columns = torch.meshgrid(torch.arange(len(counts)), torch.arange(counts.shape[1]), indexing="ij")
    return rows.flatten(), columns.flatten()


def accuracy_by_class(criterion: ClassificationLoss) -> list[float]:
    """Train a small network with the criterion; its accuracy on balanced test samples, class by class."""
    torch.manual_seed(0)
    x, labels, domains = samples(COUNTS, torch.Generator().manual_seed(1))
    body, head = nn.Sequential(nn.Linear(2, 32), nn.ReLU()), nn.Linear(32, 3)
    prototypes = Prototypes(domains=2, classes=3, feature_dim=32)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    for _ in range(200):
        features = body(x)
        loss = criterion(head(features), labels, domains).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        prototypes.commit(prototypes.blended(features.detach(), labels, domains))  # means per domain and class
    assert bool(prototypes.present[1, 2]) is False  # the second domain has no sample of the last class
    test, wanted, _ = samples(torch.full_like(COUNTS, 500), torch.Generator().manual_seed(2))
    right = head(body(test)).argmax(dim=1) == wanted
    return [float(right[wanted == label].float().mean()) for label in range(3)]


def main() -> dict[str, list[float]]:
    losses: dict[str, ClassificationLoss] = {
        "cross-entropy": PlainCrossEntropy(COUNTS),
        "calibrated": DistributionCalibratedLoss(COUNTS),
    }
    return {name: accuracy_by_class(criterion) for name, criterion in losses.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, accuracies in main().items():
        print(f"{name:14}", "  ".join(f"class {i}: {value:.0%}" for i, value in enumerate(accuracies)))
