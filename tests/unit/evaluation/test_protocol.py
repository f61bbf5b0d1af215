from __future__ import annotations

import json

import metrics_reference as slow
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltds.core.errors import DataError
from ltds.core.task import Task
from ltds.evaluation.protocol import compute_metrics, validation_accuracy, validation_metrics
from ltds.evaluation.table import PredictionTable

COUNTS = np.array([[150, 40, 19, 0, 5], [0, 70, 0, 0, 3]])  # sources a and c; class 3 is open; 150, 110, 19, 0, 8


def make_task(counts=COUNTS, held_out="b", domains=("a", "b", "c")):
    return Task("toy", tuple(f"class {c}" for c in range(counts.shape[1])), domains, held_out, counts)


def table(rng, n, classes=5, domains=3, sharp=1.5):
    labels = rng.integers(0, classes, n)
    logits = rng.normal(size=(n, classes)) + sharp * np.eye(classes)[labels]
    return PredictionTable(logits.astype(np.float32), labels, rng.integers(0, domains, n), rng.permutation(n * 3)[:n])


def dumped(result):
    return json.loads(json.dumps(result, allow_nan=False))


def close(one, two):
    """Equal structure, numbers within 1e-9."""
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            close(one[key], two[key])
    elif isinstance(one, list):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            close(a, b)
    else:
        assert one == (pytest.approx(two, abs=1e-9) if isinstance(two, float) else two)


def chosen(t, mask):
    return PredictionTable(t.logits[mask], t.labels[mask], t.domains[mask], t.rows[mask])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(0, 20), st.sampled_from(["a", "b", "c", None]))
def test_summary_agrees_with_its_slow_twin(seed, n, n_val, held_out):
    rng = np.random.default_rng(seed)
    full = rng.integers(0, 2, (3, 5)) * rng.choice([1, 19, 20, 30, 100, 101], (3, 5))
    index = None if held_out is None else "abc".index(held_out)
    counts = full if index is None else np.delete(full, index, axis=0)
    test, val = table(rng, n), table(rng, n_val)
    result = compute_metrics(test, val, make_task(counts, held_out))
    expected = slow.summary(
        test.logits.tolist(),
        test.labels.tolist(),
        test.domains.tolist(),
        val.logits.tolist(),
        val.labels.tolist(),
        val.domains.tolist(),
        {(d, c): int(full[d, c]) for d in range(3) for c in range(5)},
        index,
        3,
    )
    close(dumped(result)["summary"], expected)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_order_of_rows_does_not_change_anything(seed):
    rng = np.random.default_rng(seed)
    test, val = table(rng, 80), table(rng, 30)
    one = compute_metrics(test, val, make_task())
    two = compute_metrics(chosen(test, rng.permutation(80)), chosen(val, rng.permutation(30)), make_task())
    close(one, two)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_relabelling_classes_does_not_change_anything(seed):
    rng = np.random.default_rng(seed)
    test, val, task = table(rng, 80), table(rng, 30), make_task()
    new = rng.permutation(5)  # new[i] is the old class at place i
    place = np.argsort(new)

    def relabelled(t):
        return PredictionTable(t.logits[:, new], place[t.labels], t.domains, t.rows)

    renamed = Task(task.name, tuple(task.classes[c] for c in new), task.domains, task.held_out, task.counts[:, new])
    one, two = compute_metrics(test, val, task), compute_metrics(relabelled(test), relabelled(val), renamed)
    for key in ("choices", "summary", "validation", "per_domain"):
        close(one[key], two[key])
    close([one["per_class"][c] for c in new], two["per_class"])
    close([[row[c] for c in new] for row in one["pairs"]["accuracy"]], two["pairs"]["accuracy"])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_renaming_the_order_of_domains_does_not_change_anything(seed):
    rng = np.random.default_rng(seed)
    test, val = table(rng, 80), table(rng, 30)
    place = np.array([1, 2, 0])  # a, b, c move to places 1, 2, 0: the order is c, a, b
    moved = [PredictionTable(t.logits, t.labels, place[t.domains], t.rows) for t in (test, val)]
    one = compute_metrics(test, val, make_task())
    two = compute_metrics(*moved, make_task(COUNTS[::-1], domains=("c", "a", "b")))
    for key in ("summary", "validation", "per_class"):
        close(one[key], two[key])
    assert {d: one["per_domain"][d] for d in "abc"} == {d: pytest.approx(two["per_domain"][d]) for d in "abc"}


