"""Criteria by name against their slow twins and the worked examples, and what cannot be asked of them."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor
from torch.testing import assert_close

from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.losses.adjustment import adjusted_after_training, logit_adjustment, smoothed_counts
from ltds.losses.calibrated import calibrated_cross_entropy
from ltds.losses.classification import ClassificationLoss
from ltds.losses.criteria import CRITERIA, Criterion, CriterionSettings
from ltds.losses.equalization import draw_ignored, equalized_cross_entropy, rare_classes
from reference import criteria_reference as twin

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"
COUNTS = [[120, 30, 0, 6, 1, 0], [40, 0, 9, 3, 2, 0]]


@pytest.fixture(scope="module")
def examples() -> dict[str, Any]:
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not next to this repository ({FILE.name})")
    return json.loads(FILE.read_text())["examples"]


@pytest.fixture(autouse=True)
def _float64() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def task_of(counts: Any) -> Task:
    counts = np.asarray(counts, dtype=np.int64)
    domains = tuple(f"d{i}" for i in range(len(counts)))
    return Task("t", tuple(f"c{i}" for i in range(counts.shape[1])), domains, None, counts)


def criterion(table: Any = COUNTS, /, **settings: Any) -> Criterion:
    return Criterion(CriterionSettings(**settings), task_of(table))


def sample(n: int = 8, classes: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, labels that both domains have, and domains."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(n, classes, generator=generator) * 2
    labels = torch.tensor([0, 3, 4])[torch.randint(3, (n,), generator=generator)]
    return logits, labels, torch.arange(n) % 2


def near(actual: Any, wanted: Any, atol: float = 1e-9) -> None:
    assert_close(torch.as_tensor(actual), torch.as_tensor(wanted, dtype=torch.float64), rtol=0, atol=atol)


def test_seql_worked_example(examples: dict[str, Any]) -> None:
    given_, wanted = examples["seql"]["inputs"], examples["seql"]["expected"]
    logits, labels = torch.tensor(given_["logits"]), torch.tensor(given_["labels"])
    rare = rare_classes(torch.tensor(given_["counts"]), given_["lambda"])
    assert rare.double().tolist() == wanted["tail_mask"]
    loss = equalized_cross_entropy(logits, labels, (torch.tensor(given_["beta_draws"]) == 1) & rare)
    near(loss, wanted["per_sample"])
    near(loss.mean(), wanted["mean"])
    near(equalized_cross_entropy(logits, labels, torch.zeros(2, 4, dtype=torch.bool)), wanted["gamma0_equals_ce"])


def test_logit_adjustment_worked_example(examples: dict[str, Any]) -> None:
    given_, wanted = examples["logit_adjustment"]["inputs"], examples["logit_adjustment"]["expected"]
    logits, labels = torch.tensor(given_["logits"]), torch.tensor(given_["labels"])
    counts = torch.tensor(given_["counts"])
    for tau in ("1.5", "1", "0"):
        for n in (counts, counts / counts.sum()):
            loss = calibrated_cross_entropy(logits, labels, logit_adjustment(n, float(tau)))
            near(loss, wanted[f"loss_per_sample_tau{tau}"])
    one = criterion([given_["counts"]], name="adjusted", tau=1.5)
    near(one(logits, labels, torch.zeros(2, dtype=torch.long)), wanted["loss_per_sample_tau1.5"])


def test_posthoc_worked_example(examples: dict[str, Any]) -> None:
    """The logits of the example of L_dc; the example's classes are 0, 1 and 3 alone, and so is its prior."""
    wanted, known = examples["logit_adjustment"]["expected"], [0, 1, 3]
    logits = torch.tensor(examples["l_dc"]["inputs"]["logits"])[:, known]
    counts = torch.tensor(examples["logit_adjustment"]["inputs"]["counts"])[known]
    adjusted = adjusted_after_training(logits, counts, 1.0)
    near(adjusted, wanted["posthoc_adjusted_logits_classes_0_1_3_tau1"])
    assert adjusted.argmax(1).tolist() == wanted["posthoc_argmax_index_in_0_1_3"]


def test_bsce_and_dc_worked_example(examples: dict[str, Any]) -> None:
    given_, wanted = examples["l_dc"]["inputs"], examples["l_dc"]["expected"]
    logits, labels, domains = (torch.tensor(given_[k]) for k in ("logits", "labels", "domains"))
    counts = given_["counts_per_domain"]
    near(criterion(counts, name="bsce")(logits, labels, domains), wanted["pooled_counts_bsce_per_sample"])
    near(criterion(counts, name="dc")(logits, labels, domains), wanted["per_sample"])
    near(criterion(counts)(logits, labels, domains), wanted["plain_ce_per_sample"])
    same = {"name": "adjusted", "counts": "pooled"}
    near(criterion(counts, **same)(logits, labels, domains), wanted["pooled_counts_bsce_per_sample"])


