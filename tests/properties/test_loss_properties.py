"""Properties of the paper's losses and statistics, on cases drawn by hypothesis."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from ltds.losses.augmentation import augmentation_loss
from ltds.losses.calibrated import calibrated_cross_entropy, log_counts
from ltds.losses.semantic_alignment import semantic_alignment_loss
from ltds.losses.semantic_to_visual import semantic_to_visual_loss
from ltds.losses.visual_to_semantic import visual_to_semantic_loss
from ltds.stats.covariance import OnlineCovariance, PartialSums
from ltds.stats.neighbours import neighbour_covariance, semantic_neighbours
from ltds.stats.prototypes import Prototypes, completed_prototypes

quick = settings(max_examples=25, deadline=None)
seeds, classes, samples = st.integers(0, 2**31), st.integers(2, 7), st.integers(1, 9)
SPHERE = {"margin": 0.1, "temperature": 1 / 30}
D, S = 4, 3


def draw(seed):
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def labels_of(seed, C, N):
    return torch.randint(C, (N,), generator=torch.Generator().manual_seed(seed + 1))


def shuffled(seed, size):
    return torch.randperm(size, generator=torch.Generator().manual_seed(seed + 2))


def close(a, b, tolerance=1e-10):
    assert_close(a, b, rtol=tolerance, atol=tolerance)


@quick
@given(seeds, classes, samples, st.floats(0.5, 1e6))
def test_equal_counts_make_calibration_cross_entropy(seed, C, N, n):
    normal, labels = draw(seed), labels_of(seed, C, N)
    logits, log_n = normal(N, C), log_counts(torch.full((C,), n, dtype=torch.float64))
    close(calibrated_cross_entropy(logits, labels, log_n), F.cross_entropy(logits, labels, reduction="none"))
    projected, s = normal(N, S), F.normalize(normal(C, S), dim=1)
    plain = visual_to_semantic_loss(projected, labels, s, **SPHERE)
    close(visual_to_semantic_loss(projected, labels, s, log_n=log_n, **SPHERE), plain)


@quick
@given(seeds, classes, samples, st.floats(1e-3, 1e3))
def test_counts_matter_only_relative_to_each_other(seed, C, N, factor):
    normal, labels = draw(seed), labels_of(seed, C, N)
    logits, counts = normal(N, C), 1 + 50 * normal(C).abs()
    scaled = calibrated_cross_entropy(logits, labels, log_counts(factor * counts))
    close(scaled, calibrated_cross_entropy(logits, labels, log_counts(counts)))


@quick
@given(seeds, st.integers(3, 7), samples, st.booleans())
def test_absent_class_moves_nothing(seed, C, N, full):
    """The classifier row of a class absent everywhere gets no gradient from Eqs. (2) and (8)."""
    normal, labels = draw(seed), labels_of(seed, C - 1, N)
    W, b, f = normal(C, D).requires_grad_(), normal(C).requires_grad_(), normal(N, D)
    root = normal(C, D, D)
    sigma = root @ root.mT if full else root[:, 0].square()
    log_n = log_counts(torch.cat([1 + normal(C - 1).abs(), torch.zeros(1)]))
    logits = f @ W.T + b
    loss = calibrated_cross_entropy(logits, labels, log_n) + augmentation_loss(
        logits, labels, W, sigma, 0.5, log_n=log_n
    )
    by_W, by_b = torch.autograd.grad(loss.sum(), (W, b))
    assert (by_W[-1] == 0).all()
    assert by_b[-1] == 0
    assert torch.isfinite(loss).all()


@quick
@given(seeds, classes, samples, st.booleans())
def test_order_of_samples_and_names_of_classes_do_not_matter(seed, C, N, full):
    normal, labels = draw(seed), labels_of(seed, C, N)
    W, b, f, projected = normal(C, D), normal(C), normal(N, D), normal(N, S)
    s, root, counts = F.normalize(normal(C, S), dim=1), normal(C, D, D), 1 + normal(C).abs()
    sigma = root @ root.mT if full else root[:, 0].square()
    order, rename = shuffled(seed, N), shuffled(seed, C)

    def losses(f, projected, labels, W, b, s, sigma, counts):
        log_n, logits = log_counts(counts), f @ W.T + b
        return torch.stack(
            [
                calibrated_cross_entropy(logits, labels, log_n),
                visual_to_semantic_loss(projected, labels, s, log_n=log_n, **SPHERE),
                augmentation_loss(logits, labels, W, sigma, 0.8, log_n=log_n),
            ]
        )

    whole = losses(f, projected, labels, W, b, s, sigma, counts)
    tables = (W, b, s, sigma, counts)
    close(losses(f[order], projected[order], labels[order], *tables), whole[:, order])
    new = torch.argsort(rename)  # class c becomes new[c]
    close(losses(f, projected, new[labels], *(t[rename] for t in tables)), whole)


@quick
@given(seeds, classes, st.integers(1, 4), st.booleans())
def test_alignment_knows_neither_rotation_nor_order(seed, C, T, fused):
    normal = draw(seed)
    t, s = F.normalize(normal(T, C, S), dim=-1), F.normalize(normal(C, S), dim=-1)
    loss = semantic_alignment_loss(t, s, fused=fused, **SPHERE)
    rotation = torch.linalg.qr(normal(S, S)).Q
    close(semantic_alignment_loss(t @ rotation, s @ rotation, fused=fused, **SPHERE), loss)
    rename = shuffled(seed, C)
    close(semantic_alignment_loss(t[:, rename], s[rename], fused=fused, **SPHERE), loss)
    close(semantic_alignment_loss(t[shuffled(seed, T)], s, fused=fused, **SPHERE), loss)
    assert loss >= 0
    visual, W, b, cycled = normal(T, C, D), normal(C, D), normal(C), normal(T, C, S)
    back = semantic_to_visual_loss(visual, W, b, cycled, s, fused=fused, **SPHERE)
    close(semantic_to_visual_loss(visual, W, b, 7 * cycled, s, fused=fused, **SPHERE), back)
    one = [
        semantic_to_visual_loss(v[None], W, b, c[None], s, fused=fused, **SPHERE)
        for v, c in zip(visual, cycled, strict=True)
    ]
    close(torch.stack(one).mean(), back)


@quick
@given(seeds, classes, st.integers(1, 4), st.sampled_from(["paper", "released"]), st.booleans())
def test_fused_is_plain(seed, C, T, negatives, to_semantics):
    normal = draw(seed)
    t, s = F.normalize(normal(T, C, S), dim=-1).requires_grad_(), F.normalize(normal(C, S), dim=-1)
    options = {"negatives": negatives, "to_semantics": to_semantics, **SPHERE}
    losses = [semantic_alignment_loss(t, s, fused=fused, **options) for fused in (True, False)]
    close(*losses)
    close(*(torch.autograd.grad(loss, t)[0] for loss in losses), 1e-9)


@quick
@given(seeds, classes, samples, st.booleans())
def test_strength_zero_makes_augmentation_cross_entropy_and_more_raises_it(seed, C, N, full):
    normal, labels = draw(seed), labels_of(seed, C, N)
    W, b, f, root = normal(C, D), normal(C), normal(N, D), normal(C, D, D)
    sigma = root @ root.mT if full else root[:, 0].square()
    logits = f @ W.T + b
    at = [augmentation_loss(logits, labels, W, sigma, strength) for strength in (0.0, 0.5, 1.0)]
    close(at[0], F.cross_entropy(logits, labels, reduction="none"))
    assert (at[0] <= at[1] + 1e-12).all()
    assert (at[1] <= at[2] + 1e-12).all()
    shift = normal(1, D)
    moved = augmentation_loss(logits, labels, W + shift, sigma, 1.0)  # only differences of weights count
    close(moved, at[2], 1e-8)


@quick
@given(seeds, classes, st.integers(1, 7), st.booleans())
def test_neighbour_covariance_is_a_mean(seed, C, k, full):
    normal, k = draw(seed), min(k, C)
    sigma = normal(C, D, D) if full else normal(C, D)
    near = semantic_neighbours(normal(C, S), k)
    assert near[:, 0].tolist() == list(range(C))
    counts = normal(C).abs().round()
    pooled = neighbour_covariance(sigma, near, counts)
    if k == 1:
        close(pooled, sigma)
    low, high = sigma[near].amin(1), sigma[near].amax(1)
    assert ((pooled >= low - 1e-9) & (pooled <= high + 1e-9)).all()
    close(neighbour_covariance(sigma, near, 3 * counts), pooled)
    close(neighbour_covariance(sigma[:1].expand_as(sigma).contiguous(), near, counts)[0], sigma[0])


@quick
@given(seeds, classes, st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans())
def test_covariance_knows_neither_batches_nor_shards(seed, C, sizes, full):
    normal, N = draw(seed), sum(sizes)
    features, labels = 3 + normal(N, D), labels_of(seed, C, N)
    at_once, in_batches, in_shards = (OnlineCovariance(C, D, full=full).double() for _ in range(3))
    at_once.commit(at_once.updated(features, labels))
    pieces = list(zip(features.split(sizes), labels.split(sizes), strict=True))
    for piece in pieces:
        in_batches.commit(in_batches.updated(*piece))
    sums = [in_shards.estimate.partial_sums(*piece) for piece in pieces]
    added = PartialSums(*(sum(getattr(s, name) for s in sums) for name in ("count", "first", "second")))
    in_shards.commit(in_shards.estimate.merged(added))
    for key, value in at_once.state_dict().items():
        close(in_batches.state_dict()[key], value)
        close(in_shards.state_dict()[key], value)


@quick
@given(seeds, classes, st.integers(1, 4), samples)
def test_prototypes_do_not_depend_on_order_and_lie_between_old_and_mean(seed, C, K, N):
    normal, labels = draw(seed), labels_of(seed, C, N)
    domains = labels_of(seed + 5, K, N)
    store = Prototypes(K, C, D).double()
    store.commit(store.blended(normal(N, D), labels, domains))
    features, order = normal(N, D), shuffled(seed, N)
    view = store.blended(features, labels, domains)
    again = store.blended(features[order], labels[order], domains[order])
    close(again.value, view.value)
    assert torch.equal(again.present, view.present)
    for d, c in {(int(d), int(c)) for d, c in zip(domains, labels, strict=True)}:
        mean, old = features[(domains == d) & (labels == c)].mean(0), store.value[d, c]
        row = view.value[int((view.domains == d).nonzero()), c]
        assert (row >= torch.minimum(mean, old) - 1e-12).all()
        assert (row <= torch.maximum(mean, old) + 1e-12).all()
    untouched = torch.ones(K * C, dtype=torch.bool).index_fill(0, domains * C + labels, False).view(K, C)
    store.commit(view)
    assert not store.present[untouched].any()
    assert (store.value[untouched] == 0).all()
    s = F.normalize(normal(C, S), dim=1)
    tables = completed_prototypes(view, s, torch.nn.Linear(D, S).double())
    close(tables.norm(dim=-1), torch.ones(tables.shape[:2], dtype=torch.float64))
    few = view.present.sum(1) < 2
    assert torch.equal(tables[few], s.expand(int(few.sum()), C, S))