def test_task_choices_and_tables():
    rng = np.random.default_rng(0)
    test, val = table(rng, 200), table(rng, 100)
    result = dumped(compute_metrics(test, val, make_task()))
    assert result["version"] == 5
    assert result["task"] == {
        "name": "toy",
        "held_out": "b",
        "domains": ["a", "b", "c"],
        "sources": ["a", "c"],
        "classes": 5,
        "open_classes": ["class 3"],
    }
    assert [row["shot"] for row in result["per_class"]] == ["many", "many", "few", "open", "few"]
    assert [row["train_images"] for row in result["per_class"]] == [150, 110, 19, 0, 8]
    assert [row["images"] for row in result["per_class"]] == np.bincount(test.labels).tolist()
    right = test.logits.argmax(axis=1) == test.labels
    here = (test.domains == 2) & (test.labels == 3)
    assert result["pairs"]["accuracy"][2][3] == pytest.approx(right[here].mean())
    assert result["pairs"]["images"][2][3] == here.sum()
    assert result["pairs"]["seen"] == [[True, True, True, False, True], [False] * 5, [False, True, False, False, True]]
    choices = result["choices"]
    assert (choices["h_oracle"]["split"], choices["h_oracle"]["oracle"]) == ("test", True)
    assert (choices["h_fixed"]["split"], choices["h_fixed"]["oracle"]) == ("val", False)
    assert choices["h_fixed"]["why"] is None
    assert (choices["h_best"]["split"], choices["h_best"]["oracle"]) == ("test", True)
    assert choices["h_softmax5"]["score"] == "max_softmax"
    assert choices["h_fixed"]["score"] == "softened_confidence"
    assert choices["acc"]["domains"] == ["a", "b", "c"]
    score = test.probabilities.max(axis=1)
    grid = [score.min() + (score.max() - score.min()) * i / 9 for i in range(10)]
    assert min(abs(t - choices["h_oracle"]["threshold"]) for t in grid) < 1e-12
    for domain in "abc":
        of = chosen(test, test.domains == "abc".index(domain))
        alone = result["per_domain"][domain]
        assert alone["known_images"] == (of.labels != 3).sum()
        assert alone["open_images"] == (of.labels == 3).sum()
        close(alone["h_oracle"], slow.best_h(of.probabilities.tolist(), of.labels.tolist(), {3}, alone_grid(of)))
    assert result["summary"]["h_u_oracle"] == result["per_domain"]["b"]["h_oracle"]
    assert result["per_domain"]["b"]["seen_pairs"] is None
    assert result["per_domain"]["b"]["unseen_pairs"] == result["per_domain"]["b"]["accuracy"]


def answers_of(t, choice, opened):
    """What the deployed model says of each image: a class, or None for "unknown"."""
    logits = np.delete(t.logits.astype(np.float64), opened, axis=1) / choice["temperature"]
    names = np.delete(np.arange(t.logits.shape[1]), opened)
    for row in logits:
        powers = np.exp(row - row.max())
        yield None if (powers / powers.sum()).max() < choice["threshold"] else int(names[row.argmax()])


def test_answers_in_each_domain_and_of_each_class():
    """Shares of images that are called unknown, and of those that are named right, counted one by one."""
    rng = np.random.default_rng(7)
    test, val = table(rng, 300), table(rng, 100)
    result = dumped(compute_metrics(test, val, make_task()))
    answers = list(answers_of(test, result["choices"]["h_fixed"], [3]))
    rows = list(zip(answers, test.labels.tolist(), test.domains.tolist(), strict=True))
    for d, domain in enumerate("abc"):
        known = [(answer, label) for answer, label, place in rows if place == d and label != 3]
        opened = [answer for answer, label, place in rows if place == d and label == 3]
        found = result["per_domain"][domain]
        assert found["known_called_unknown"] == sum(answer is None for answer, _ in known) / len(known)
        assert found["named_right"] == sum(answer == label for answer, label in known) / len(known)
        assert found["open_called_unknown"] == opened.count(None) / len(opened)
        assert found["tested_open_classes"] == 1
        few = [[answer for answer, label in known if label == c] for c in (2, 4)]
        assert found["known_called_unknown_few"] == pytest.approx(np.mean([of.count(None) / len(of) for of in few]))
        rights = [of.count(c) / len(of) for c, of in zip((2, 4), few, strict=True)]
        assert found["named_right_few"] == pytest.approx(np.mean(rights))
        assert 0 < found["known_called_unknown"] < 1
        here = chosen(test, (test.domains == d) & (test.labels != 3))
        assert found["mean_confidence"] == pytest.approx(here.probabilities.max(axis=1).mean())
    for c, row in enumerate(result["per_class"]):
        of_class = [answer for answer, label, _ in rows if label == c]
        assert row["called_unknown"] == of_class.count(None) / len(of_class)
    assert result["summary"]["named_right_u"] == result["per_domain"]["b"]["named_right"]
    # Known images that are kept and right, and open ones that are rejected: the two shares of H fixed
    a, b = (result["summary"][name] for name in ("named_right", "open_called_unknown"))
    assert result["summary"]["h_fixed"] == pytest.approx(2 * a * b / (a + b))


