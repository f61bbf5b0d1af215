"""MetaLtds.loss against the slow twin of Algorithm 1: our reading, the released one, the printed one, and the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from test_meta_ltds import make
from torch import Tensor, nn

from ltds.core.types import Batch, Clock
from ltds.methods.meta_ltds import MetaLtds
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from ltds.methods.registry import METHODS
from reference import algorithm
from reference import equations as eq

CLOCKS = [Clock(seed=0, step=step, total=100, steps_per_epoch=1) for step in (88, 89, 90)]
WEIGHTS = {"z2s": 0.1, "s2s": 0.2, "s2z": 0.15, "augmentation": 0.1}
NAMES = {"backbone.": "f.", "classifier.": "h.", "to_semantic.": "e.", "to_visual.": "d."}
COUNTS = np.array([[30, 5, 0], [2, 9, 4], [1, 8, 20], [5, 3, 2]])
LABELS = [[0, 1, 1, 0], [2, 0, 1, 2], [0, 2, 1, 1], [0, 1, 2, 2]]
ALONE = np.array([[30, 0, 0], [2, 9, 4], [1, 8, 20], [5, 3, 2]]), [[0, 0, 0, 0], *LABELS[1:]]
NOWHERE = np.pad(COUNTS, ((0, 0), (0, 1))), LABELS
CODE, PAPER = dict(METHODS["ltds-code"].settings), dict(METHODS["ltds-paper"].settings)

CASES: dict[str, tuple[tuple[np.ndarray, list[list[int]]], dict[str, Any]]] = {
    "ours": ((COUNTS, LABELS), {}),
    "released code": ((COUNTS, LABELS), CODE),
    "as printed": ((COUNTS, LABELS), {**PAPER, "gradient_order": "first"}),
    "two meta-test domains": ((COUNTS, LABELS), {"meta_test_domains": 2}),
    "one meta-train domain": ((COUNTS[:2], LABELS[:2]), {}),
    "one meta-train domain, released code": ((COUNTS[:2], LABELS[:2]), CODE),
    "a class that no domain has": (NOWHERE, {}),
    "a class that no domain has, released code": (NOWHERE, CODE),
    "a domain with one class": (ALONE, {}),
    "a domain with one class, released code": (ALONE, CODE),
    "two classes": ((COUNTS[1:, :2], [[0, 1, 1, 0], [1, 0, 1, 1], [0, 0, 1, 1]]), {}),
    "one neighbour": ((COUNTS, LABELS), {"neighbours": 1}),
    "lambda = 0": ((COUNTS, LABELS), {"strength": 0.0, "strength_schedule": "constant"}),
}


def softplus(value):
    return np.log(1 + np.exp(value))


def relu(value):
    return value if value.real > 0 else 0.0 * value


def smooth(inputs: int, outputs: int) -> nn.Sequential:
    """Differences of a second derivative exist only without kinks."""
    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.Softplus()).double()


def linear_method(counts: np.ndarray, settings: dict[str, Any]) -> MetaLtds:
    backbone = nn.Linear(algorithm.P, algorithm.D, bias=False)
    fixed = {"covariance_start": 0.0, "weights": WEIGHTS}
    method = make(counts, backbone, algorithm.D, algorithm.S, **fixed | settings)
    if method.config.gradient_order == "second":
        method.to_semantic = smooth(algorithm.D, algorithm.S)
        method.to_visual = smooth(algorithm.S, algorithm.D)
    for projector in (method.to_semantic, method.to_visual):
        nn.init.uniform_(projector[1].weight, 0.5, 1.5)
        nn.init.uniform_(projector[1].bias, 0.3, 1.0)
    return method


def flat(values: dict[str, Tensor], classes: int) -> np.ndarray:
    """The parameters, or their gradients, as the twin's vector."""
    renamed = {}
    for name, value in values.items():
        ours = next(prefix for prefix in NAMES if name.startswith(prefix))
        renamed[NAMES[ours] + name.removeprefix(ours)] = value.detach().numpy().ravel()
    return np.concatenate([renamed[name] for name in algorithm.shapes(classes)])


def facts(method: MetaLtds) -> dict[str, Any]:
    """What the twin must know of a method's settings, in the twin's words; statistics as before the first step."""
    config, counts = method.config, method.task.counts
    return {
        "n": counts.astype(float).tolist(),
        "s": method.semantics.vectors.numpy(),
        "alpha": config.margin,
        "tau": config.temperature,
        "w": tuple(WEIGHTS.values()),
        "beta1": config.inner_lr,
        "w_mte": config.weights.meta_test,
        "activation": softplus if config.gradient_order == "second" else relu,
        "v": np.zeros((*counts.shape, algorithm.D)),
        "present": [[False] * counts.shape[1] for _ in counts],
        "reading": {
            "released_negatives": config.s2s_negatives == "released",
            "to_semantics": config.align_to_semantics,
            "back_weights": config.s2z_weights,
            "intra": float(config.cycle_form == "s2s"),
            "first_visit": config.prototype_start == "first_visit",
            "epsilon": config.prototype_epsilon,
            "calibrated_aug": config.calibrated_augmentation,
            "slow_weights": config.slow_weights_in_meta_test,
        },
    }


