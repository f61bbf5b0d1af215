"""CuMix: its three terms against the twin, who is mixed when, the semantic head."""

from __future__ import annotations

from dataclasses import replace

import mixing_reference as slow
import pytest
import torch
from torch import nn

from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.methods.cumix import Cumix, CumixConfig
from ltds.methods.curriculum import draw_pairs
from ltds.methods.problem import Problem
from ltds.semantics.embeddings import ClassEmbeddings
from toy import CLASSES, toy_config, toy_session

EARLY, BETWEEN, LATE = (Clock(seed=0, step=epoch, total=30, steps_per_epoch=1) for epoch in (4, 15, 25))
LAW = {EARLY.step: (0.24, 1.0), BETWEEN.step: (0.6, 0.5), LATE.step: (0.6, 0.0)}  # beta and P(same domain), N = 10
EMBEDDINGS = ClassEmbeddings(CLASSES, torch.rand(6, 5, generator=torch.Generator().manual_seed(3)))


def smooth_cumix(task: Task, **settings: object) -> Cumix:
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.Tanh())
    config = CumixConfig.model_validate(settings)
    return Cumix(config, Problem(task=task, embeddings=EMBEDDINGS, backbone=backbone, feature_dim=4)).double()


def batch_of(task: Task, size: int = 6) -> Batch:
    g = torch.Generator().manual_seed(1)
    domains = torch.arange(len(task.sources)).repeat_interleave(size)
    seen = [torch.tensor(row.nonzero()[0]) for row in task.seen]
    labels = torch.cat([row[torch.randint(len(row), (size,), generator=g)] for row in seen])
    images = torch.rand(len(labels), 3, 2, 2, generator=g, dtype=torch.float64)
    return Batch(images, labels, domains, torch.arange(len(labels)))


def passes(method: Cumix, batch: Batch, clock: Clock) -> list[torch.Tensor]:
    """The images of every forward pass of a step."""
    seen: list[torch.Tensor] = []
    handle = method.backbone.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    method.loss(batch, clock)
    handle.remove()
    return seen


@pytest.mark.parametrize("clock", [EARLY, BETWEEN, LATE], ids=["early", "between", "late"])
def test_the_three_terms_are_the_twin_s(toy: Manifest, clock: Clock) -> None:
    task = toy.task("wax")
    method, batch = smooth_cumix(task), batch_of(task)
    labels, domains = batch.labels.tolist(), batch.domains.tolist()
    whole = list(range(len(batch)))
    beta, same = LAW[clock.step]

    wanted = {
        "samples": slow.cumix_term(method.predict(batch.images).logits.tolist(), labels, whole, [1.0] * 12, domains)
    }
    f = draw_pairs([6, 6], beta, same, clock.generator("mix/features"))
    features = slow.mix(method.backbone(batch.images).tolist(), f.partners.tolist(), f.ratios.tolist())
    logits = method.classifier(torch.tensor(features, dtype=torch.float64)).tolist()
    wanted["features"] = slow.cumix_term(logits, labels, f.partners.tolist(), f.ratios.tolist(), domains)
    i = draw_pairs([6, 6], beta, same, clock.generator("mix/images"))
    images = slow.mix(batch.images.flatten(1).tolist(), i.partners.tolist(), i.ratios.tolist())
    logits = method.predict(torch.tensor(images, dtype=torch.float64)).logits.tolist()
    wanted["images"] = slow.cumix_term(logits, labels, i.partners.tolist(), i.ratios.tolist(), domains)

    loss = method.loss(batch, clock)
    assert {name: term.item() for name, term in loss.terms.items()} == pytest.approx(wanted, rel=1e-6)
    total = 3 * wanted["samples"] + 3 * wanted["features"] + 0.1 * wanted["images"]
    assert loss.total.item() == pytest.approx(total, rel=1e-6)
    assert not torch.equal(f.partners, i.partners)
    assert not torch.equal(f.ratios, i.ratios)