def test_the_deployed_score_has_an_auroc_of_its_own():
    rng = np.random.default_rng(8)
    test, val = table(rng, 150), table(rng, 60)
    result = dumped(compute_metrics(test, val, make_task()))
    temperature = result["choices"]["h_fixed"]["temperature"]
    rows = (test.logits.astype(np.float64)[:, [0, 1, 2, 4]] / temperature).tolist()
    scores = [max(slow.softmax(row)) for row in rows]
    known, opened = ([s for s, y in zip(scores, test.labels, strict=True) if (y == 3) == flag] for flag in (0, 1))
    pooled = slow.auroc(known, opened)
    sizes = {d: (row["known_images"], row["open_images"]) for d, row in result["per_domain"].items()}
    assert sum(map(sum, sizes.values())) == 150
    for d, domain in enumerate("abc"):
        here = [(s, y == 3) for s, y, place in zip(scores, test.labels, test.domains, strict=True) if place == d]
        expected = slow.auroc([s for s, is_open in here if not is_open], [s for s, is_open in here if is_open])
        assert result["per_domain"][domain]["auroc_deployed"] == pytest.approx(expected)
        assert expected != pytest.approx(pooled)


def test_a_threshold_says_on_how_many_images_it_was_chosen():
    val, task = table(np.random.default_rng(6), 80), make_task()
    used = (val.domains != 1) & (val.labels != 3)
    known_best = np.where(np.arange(5) == 3, -np.inf, val.logits).argmax(axis=1)
    choices = dumped(compute_metrics(table(np.random.default_rng(0), 60), val, task))["choices"]
    assert choices["h_fixed"]["images"] == np.sum(used & (known_best == val.labels))
    assert choices["h_softmax5"]["images"] == np.sum(used & (val.logits.argmax(axis=1) == val.labels))
    assert choices["h_fixed"]["images"] > choices["h_softmax5"]["images"] > 0


def alone_grid(t):
    return slow.daml_grid(t.probabilities.tolist())


def test_shot_groups_are_means_over_classes_not_images():
    # "few" holds class 2 (one image, right) and class 4 (three images, wrong): 1/2, while pooled it would be 1/4.
    labels = np.array([2, 4, 4, 4])
    logits = np.eye(5, dtype=np.float32)[[2, 0, 0, 0]]
    result = compute_metrics(PredictionTable(logits, labels, np.array([0, 0, 1, 2]), np.arange(4)), None, make_task())
    assert result["summary"]["few"] == 0.5
    assert result["summary"]["many"] is None
    assert result["summary"]["medium"] is None
    assert result["summary"]["accuracy"] == 0.25
    assert result["summary"]["unseen_pairs_sources"] is None


def test_an_open_argmax_counts_as_unknown_for_h_but_not_for_the_ranking():
    logits = np.log(np.array([[0.8, 0.1, 0.1], [0.05, 0.9, 0.05], [0.0, 0.0, 1.0]]) + 1e-9).astype(np.float32)
    test = PredictionTable(logits, np.array([0, 1, 2]), np.zeros(3, np.int64), np.arange(3))
    task = Task("t", ("a", "b", "open"), ("one",), None, np.array([[5, 5, 0]]))
    result = compute_metrics(test, None, task)["summary"]
    assert (result["h_oracle"], result["auroc"], result["oscr"]) == (1.0, 0.0, 0.0)


