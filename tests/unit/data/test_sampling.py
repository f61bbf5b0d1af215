"""Samplers: pure in the step, without replacement within a pass, errors that say what to type."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ltds.core.errors import DataError
from ltds.data.sampling import ClassBalanced, DomainBalanced

PHOTO, SKETCH = np.arange(100, 110), np.arange(200, 207)


def sampler(seed: int = 0) -> DomainBalanced:
    return DomainBalanced([PHOTO, SKETCH], 3, seed, ("photo", "sketch"))


def test_domains_come_one_after_the_other() -> None:
    rows = sampler()(5)
    assert rows.shape == (6,)
    assert set(rows[:3]) <= set(PHOTO)
    assert set(rows[3:]) <= set(SKETCH)
    assert (sampler().groups, sampler().batch) == (2, 3)


def test_each_pass_is_without_replacement_and_drops_the_incomplete_batch() -> None:
    draws = [sampler()(step) for step in range(12)]
    photo = [np.concatenate([d[:3] for d in draws[k : k + 3]]) for k in (0, 3, 6, 9)]  # 10 // 3 = 3 steps a pass
    sketch = [np.concatenate([d[3:] for d in draws[k : k + 2]]) for k in range(0, 12, 2)]  # 7 // 3 = 2
    assert [len(set(p)) for p in photo] == [9] * 4
    assert [len(set(s)) for s in sketch] == [6] * 6
    assert len({tuple(p) for p in photo}) == 4, "a new permutation for each pass"
    assert set(np.concatenate(photo)) == set(PHOTO), "what one pass drops, another shows"


def test_steps_are_pure() -> None:
    forwards, backwards = sampler(), sampler()
    late = [backwards(step) for step in reversed(range(20))][::-1]
    for step in range(20):
        np.testing.assert_array_equal(forwards(step), late[step])
    assert any((sampler(1)(s) != forwards(s)).any() for s in range(3))


def test_a_domains_order_does_not_depend_on_the_other_domains() -> None:
    alone = DomainBalanced([SKETCH], 3, 0, ("sketch",))
    np.testing.assert_array_equal(alone(4), sampler()(4)[3:])


def test_batch_larger_than_a_domain() -> None:
    sentence = (
        r"^Expected the batch of 8 to be no larger than domain 'sketch', but got 7 images in it\. "
        r"Use data\.batch_size=7, or less\.$"
    )
    with pytest.raises(DataError, match=sentence):
        DomainBalanced([PHOTO, SKETCH], 8, 0, ("photo", "sketch"))
    with pytest.raises(DataError, match=r"domain 'sketch', but got 7 images"):  # the smallest, not the first
        DomainBalanced([PHOTO, SKETCH, PHOTO], 11, 0, ("photo", "sketch", "print"))
    with pytest.raises(DataError, match=r"the 2 batches of 4 that a step takes .* Use data\.batch_size=3, or less\."):
        DomainBalanced([PHOTO, SKETCH], 4, 0, ("photo", "sketch"), times=2)
    assert len(DomainBalanced([PHOTO, SKETCH], 3, 0, ("photo", "sketch"), times=2)(0)) == 12
    with pytest.raises(DataError, match="Add training images"):
        DomainBalanced([SKETCH[:3]], 2, 0, ("sketch",), times=2)


def test_a_batch_as_large_as_the_domain_is_all_of_it() -> None:
    assert set(DomainBalanced([SKETCH], 7, 0, ("sketch",))(3)) == set(SKETCH)


def test_empty_domain_and_empty_batch() -> None:
    with pytest.raises(DataError, match=r"domain 'none', but got 0 images in it\. Add training images, or hold"):
        DomainBalanced([np.arange(0)], 1, 0, ("none",))
    with pytest.raises(DataError, match="Expected the batch to be at least 1, but got 0"):
        DomainBalanced([PHOTO], 0, 0, ("photo",))


def test_class_balanced_draws_classes_and_images_at_their_rates() -> None:
    """cRT (Kang et al., 2020): counts [6,3,1] give image probabilities 1/18, 1/9, 1/3."""
    rows = np.arange(50, 60)
    labels = np.array([0] * 6 + [2] * 3 + [7])  # classes 1, 3..6 have no image
    balanced = ClassBalanced(rows, labels, batch=12, seed=0)
    counts = Counter(np.concatenate([balanced(step) for step in range(6)]).tolist())  # 72 draws = 6 rounds of 3 x 4
    assert [counts[r] for r in rows] == [4] * 6 + [8] * 3 + [24]


def test_class_balanced_gives_four_images_of_a_class_in_a_row() -> None:
    rows, labels = np.arange(40), np.repeat(np.arange(4), 10)
    balanced = ClassBalanced(rows, labels, batch=6, seed=0)
    unshuffled = [balanced._row(place) for place in range(64)]
    classes = labels[unshuffled].reshape(16, 4)
    assert (classes == classes[:, :1]).all()
    for start in range(0, 16, 4):
        assert sorted(classes[start : start + 4, 0]) == [0, 1, 2, 3], "each class once, then reshuffled"
    for c in range(4):  # 16 draws of a class of 10: all of them once before any comes again
        drawn = [r for r in unshuffled if labels[r] == c]
        assert len(set(drawn[:10])) == 10
    np.testing.assert_array_equal(sorted(balanced(3)), sorted(unshuffled[18:24]))


def test_class_balanced_is_pure_and_its_batches_are_shuffled() -> None:
    rows, labels = np.arange(40), np.repeat(np.arange(4), 10)
    one, other = (ClassBalanced(rows, labels, batch=8, seed=1) for _ in range(2))
    late = [other(step) for step in reversed(range(15))][::-1]
    for step in range(15):
        np.testing.assert_array_equal(one(step), late[step])
    blocks = [len(set(labels[one(step)[:4]])) for step in range(15)]
    assert max(blocks) > 1, "a batch that was not shuffled begins with four of one class"


def test_class_balanced_wants_a_label_for_each_row() -> None:
    with pytest.raises(DataError, match="Expected labels to be one per row, but got 9 for 10 rows"):
        ClassBalanced(np.arange(10), np.zeros(9, dtype=np.int64), 4, 0)