class Spread:
    """The covariances of all classes so far, and Sigma' from them, by the slow formulas."""

    def __init__(self, config: MetaLtdsConfig, counts: np.ndarray, s: np.ndarray) -> None:
        self.config, self.sizes, self.s = config, counts.sum(0), s
        C, D = counts.shape[1], algorithm.D
        self.state: Any = [float(config.covariance_pseudo_sample)] * C, [[0.0] * D] * C, [[[0.0] * D] * D] * C

    def update(self, features: list[Any], labels: list[int]) -> None:
        self.state = eq.online_covariance(*self.state, features, labels)

    def prime(self) -> list[np.ndarray]:
        sizes = {"class_count": self.sizes, "running": self.state[0], "none": None}[self.config.neighbour_weights]
        borrowed = eq.sigma_prime(self.state[2], eq.top_k(self.s, self.config.neighbours), sizes)
        return borrowed if self.config.covariance == "full" else [np.diag(matrix) for matrix in borrowed]

    def see(self, case: dict[str, Any], theta: np.ndarray) -> None:
        """The meta-train features of the case, all together or one domain after the other."""
        p, case["sigma_seen_by"] = algorithm.unflatten(theta, len(case["s"])), {}
        drawn = [(n, algorithm.look(p, case["batches"][n]["x"]), case["batches"][n]["y"]) for n in case["mtr"]]
        if self.config.covariance_order == "together":
            self.update([f for _, features, _ in drawn for f in features], [y for *_, labels in drawn for y in labels])
        else:
            for n, features, labels in drawn:
                self.update(features, labels)
                case["sigma_seen_by"][n] = self.prime()
        case["sigma"] = self.prime()


def after_steps(counts: np.ndarray, labels: list[list[int]], settings: dict[str, Any], steps: int = 2) -> Any:
    """Some steps on the same weights, by the method and by the twin: old prototypes and covariances count too."""
    method = linear_method(counts, settings)
    case, rng, size = facts(method), np.random.default_rng(0), len(labels[0])
    spread = Spread(method.config, counts, case["s"])
    theta = flat(dict(method.named_parameters()), counts.shape[1])
    for clock in CLOCKS[-steps:]:
        x = rng.normal(size=(len(counts), size, algorithm.P))
        domains = torch.arange(len(counts)).repeat_interleave(size)
        images, rows = torch.as_tensor(x.reshape(-1, algorithm.P)), torch.arange(len(domains))
        method.zero_grad()
        loss = method.loss(Batch(images, torch.tensor(labels).flatten(), domains, rows), clock)
        loss.total.backward()
        for n, row in case.pop("views", {}).items():  # of the step before
            case["v"][n], case["present"][n] = np.array(row[0]), row[1]
        case["mtr"], case["mte"] = method._split(clock)
        case["batches"] = [{"x": x[d], "y": labels[d]} for d in range(len(counts))]
        case["strength"] = method.augmentation.strength(clock)
        spread.see(case, theta)
        case["views"] = algorithm.real_views(algorithm.meta_train(theta, case)[1])
    got = flat({name: p.grad for name, p in method.named_parameters()}, counts.shape[1])
    return got, loss.total.item(), case, theta


@pytest.mark.parametrize("name", CASES)
def test_a_later_step_is_algorithm_1_in_first_order(name: str) -> None:
    (counts, labels), settings = CASES[name]
    got, loss, case, theta = after_steps(counts, labels, settings)
    wanted = algorithm.first_order(theta, case)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)
    assert np.abs(wanted).max() > 0.01
    assert loss == pytest.approx(float(np.real(algorithm.total_loss(theta, case, case["views"]))), abs=1e-10)


@pytest.mark.parametrize("settings", [{"gradient_order": "second", "strength": 2.0}, PAPER], ids=["ours", "as printed"])
def test_a_later_step_is_algorithm_1_in_second_order(settings: dict[str, Any]) -> None:
    """The gradient is the numerical derivative of the total loss."""
    got, _, case, theta = after_steps(COUNTS[:3], LABELS[:3], settings)
    for seed in range(3):
        direction = np.random.default_rng(seed).normal(size=len(theta))
        assert got @ direction == pytest.approx(algorithm.second_order(theta, case, direction, h=2e-7), abs=1e-6)