def test_images_are_mixed_within_a_domain_first_and_across_domains_last(toy: Manifest) -> None:
    """Images that are their domain's number tell how much of another domain came in."""
    task = toy.task(None)
    batch = batch_of(task)
    batch = replace(batch, images=batch.domains.double()[:, None, None, None].expand(-1, 3, 2, 2))
    method = smooth_cumix(task)
    early, late = passes(method, batch, EARLY), passes(method, batch, LATE)
    assert [len(p) for p in early] == [len(p) for p in late] == [6] * 6  # three domains as they are, three mixed
    for d in range(3):
        assert bool((early[d] == d).all())
        torch.testing.assert_close(early[3 + d], early[d])
        assert bool((late[3 + d] - d).flatten(1).any(dim=1).all())
        assert int((late[3 + d].flatten(1)[:, 0] - d).sign().abs().sum()) == 6
        assert len((late[3 + d].flatten(1)[:, 0] - d).sign().unique()) == 1  # all of them towards one other domain


def test_the_order_of_the_batch_does_not_mix_up_labels(toy: Manifest) -> None:
    """Domains that come interleaved are put side by side, so that the same samples meet."""
    task = toy.task("wax")
    method, batch = smooth_cumix(task), batch_of(task)
    order = torch.arange(12).reshape(2, 6).T.flatten()
    woven = Batch(batch.images[order], batch.labels[order], batch.domains[order], batch.rows[order])
    torch.testing.assert_close(method.loss(woven, BETWEEN).total, method.loss(batch, BETWEEN).total)


def test_draws_are_addressed_by_the_clock(toy: Manifest) -> None:
    task = toy.task("wax")
    method, batch = smooth_cumix(task), batch_of(task)
    first = method.loss(batch, LATE).total
    torch.rand(5)
    assert method.loss(batch, LATE).total == first
    others = (replace(LATE, seed=1), replace(LATE, step=26), replace(LATE, phase="second"))
    assert all(method.loss(batch, clock).total != first for clock in others)


def test_a_third_of_the_run_is_a_stage_however_long_it_is(toy: Manifest) -> None:
    task = toy.task("wax")
    method, batch = smooth_cumix(task, stage=1 / 3), batch_of(task)
    for epochs, epoch, same in ((6, 2, True), (6, 4, False), (100, 33, True), (100, 67, False)):
        clock = Clock(seed=0, step=epoch * 5, total=epochs * 5, steps_per_epoch=5)
        shown = replace(batch, images=batch.domains.double()[:, None, None, None].expand(-1, 3, 2, 2))
        mixed = torch.cat(passes(method, shown, clock)[2:])[:, 0, 0, 0]
        assert bool(((mixed - batch.domains).abs() < 1e-9).all()) is same


@pytest.mark.parametrize("criterion", ["ce", "bsce", "dc", "adjusted", {"name": "equal", "rare_share": 0.2}])
@pytest.mark.parametrize("head", [False, True])
def test_every_criterion_has_the_gradient_of_its_value(toy: Manifest, criterion: object, head: bool) -> None:
    """Numerically: a detached feature, partner or ratio of the wrong sample would show."""
    task = toy.task("wax")
    method, batch = smooth_cumix(task, criterion=criterion, semantic_head=head), batch_of(task, 3)
    images = batch.images.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: method.loss(replace(batch, images=x), BETWEEN).total, (images,))


def test_mixed_features_send_gradient_to_both_of_a_pair(toy: Manifest) -> None:
    task = toy.task("wax")
    weights = {"samples": 0.0, "features": 1.0, "images": 0.0}
    method, batch = smooth_cumix(task, weights=weights), batch_of(task)
    outputs: list[torch.Tensor] = []
    method.backbone.register_forward_hook(lambda module, args, out: outputs.append(out))
    total = method.loss(batch, LATE).total
    pairs = draw_pairs([6, 6], 0.6, 0.0, LATE.generator("mix/features"))
    mixed = pairs.mix(torch.cat(outputs).detach()).requires_grad_()
    pieces = [(pairs.ratios, batch.labels), (1 - pairs.ratios, batch.labels[pairs.partners])]
    loss = sum(
        r.double() * nn.functional.cross_entropy(method.classifier(mixed), y, reduction="none") for r, y in pieces
    )
    (at_mix,) = torch.autograd.grad(loss.sum() / 12, mixed)
    own = pairs.ratios.double()[:, None] * at_mix
    wanted = own.index_add(0, pairs.partners, (1 - pairs.ratios.double())[:, None] * at_mix)
    torch.testing.assert_close(torch.cat(torch.autograd.grad(total, outputs)), wanted)