class TestEdges:
    rng = np.random.default_rng(5)

    def test_no_open_class(self):
        counts = COUNTS + 1
        result = dumped(compute_metrics(table(self.rng, 60), table(self.rng, 30), make_task(counts)))
        names = ("h_oracle", "h_fixed", "h_u_oracle", "h_u_fixed", "h_released", "auroc", "oscr", "auroc_u", "oscr_u")
        assert {result["summary"][name] for name in names} == {None}
        assert result["choices"]["h_oracle"]["threshold"] is None
        assert result["choices"]["h_oracle"]["why"] == "no test image of open classes"
        assert result["choices"]["h_fixed"]["threshold"] is not None
        assert result["summary"]["acc_u"] is not None
        assert result["summary"]["open_called_unknown_u"] is None
        assert result["per_domain"]["b"]["tested_open_classes"] == 0
        for name in ("known_called_unknown_u", "named_right_u"):
            assert 0 < result["summary"][name] < 1, "how often it refuses known images needs no open ones"

    def test_no_held_out_domain(self):
        counts = np.vstack([COUNTS, [1, 1, 1, 0, 1]])
        result = dumped(compute_metrics(table(self.rng, 60), table(self.rng, 30), make_task(counts, None)))
        for name in ("acc_u", "h_u_oracle", "h_u_fixed", "auroc_u", "oscr_u"):
            assert result["summary"][name] is None
        assert result["summary"]["h_oracle"] is not None
        assert result["task"]["sources"] == ["a", "b", "c"]

    def test_a_domain_without_images(self):
        test = table(self.rng, 60)
        result = dumped(compute_metrics(chosen(test, test.domains != 2), None, make_task()))
        empty = result["per_domain"]["c"]
        assert [empty.pop(name) for name in ("known_images", "open_images", "tested_open_classes")] == [0, 0, 0]
        assert set(empty.values()) == {None}
        assert result["pairs"]["accuracy"][2] == [None] * 5
        assert result["choices"]["acc"]["domains"] == ["a", "b"]
        two = [result["per_domain"][d]["accuracy"] for d in "ab"]
        assert result["summary"]["acc"] == pytest.approx(sum(two) / 2)

    def test_a_held_out_domain_without_images(self):
        test = table(self.rng, 60)
        result = dumped(compute_metrics(chosen(test, test.domains != 1), None, make_task()))
        assert result["summary"]["acc_u"] is None
        assert result["summary"]["acc"] is not None

    def test_no_image_at_all(self):
        none = chosen(table(self.rng, 3), np.zeros(3, dtype=bool))
        result = dumped(compute_metrics(none, none, make_task()))
        assert set(result["summary"].values()) == {None}
        assert result["validation"] == {"accuracy": None, "per_domain": {"a": None, "c": None}, "ece": None}
        assert (
            result["choices"]["h_oracle"]["why"] == "no test image of known classes and no test image of open classes"
        )

    @pytest.mark.parametrize("label", [0, 3])
    def test_all_images_of_one_class(self, label):
        test = table(self.rng, 60)
        test = chosen(test, test.labels == label)
        result = dumped(compute_metrics(test, None, make_task()))
        right = float((test.logits.argmax(axis=1) == label).mean())
        assert result["summary"]["macro_accuracy"] == (None if label == 3 else pytest.approx(right))
        assert result["per_class"][label]["accuracy"] == pytest.approx(right)
        assert result["summary"]["h_oracle"] is None
        assert result["summary"]["named_right"] is None, "no threshold, so no rule"

    @pytest.mark.parametrize("label", [0, 3])
    def test_answers_to_images_of_one_class(self, label):
        test, val = table(self.rng, 60), table(self.rng, 40)
        test = chosen(test, test.labels == label)
        result = dumped(compute_metrics(test, val, make_task()))
        answers = list(answers_of(test, result["choices"]["h_fixed"], [3]))
        refused = answers.count(None) / len(answers)
        found, is_open = result["summary"], label == 3
        assert found["open_called_unknown"] == (refused if is_open else None)
        assert found["known_called_unknown"] == (None if is_open else refused)
        assert found["named_right"] == (None if is_open else answers.count(label) / len(answers))
        assert result["per_class"][label]["called_unknown"] == refused
        assert result["per_domain"]["a"]["tested_open_classes"] == is_open

    def test_a_class_without_images_in_a_domain(self):
        test = table(self.rng, 90)
        test = chosen(test, (test.labels != 4) | (test.domains != 0))
        result = dumped(compute_metrics(test, None, make_task()))
        assert result["pairs"]["accuracy"][0][4] is None
        assert result["pairs"]["images"][0][4] == 0
        known = [result["pairs"]["accuracy"][0][c] for c in (0, 1, 2)]
        assert result["per_domain"]["a"]["macro_accuracy"] == pytest.approx(sum(known) / 3)

    def test_no_correct_validation_image(self):
        val = table(self.rng, 30)
        known_best = np.where(np.arange(5) == 3, -np.inf, val.logits).argmax(axis=1)  # class 3 is open
        wrong = chosen(val, (val.logits.argmax(axis=1) != val.labels) & (known_best != val.labels))
        result = dumped(compute_metrics(table(self.rng, 60), wrong, make_task()))
        assert result["summary"]["h_fixed"] is None
        assert result["choices"]["h_fixed"]["threshold"] is None
        assert result["choices"]["h_fixed"]["why"] == "no correctly classified source-validation image"
        assert result["summary"]["h_softmax5"] is None
        assert result["validation"]["accuracy"] == 0.0
        assert result["summary"]["h_oracle"] is not None

    def test_no_validation_split(self):
        result = dumped(compute_metrics(table(self.rng, 60), None, make_task()))
        assert result["validation"] is None
        assert result["summary"]["h_fixed"] is None
        assert result["choices"]["h_fixed"]["why"] == "no validation predictions"
        assert result["choices"]["h_fixed"]["images"] is None
        assert result["summary"]["known_called_unknown"] is None
        assert {row["called_unknown"] for row in result["per_class"]} == {None}

    def test_two_classes(self):
        task = make_task(np.array([[30, 0], [2, 0]]))
        result = dumped(compute_metrics(table(self.rng, 60, classes=2), table(self.rng, 30, classes=2), task))
        assert 0 <= result["summary"]["h_oracle"] <= 1
        assert result["per_class"][1]["shot"] == "open"
        assert result["summary"]["medium"] == result["summary"]["macro_accuracy"] == result["summary"]["accuracy"]


