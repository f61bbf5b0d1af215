"""LongTailClassifier: scikit-learn's own checks, and what they cannot know of."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

sklearn = pytest.importorskip("sklearn", reason="needs scikit-learn: pip install 'ltds[sklearn]'")

from sklearn.base import clone  # noqa: E402
from sklearn.metrics import balanced_accuracy_score  # noqa: E402
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from ltds.core.errors import ConfigError, DataError, LtdsWarning  # noqa: E402
from ltds.data.splits import TRAIN, VAL  # noqa: E402
from ltds.sklearn import LongTailClassifier, fitting  # noqa: E402
from ltds.sklearn.fitting import FitSettings, LabelledVectors  # noqa: E402

CENTRES = np.array([[0.0, 0, 0, 0], [1.6, 0, 0, 0], [0, 1.6, 0, 0]])


def samples(counts: tuple[int, ...], seed: int, shifts: int = 3) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """X, y and sites: classes that overlap, each site shifted a little."""
    rng = np.random.default_rng(seed)
    shift = 0.3 * np.random.default_rng(7).normal(size=(shifts, 4))
    y = np.repeat(np.arange(len(counts)), counts)
    site = rng.integers(0, shifts, size=len(y))
    return CENTRES[y] + shift[site] + 0.6 * rng.normal(size=(len(y), 4)), np.array(["ant", "bee", "cat"])[y], site


def test_the_checks_of_scikit_learn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that need other packages are skipped with a warning
        results = check_estimator(LongTailClassifier(max_iter=40), on_fail="raise")
    assert sum(result["status"] == "passed" for result in results) >= 45
    assert {result["status"] for result in results} <= {"passed", "skipped"}


def test_rare_classes_are_found() -> None:
    X, y, _ = samples((200, 200, 6), 0)
    X_new, y_new, _ = samples((100, 100, 100), 1)
    recall, score = {}, {}
    for method in ("agg", "bsce"):
        predicted = LongTailClassifier(method, max_iter=200).fit(X, y).predict(X_new)
        recall[method] = (predicted[y_new == "cat"] == "cat").mean()
        score[method] = balanced_accuracy_score(y_new, predicted)
    assert recall["bsce"] > recall["agg"] + 0.15
    assert score["bsce"] > max(0.65, score["agg"])


def test_domains_and_the_papers_method() -> None:
    X, y, site = samples((60, 30, 9), 0)
    embeddings = np.eye(3)
    model = LongTailClassifier("ltds", class_embeddings=embeddings, max_iter=100, batch_size=16)
    model.fit(X, y, domains=np.array(["north", "south", "west"])[site])
    assert model.domains_.tolist() == ["north", "south", "west"]
    assert model.model_.task.sources == ("domain 0", "domain 1", "domain 2")
    assert model.score(X, y) > 0.75
    assert model.predict_proba(X).shape == (99, 3)
    with pytest.raises(DataError, match="an array of 3 rows"):
        model.set_params(class_embeddings=embeddings[:2]).fit(X, y)
    with pytest.raises(DataError, match=r"Expected class_embeddings to be an array .* because the method 'ltds' uses"):
        model.set_params(class_embeddings=None).fit(X, y, domains=site)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y, domains=site[:-1])


def test_samples_of_a_group_are_for_training_or_for_validation() -> None:
    """Every sample is there three times: apart, the copies would make validation too good."""
    X, y, site = (np.repeat(column, 3, axis=0) for column in samples((40, 30, 9), 0))
    patients = np.repeat([f"patient {i}" for i in range(len(X) // 3)], 3)
    seen: list[LabelledVectors] = []
    splits = fitting._splits

    def noted(given: LabelledVectors, how: FitSettings) -> Any:
        seen.append(given)
        return splits(given, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "_splits", noted)
        LongTailClassifier(max_iter=20).fit(X, y, domains=site, groups=patients)
        LongTailClassifier(max_iter=20).fit(X, y, domains=site)
    how = FitSettings("bsce", 20, 32, 0.15, 0, "cpu", {})
    together, apart = (splits(given, how).reshape(-1, 3) for given in seen)
    assert (together == together[:, :1]).all()
    assert 0.1 < (together == VAL).mean() < 0.25
    assert (apart != apart[:, :1]).any()
    few = LabelledVectors(np.zeros((25, 2)), np.repeat([0, 1], [22, 3]), np.zeros(25, int), groups=np.arange(25))
    assert (splits(few, how)[22:] == TRAIN).all(), "none of a rare class"
    assert (splits(few, how)[:22] == VAL).sum() == 3
    with pytest.raises(DataError, match="groups to be one for each sample, but got 1 missing, the first in row 0"):
        LongTailClassifier().fit(X, y, groups=np.array([None, *patients[1:]], dtype=object))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LongTailClassifier().fit(X, y, groups=patients[:-1])


def test_a_search_over_methods_with_and_without_embeddings() -> None:
    X, y, _ = samples((20, 12, 9), 0)
    search = GridSearchCV(
        LongTailClassifier(max_iter=10, class_embeddings=np.eye(3)), {"method": ["bsce", "agg-embeddings"]}, cv=2
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_unknown_is_said_below_the_threshold() -> None:
    X, y, _ = samples((60, 60, 20), 0)
    model = LongTailClassifier(max_iter=60, unknown_label="unknown").fit(X, y)
    grid = np.random.default_rng(0).normal(size=(400, 4), scale=2)
    score, said = model.known_score(grid), model.predict(grid)
    assert model.threshold_ is not None
    assert ((said == "unknown") == (score < model.threshold_)).all()
    assert 0 < (said == "unknown").mean() < 1
    sure = said != "unknown"
    assert (said[sure] == model.classes_[model.predict_proba(grid).argmax(axis=1)][sure]).all()
    assert "unknown" not in model.classes_
    assert "unknown" not in model.set_params(unknown_label=None).predict(grid)


@pytest.mark.parametrize(("classes", "unknown"), [([0, 1, 2], 0), ([0, 1, 2], 2.0), (["a", "b", "unknown"], "unknown")])
def test_an_unknown_label_that_is_a_class_is_refused(classes: list[Any], unknown: Any) -> None:
    X, names, _ = samples((9, 9, 9), 0)
    y = np.array(classes)[np.unique(names, return_inverse=True)[1]]
    part = f"Expected unknown_label to be a label that no class has, but got {unknown!r}, a class of y. Choose"
    with pytest.raises(ValueError, match=re.escape(part)):
        LongTailClassifier(max_iter=1, unknown_label=unknown).fit(X, y)


@pytest.mark.parametrize("missing", [float("nan"), np.float32("nan")])
def test_an_unknown_label_that_equals_nothing_is_refused(missing: Any) -> None:
    X, y, _ = samples((9, 9, 9), 0)
    with pytest.raises(ValueError, match=r"Expected unknown_label to be a label, but got .*nan.* such as -1"):
        LongTailClassifier(max_iter=1, unknown_label=missing).fit(X, y)


HUGE = 2**60 + 1  # float64 rounds it


@pytest.mark.parametrize(
    ("classes", "unknown", "kind"),
    [
        (np.arange(HUGE, HUGE + 3, dtype=np.uint64), -1, "O"),
        (np.arange(2**64 - 3, 2**64, dtype=np.uint64), -1, "O"),
        ([HUGE, HUGE + 1, HUGE + 2], -1.0, "O"),
        ([0.0, 1.0, 2.0], HUGE, "O"),
        ([0, 1, 2], -1.0, "f"),
        (np.arange(3, dtype=np.uint8), -1, "i"),
        ([0, 1, 2], "unknown", "O"),
        (["0", "1", "2"], -1, "O"),
        ([0, 1, 2], -1, "i"),
        (["a", "b", "c"], "unknown", "U"),
    ],
)
def test_labels_keep_their_kind_beside_unknown(classes: Sequence[Any] | NDArray[Any], unknown: Any, kind: str) -> None:
    X, names, _ = samples((60, 60, 20), 0)
    y = np.array(classes)[np.unique(names, return_inverse=True)[1]]
    model = LongTailClassifier(max_iter=60, unknown_label=unknown).fit(X, y)
    assert model.threshold_ is not None
    predicted, named = model.predict(X), model.known_score(X) >= model.threshold_
    assert predicted.dtype.kind == kind
    assert 0 < named.mean() < 1
    assert set(predicted[named].tolist()) <= set(classes)
    assert set(predicted[~named].tolist()) == {unknown}
    assert (predicted == y).mean() > 0.6
    assert model.score(X, y) == pytest.approx((predicted == y).mean())
    weights = np.where(named, 1.0, 0.0)
    assert model.score(X, y, weights) == pytest.approx((predicted == y)[named].mean())
    assert model.score(X, predicted.tolist()) == 1


def test_a_fit_is_repeatable_and_leaves_the_random_numbers_of_torch_alone() -> None:
    X, y, _ = samples((30, 20, 8), 0)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = LongTailClassifier(max_iter=20).fit(X, y)
    assert torch.equal(torch.rand(3), expected)
    again = clone(first).fit(X, y)
    assert (first.predict_proba(X) == again.predict_proba(X)).all()
    other = clone(first).set_params(random_state=1).fit(X, y)
    assert (first.predict_proba(X) != other.predict_proba(X)).any()
    loaded = pickle.loads(pickle.dumps(first))
    assert (loaded.predict_proba(X) == first.predict_proba(X)).all()


def test_one_site_left_out_in_a_pipeline() -> None:
    X, y, site = samples((60, 40, 20), 0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LongTailClassifier(max_iter=40).set_fit_request(domains=True)
        chain = make_pipeline(StandardScaler(), model)
        both = make_pipeline(StandardScaler(), clone(model).set_fit_request(domains=True, groups=True))
        drawn: list[Any] = []
        draw = fitting.draw_grouped_splits
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                fitting, "draw_grouped_splits", lambda *names, **how: drawn.append(how) or draw(*names, **how)
            )
            scores = cross_val_score(chain, X, y, cv=LeaveOneGroupOut(), params={"groups": site, "domains": site})
            assert not drawn, "groups of the cross-validation are for the fit only on request"
            both.fit(X, y, groups=np.arange(len(X)), domains=site)
            assert len(drawn) == 1
    assert scores.shape == (3,)
    assert scores.min() > 0.6


def test_settings_reach_the_engine() -> None:
    X, y, _ = samples((30, 20, 8), 0)
    settings = {"backbone.adapter_width": 7, "optimizer.lr": 0.02, "schedule.steps_per_epoch": 4}
    fitted = LongTailClassifier(max_iter=15, settings=settings).fit(X, y)
    model = fitted.model_
    assert fitted.n_iter_ == 4, "one epoch"
    assert model.stored.config.backbone.adapter_width == 7
    assert model.stored.config.optimizer.lr == 0.02
    assert model.method.state_dict()["backbone.down.weight"].shape == (7, 8)
    config = model.stored.config
    assert (config.averaging.name, config.averaging.decay) == ("ema", 0.5)
    with pytest.raises(ConfigError, match="'optimizer' to be a group of settings"):
        LongTailClassifier(settings={"optimizer": 5}).fit(X, y)
    with pytest.raises(ConfigError, match="adapter_widht"):
        LongTailClassifier(settings={"backbone.adapter_widht": 7}).fit(X, y)


def test_a_fit_in_bfloat16_predicts_in_double_precision() -> None:
    X, y, _ = samples((30, 20, 8), 0)
    fitted = LongTailClassifier(max_iter=15, settings={"run.precision": "bfloat16"}).fit(X, y)
    assert fitted.model_.method.backbone is not None
    assert (fitted.predict(X) == y).mean() > 0.6
    first, *_ = fitted.predict_proba(X[:1])
    assert (fitted.predict_proba(X)[0] == first).all()


def test_a_column_of_large_numbers_leaves_the_others_as_they_are() -> None:
    X, y, _ = samples((20, 12, 8), 0)
    times = 1.7e18 + 1e15 * np.arange(len(X), dtype=np.float64)  # nanoseconds
    table = np.column_stack([X, times, np.full(len(X), 0.1)])
    model = LongTailClassifier(max_iter=2).fit(table, y)
    np.testing.assert_allclose(model.scale_, [*X.std(axis=0), times.std(), 1.0])


def test_one_setting_of_a_group_leaves_the_others_to_the_estimator() -> None:
    X, y, _ = samples((30, 20, 8), 0)
    settings = {"optimizer.weight_decay": 0.01, "schedule.warmup": 0.1, "averaging.start": 0.5}
    config = LongTailClassifier(max_iter=40, settings=settings).fit(X, y).model_.stored.config
    assert (config.optimizer.lr, config.optimizer.weight_decay) == (0.03, 0.01)
    assert (config.schedule.milestones, config.schedule.warmup) == ((0.8,), 0.1)
    assert (config.averaging.name, config.averaging.decay, config.averaging.start) == ("ema", 0.75, 0.5)


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        ({"max_iter": 0}, "max_iter to be a whole number of at least 1, but got 0"),
        ({"max_iter": 20.0}, "max_iter to be a whole number of at least 1, but got 20.0"),
        ({"max_iter": "20"}, "max_iter to be a whole number of at least 1, but got '20'"),
        ({"batch_size": 1}, "batch_size"),
        ({"batch_size": None}, "batch_size to be a whole number of at least 2, but got None"),
        ({"validation_fraction": 1.0}, "below 1"),
        ({"validation_fraction": "0.1"}, "validation_fraction to be a number from 0 to below 1, but got '0.1'"),
    ],
)
def test_wrong_parameters(wrong: dict[str, Any], part: str) -> None:
    X, y, _ = samples((9, 9, 9), 0)
    with pytest.raises(ConfigError, match=part):
        LongTailClassifier(**wrong).fit(X, y)


def test_numbers_of_numpy_are_numbers() -> None:
    X, y, _ = samples((20, 12, 8), 0)
    settings = {
        "optimizer.lr": np.float32(0.25),
        "schedule.milestones": np.array([0.5]),
        "optimizer.name": np.str_("sgd"),
    }
    numbers = {"max_iter": np.int64(20), "batch_size": np.int32(8), "validation_fraction": np.float32(0.25)}
    config = LongTailClassifier(np.str_("bsce"), **numbers, settings=settings).fit(X, y).model_.stored.config
    assert (config.schedule.epochs * config.schedule.steps_per_epoch, config.data.batch_size) == (20, 8)
    assert (config.optimizer.lr, config.schedule.milestones) == (0.25, (0.5,))


def test_a_domain_of_one_sample_is_named() -> None:
    X, y, _ = samples((9, 9, 9), 0)
    with pytest.raises(DataError, match="several training samples"):
        LongTailClassifier().fit(X, y, domains=[0] * 26 + [1])


@pytest.mark.parametrize(
    ("domains", "said"),
    [
        (["a", None], "domains to be one for each sample, but got 13 missing, the first in row 1"),
        ([1.0, np.nan], "13 missing, the first in row 1"),
        (np.array(["a", np.nan], dtype=object), "13 missing, the first in row 1"),
        (np.array(["a", 1], dtype=object), "all texts or all numbers"),
    ],
)
def test_domains_that_are_missing_or_mixed(domains: Any, said: str) -> None:
    X, y, _ = samples((9, 9, 9), 0)
    with pytest.raises(DataError, match=said):
        LongTailClassifier().fit(X, y, domains=np.resize(np.asarray(domains), len(X)))


def test_a_large_validation_fraction_leaves_a_sample_of_each_class() -> None:
    X, y, _ = samples((20, 9, 4), 0)
    model = LongTailClassifier(max_iter=5, validation_fraction=0.9).fit(X, y)
    assert set(model.predict(X)) <= {"ant", "bee", "cat"}


def test_no_validation_samples() -> None:
    X, y, _ = samples((9, 9, 3), 0)
    with pytest.warns(LtdsWarning, match=r"No prediction will be unknown_label \('unknown'\)"):
        model = LongTailClassifier(max_iter=10, validation_fraction=0, unknown_label="unknown").fit(X, y)
    assert model.threshold_ is None
    assert set(model.predict(X)) <= {"ant", "bee", "cat"}