@pytest.mark.parametrize("name", ["samples", "features", "images"])
def test_a_weight_of_0_leaves_its_term_and_its_forward_pass_out(toy: Manifest, name: str) -> None:
    task = toy.task("wax")
    method, batch = smooth_cumix(task, weights={name: 0.0}), batch_of(task)
    loss, whole = method.loss(batch, LATE), smooth_cumix(task).loss(batch, LATE)
    assert set(loss.terms) == {"samples", "features", "images"} - {name}
    assert all(loss.terms[other] == whole.terms[other] for other in loss.terms)
    assert len(passes(method, batch, LATE)) == (2 if name == "images" else 4)
    alone = smooth_cumix(task, weights={"samples": 0.0, "features": 0.0})
    assert len(passes(alone, batch, LATE)) == 2


def test_the_semantic_head_is_a_projection_and_the_fixed_embeddings(toy: Manifest) -> None:
    task = toy.task("wax")
    method, batch = smooth_cumix(task, semantic_head=True), batch_of(task)
    prediction = method.predict(batch.images)
    projected = prediction.features @ method.classifier.weight.T + method.classifier.bias
    torch.testing.assert_close(prediction.logits, projected @ EMBEDDINGS.vectors.double().T)
    assert bool(prediction.logits.isfinite().all())  # at test the open class competes
    names = {name for name, _ in method.named_parameters()}
    assert names == {"backbone.1.weight", "backbone.1.bias", "classifier.weight", "classifier.bias"}
    assert set(method.state_dict()) == names
    assert Cumix.uses_embeddings(CumixConfig(semantic_head=True))
    assert not Cumix.uses_embeddings(CumixConfig())


def test_the_semantic_head_trains_without_the_name_of_an_open_class(toy: Manifest) -> None:
    task = toy.task("wax")
    other = EMBEDDINGS.vectors.clone()
    other[5] = -other[5]  # 'fox', which only the held-out domain has
    losses = []
    for table in (EMBEDDINGS.vectors, other):
        method = smooth_cumix(task, semantic_head=True)
        method.semantics.copy_(table)
        losses.append(method.loss(batch_of(task), LATE).total)
    assert losses[0] == losses[1]


def test_a_linear_head_trains_the_open_class_as_a_negative(toy: Manifest) -> None:
    task = toy.task("wax")
    for criterion, silent in (("ce", False), ("bsce", True), ("dc", True)):
        method = smooth_cumix(task, criterion=criterion)
        method.loss(batch_of(task), LATE).total.backward()
        assert bool((method.classifier.weight.grad[5] == 0).all()) is silent


def test_the_engine_gives_embeddings_to_the_semantic_head_only(toy: Manifest) -> None:
    assert toy_session(toy, "cumix").method.classifier.out_features == 6
    assert toy_session(toy, "cumix-embeddings").method.semantics.shape == (6, 4)


def test_the_presets_are_the_original_and_its_scaling_for_training_from_scratch(toy: Manifest) -> None:
    original, scaled = (toy_config(toy, name).method.weights.model_dump() for name in ("cumix", "cumix-scratch"))
    assert original == {"samples": 3.0, "features": 3.0, "images": 0.1}
    assert {name: 6.1 * weight for name, weight in scaled.items()} == pytest.approx(original)
    assert toy_config(toy, "cumix-embeddings").method.weights.model_dump() == scaled


def test_one_source_domain_is_refused(toy: Manifest) -> None:
    task = toy.task("wax")
    single = Task("t", task.classes, ("ink", "wax"), "wax", task.counts[:1])
    with pytest.raises(ConfigError, match=r"at least 2 source domains for Cumix .* has 1 \(ink\)"):
        smooth_cumix(single)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"weights": {"features": 0.0, "images": 0.0}}, "leave nothing to mix: use the method agg"),
        ({"beta_max": 0.0}, "'method.beta_max' was 0.0"),
        ({"stage": 0.0}, "'method.stage' was 0.0"),
        ({"weights": {"samples": -1.0}}, "'method.weights.samples' was -1.0"),
    ],
)
def test_bad_settings_are_refused(toy: Manifest, settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        toy_config(toy, "cumix", method=settings)