def test_validation_leaves_out_the_held_out_domain_and_open_classes():
    rng = np.random.default_rng(3)
    val, task = table(rng, 120), make_task()
    used = (val.domains != 1) & (val.labels != 3)
    assert not used.all()
    assert validation_metrics(val, task) == validation_metrics(chosen(val, used), task)
    right = val.logits.argmax(axis=1) == val.labels
    by_domain = [right[used & (val.domains == d)].mean() for d in (0, 2)]
    assert validation_metrics(val, task)["accuracy"] == pytest.approx(np.mean(by_domain))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 60), st.sampled_from(["a", "b", "c", None]))
def test_the_accuracy_of_an_epoch_is_the_validation_accuracy_to_the_last_bit(seed, n, held_out):
    rng = np.random.default_rng(seed)
    full = rng.integers(0, 2, (3, 5)) * 30
    task = make_task(full if held_out is None else np.delete(full, "abc".index(held_out), axis=0), held_out)
    val = table(rng, n)
    val.logits[: n // 2] = val.logits[: n // 2].round()  # ties
    expected = {name: validation_metrics(val, task)[name] for name in ("accuracy", "per_domain")}
    assert validation_accuracy(val, task) == expected
    # Hits are those of the rounded softmax, whose ties go to the first class.
    known = ~np.isin(val.labels, task.open_classes)
    hits = val.probabilities.argmax(axis=1) == val.labels
    for name, share in expected["per_domain"].items():
        right = hits[known & (val.domains == task.domains.index(name))].tolist()
        assert share == (sum(right) / len(right) if right else None)


def test_logits_whose_softmax_is_the_same_are_a_tie():
    nearly = np.nextafter(np.float32(1e-20), np.float32(1))
    logits = np.array([[1e-20, nearly, -9, -9, -9]], np.float32)
    val = PredictionTable(logits, np.array([1]), np.array([0]), np.array([0]))
    assert logits.argmax() == 1
    assert validation_accuracy(val, make_task()) == {"accuracy": 0.0, "per_domain": {"a": 0.0, "c": None}}
    assert validation_metrics(val, make_task())["accuracy"] == 0.0


def test_predictions_of_another_task_are_refused():
    rng = np.random.default_rng(4)
    good = table(rng, 20)
    for bad in (table(rng, 20, classes=6), table(rng, 20, classes=4), table(rng, 40, domains=4)):
        with pytest.raises(DataError, match=r"test (predictions|logits).*Delete the file DONE.*resume the run"):
            compute_metrics(bad, None, make_task())
        with pytest.raises(DataError, match=r"val (predictions|logits)"):
            compute_metrics(good, bad, make_task())