def test_equal_is_its_twin_with_the_draws_of_its_generator() -> None:
    logits, labels, domains = sample()
    loss = criterion(name="equal", rare_share=0.05)(logits, labels, domains, torch.Generator().manual_seed(5))
    draws = torch.rand(8, 6, generator=torch.Generator().manual_seed(5)) < 0.9
    pooled = [sum(column) for column in zip(*COUNTS, strict=True)]
    wanted = [
        twin.seql(z, y, pooled, 0.05, b)
        for z, y, b in zip(logits.tolist(), labels.tolist(), draws.double().tolist(), strict=True)
    ]
    near(loss, wanted)
    assert (loss <= F.cross_entropy(logits, labels, reduction="none") + 1e-12).all()


@pytest.mark.parametrize("tau", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("zero_count", ["exclude", "one", "blend"])
def test_adjusted_is_its_twin(tau: float, zero_count: str) -> None:
    logits, labels, domains = sample()
    loss = criterion(name="adjusted", tau=tau, zero_count=zero_count)(logits, labels, domains)
    counts = {
        "exclude": COUNTS,
        "one": [[max(n, 1) for n in row] for row in COUNTS],
        "blend": [twin.blended(COUNTS, d, 0.1) for d in range(2)],
    }[zero_count]
    wanted = [
        twin.adjusted(z, y, counts[d], tau)
        for z, y, d in zip(logits.tolist(), labels.tolist(), domains.tolist(), strict=True)
    ]
    near(loss, wanted)


def test_posthoc_is_its_twin() -> None:
    logits, _, _ = sample()
    wanted = [twin.posthoc(z, COUNTS[0], 0.7) for z in logits.tolist()]
    adjusted = adjusted_after_training(logits, torch.tensor(COUNTS[0]), 0.7)
    near(adjusted, wanted)
    near(adjusted[:, 2], logits[:, 2], atol=0)  # no prior: as it was


def test_a_blend_lets_a_domain_push_down_what_it_lacks_but_no_open_class() -> None:
    blended = smoothed_counts(torch.tensor(COUNTS, dtype=torch.float64), "blend", 0.1)
    near(blended.sum(1), [157.0, 54.0])  # a domain keeps its size
    logits, labels, _ = sample(4)
    z = logits.requires_grad_()
    criterion(name="adjusted", zero_count="blend")(z, labels, torch.ones(4, dtype=torch.long)).sum().backward()
    assert (z.grad[:, 1] > 0).all()  # domain 1 has no class 1, domain 0 has 30
    assert (z.grad[:, 5] == 0).all()  # no domain has class 5


def test_a_class_at_the_boundary_is_not_rare() -> None:
    """Rare is less than the share: 1 of 200 images is exactly .005."""
    assert rare_classes(torch.tensor([199, 1]), 0.005).tolist() == [False, False]
    assert rare_classes(torch.tensor([200, 1]), 0.005).tolist() == [False, True]
    assert rare_classes(torch.tensor([6, 2, 0]), 0.25).tolist() == [False, False, True]


def test_an_ignored_negative_gets_exactly_no_gradient_and_the_true_class_always_some() -> None:
    logits, labels, domains = sample(200)
    z = logits.requires_grad_()
    loss = criterion(name="equal", rare_share=1.0)  # every class is rare
    loss(z, labels, domains, torch.Generator().manual_seed(0)).sum().backward()
    true = F.one_hot(labels, 6).bool()
    ignored = z.grad[~true] == 0
    assert 0.85 < ignored.double().mean() < 0.95
    alone = (z.grad[~true].view(200, 5) == 0).all(1)
    assert (z.grad[true][~alone] < 0).all()


def test_the_mask_is_drawn_for_every_sample_and_class() -> None:
    drawn = draw_ignored(torch.tensor([True, True, False]), 1000, 0.9, torch.Generator().manual_seed(0)).double()
    near(drawn.mean(0), [0.9, 0.9, 0.0], atol=0.03)
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 0.1
    again = draw_ignored(torch.tensor([True, True, False]), 1000, 0.9, torch.Generator().manual_seed(0))
    assert (again == drawn.bool()).all()


@given(seed=st.integers(0, 1000), scale=st.sampled_from([1.0, 30.0, 1000.0]))
def test_equalisation_is_at_most_cross_entropy_and_finite(seed: int, scale: float) -> None:
    """Public code exponentiates without subtracting the maximum: infinite above 88 in float32."""
    generator = torch.Generator().manual_seed(seed)
    logits = (torch.randn(5, 7, generator=generator) * scale).float()
    labels = torch.randint(7, (5,), generator=generator)
    ignored = torch.rand(5, 7, generator=generator) < 0.7
    loss, plain = equalized_cross_entropy(logits, labels, ignored), F.cross_entropy(logits, labels, reduction="none")
    assert torch.isfinite(loss).all()
    assert (loss <= plain + 1e-5 * scale).all()
    assert torch.equal(equalized_cross_entropy(logits, labels, torch.zeros_like(ignored)), plain)  # gamma = 0


def test_equalisation_passes_gradcheck() -> None:
    logits, labels, _ = sample(3)
    ignored = torch.rand(3, 6, generator=torch.Generator().manual_seed(1)) < 0.5
    assert torch.autograd.gradcheck(lambda z: equalized_cross_entropy(z, labels, ignored), logits.requires_grad_())


def test_a_text_is_the_name_of_a_criterion() -> None:
    assert CriterionSettings.model_validate("dc") == CriterionSettings(name="dc")
    with pytest.raises(
        ValidationError, match=r"name of a criterion, but got 'focal'\. Choices: adjusted, bsce, ce, dc, equal\."
    ):
        CriterionSettings.model_validate("focal")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tau": 1.5}, "tau has no effect with criterion 'ce', only with adjusted: leave it out"),
        ({"name": "bsce", "counts": "pooled"}, "counts has no effect with criterion 'bsce'"),
        ({"name": "dc", "zero_count": "one"}, "zero_count has no effect with criterion 'dc'"),
        (
            {"name": "adjusted", "gamma": 0.5},
            "gamma has no effect with criterion 'adjusted', only with equal: leave it out",
        ),
        ({"name": "equal", "tau": 2.0}, "tau has no effect with criterion 'equal'"),
        ({"name": "adjusted", "blend": 0.3}, "blend has no effect without zero_count=blend"),
        ({"name": "adjusted", "counts": "pooled", "zero_count": "blend"}, "needs counts=domain"),
        ({"name": "adjusted", "tau": 0.0}, "greater than 0"),
        ({"name": "equal", "gamma": 0.0}, "greater than 0"),
        ({"name": "equal", "rare_share": 1.5}, "less than or equal to 1"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        CriterionSettings(**settings)


@pytest.mark.parametrize("loss", CRITERIA.values())
def test_settings_and_keyword_arguments_have_the_same_defaults(loss: type[ClassificationLoss]) -> None:
    keywords = {p.name: p.default for p in signature(loss).parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert keywords == {name: field.default for name, field in loss.Config.model_fields.items()}


def test_settings_of_other_criteria_at_their_defaults_are_those_of_an_older_run() -> None:
    stored = {"gamma": 0.9, "rare_share": 0.005, "tau": 1.0, "counts": "domain", "zero_count": "exclude", "blend": 0.1}
    assert CriterionSettings(name="ce", **stored) == CriterionSettings(name="ce")
    assert CriterionSettings(name="ce").model_dump() == {"name": "ce", **stored}
    adjusted = CriterionSettings(name="adjusted", **{**stored, "tau": 2.0})
    assert adjusted.model_dump() == {"name": "adjusted", **stored, "tau": 2.0}
    assert CriterionSettings.model_validate(adjusted.model_dump()) == adjusted


@pytest.mark.parametrize(
    "settings", [{"name": "dc"}, {"name": "adjusted"}, {"name": "adjusted", "zero_count": "blend"}]
)
def test_a_source_without_class_counts_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"class counts for criterion '(dc|adjusted)', but .* no training images in 'd1'"
    ):
        criterion([[3, 2], [0, 0]], **settings)
    criterion([[3, 2], [0, 0]], name="bsce")  # the pool has some


@pytest.mark.parametrize("name", ["bsce", "equal", "dc", "adjusted"])
def test_no_class_counts_at_all(name: str) -> None:
    with pytest.raises(ConfigError, match="Expected class counts for criterion"):
        criterion([[0, 0], [0, 0]], name=name)
    criterion([[0, 0], [0, 0]], name="ce")


def test_equal_without_a_rare_class_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"rare_share=0.005 to be above the share of the rarest class.* 0.1 for that"):
        criterion([[9, 1], [9, 1]], name="equal")


def test_an_open_class_does_not_count_as_the_rare_class_that_equal_needs() -> None:
    """Its logit is spared, but all classes that are trained would have plain cross-entropy."""
    with pytest.raises(ConfigError, match=r"the rarest class with images.* 0.1 for that class"):
        criterion([[9, 1, 0], [9, 1, 0]], name="equal")
    assert criterion([[9, 1, 0], [9, 1, 0]], name="equal", rare_share=0.2).loss.rare.tolist() == [False, True, True]
