"""LongTailClassifier: any method of ltds with fit, predict and predict_proba."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from ltds.core.errors import ConfigError, DataError, LtdsWarning, expected
from ltds.core.plain import plain_value
from ltds.engine.preprocessing import FeaturePreprocessing
from ltds.evaluation.openset import softened_confidence
from ltds.nn.precision import compute_in
from ltds.sklearn.fitting import FitSettings, LabelledVectors, train_on
from ltds.sklearn.parameters import fraction, is_missing_value, numbered, whole_number

LARGEST = 1e4  # of a standardised feature: vectors are kept in half precision
NUMBERS = frozenset("iuf")  # kinds of NumPy types that have a common one, which may round


class LongTailClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier of feature vectors for classes of very different sizes, from one or several domains.

        from ltds.sklearn import LongTailClassifier
        LongTailClassifier(method="bsce").fit(X, y, domains=sites).predict(X_new)

    Features are standardised and given to a small residual network (the "adapter"), which is trained by the method.

    `method`: a name of `ltds methods`. Those that use class embeddings (ltds) need `class_embeddings`, (C,S) in the
    order of the sorted class labels; the others ignore them. `max_iter`: training steps, rounded up to whole epochs;
    `n_iter_` is their number in the end, which `settings` can change. `batch_size`: samples of each domain in a step.
    `validation_fraction`: share of the samples that chooses the best weights and the threshold for "unknown".
    `unknown_label`: what `predict` says where `known_score` is below `threshold_`; None: it always names a class.
    `settings`: any settings of ltds by dotted name, as in {"optimizer.lr": 0.003, "backbone.adapter_width": 512}.
    """

    # Cross-validation by groups has an argument of this name: it goes to `fit` only by set_fit_request(groups=True).
    __metadata_request__fit = {"groups": False}  # noqa: RUF012  # as scikit-learn wants it

    def __init__(
        self,
        method: str = "bsce",
        *,
        max_iter: int = 300,
        batch_size: int = 32,
        validation_fraction: float = 0.15,
        class_embeddings: ArrayLike | None = None,
        unknown_label: Any = None,
        settings: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        device: str = "cpu",
    ) -> None:
        self.method = method
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.class_embeddings = class_embeddings
        self.unknown_label = unknown_label
        self.settings = settings
        self.random_state = random_state
        self.device = device

    def fit(
        self, X: ArrayLike, y: ArrayLike, domains: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> LongTailClassifier:
        """Train on features X (N,D) with labels y (N,); `domains` (N,): where each sample comes from.

        `groups` (N,): what samples belong to, such as a patient; those of a group are all for training, or all to
        choose the weights and the threshold.
        """
        how = self._how()
        values: NDArray[np.float64]
        values, targets = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(targets)
        self.classes_, labels = np.unique(targets, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(expected("y", "of at least two classes", "one class", "Add samples of other classes."))
        self._check_unknown_label()
        self.domains_, domain_ids = np.array(["all"]), np.zeros(len(values), dtype=np.int64)
        if domains is not None:
            self.domains_, domain_ids = _numbered("domains", domains, values)
        group_ids = None if groups is None else _numbered("groups", groups, values)[1]
        self.mean_, deviation = values.mean(axis=0), values.std(axis=0)
        constant = deviation <= 1e-12 * np.abs(values).max(axis=0, initial=0)  # but for errors of rounding
        self.scale_ = np.where(constant, 1.0, deviation)
        inputs, embeddings = self._inputs(values), self._embeddings()
        samples = LabelledVectors(inputs, labels.astype(np.int64), domain_ids, embeddings, group_ids)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.model_, self.n_iter_ = train_on(samples, replace(how, seed=seed))
        self.threshold_ = self.model_.threshold
        if self.unknown_label is not None and self.threshold_ is None:
            warnings.warn(
                f"No prediction will be unknown_label ({self.unknown_label!r}): its threshold is chosen on correctly "
                "classified validation samples, and there is none. Raise validation_fraction, or add samples"
                f"{'' if groups is None else ' of more groups'}.",
                LtdsWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """(N,) the most probable class of each row, or `unknown_label`.

        The array holds objects where no NumPy type holds both as they are: numbers and a text, or large integers and
        a float.
        """
        logits = self._logits(X)
        labels: NDArray[Any] = self.classes_[logits.argmax(axis=1)]
        if self.unknown_label is None or self.threshold_ is None:
            return labels
        labels = labels.astype(self._answer_type())
        labels[self._scores(logits) < self.threshold_] = self.unknown_label
        return labels

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows whose answer is y; "unknown" is right only where y has `unknown_label`."""
        check_is_fitted(self)
        if self.unknown_label is None or self._answer_type() != np.dtype(object):  # scikit-learn compares one kind only
            return float(super().score(X, y, sample_weight))
        truth = column_or_1d(np.asarray(y, dtype=object))  # a list [0, "unknown"] would become texts
        predicted = self.predict(X)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        check_consistent_length(predicted, truth, weights)
        return float(np.average(predicted == truth, weights=weights))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """(N,C) probabilities, in the order of `classes_`."""
        logits = self._logits(X)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return cast("NDArray[np.float64]", shares)

    def known_score(self, X: ArrayLike) -> NDArray[np.float64]:
        """(N,) a softened confidence, low for samples unlike all classes; below `threshold_` they are "unknown"."""
        return self._scores(self._logits(X))

    def _answer_type(self) -> np.dtype[Any]:
        """The type that holds the classes and `unknown_label` as they are: a common one may turn 0 into "0".

        It may also round: that of uint64 and int64 is float64, where 2**60 + 1 becomes 2**60.
        """
        unknown = np.asarray([self.unknown_label])
        if {self.classes_.dtype.kind, unknown.dtype.kind} <= NUMBERS or self.classes_.dtype.kind == unknown.dtype.kind:
            common = np.result_type(self.classes_, unknown)
            if all(labels.astype(common).tolist() == labels.tolist() for labels in (self.classes_, unknown)):
                return common
        return np.dtype(object)

    def _scores(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        return softened_confidence(logits, self.model_.record.unknown.temperature)

    def _logits(self, X: ArrayLike) -> NDArray[np.float64]:
        """(N,C) in double precision, so that the answer for a row does not depend on the other rows.

        On the CPU: not every GPU has it, and the network is small.
        """
        check_is_fitted(self)
        values: NDArray[np.float64] = validate_data(self, X, dtype=np.float64, reset=False)
        preprocessing = self.model_.record.preprocessing
        assert isinstance(preprocessing, FeaturePreprocessing)  # a fit trains on vectors
        method = copy.deepcopy(self.model_.method).cpu()
        compute_in("float32", method)  # what a fit in bfloat16 would round to
        method.double()
        with torch.inference_mode():
            inputs = torch.from_numpy(self._inputs(values) / preprocessing.scale)
            logits: NDArray[np.float64] = method.predict(inputs).logits.numpy()
        return logits

    def _inputs(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,2D) standardised features and their negatives: the adapter ends in a ReLU, which would drop a sign."""
        standard = np.clip((X - self.mean_) / self.scale_, -LARGEST, LARGEST)
        return np.concatenate([standard, -standard], axis=1)

    def _embeddings(self) -> NDArray[np.float64] | None:
        if self.class_embeddings is None:
            return None
        vectors = np.asarray(self.class_embeddings, dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(self.classes_):
            rule, remedy = f"an array of {len(self.classes_)} rows", "Give a row for each class, sorted by label."
            raise DataError(expected("class_embeddings", rule, f"the shape {vectors.shape}", remedy))
        return vectors

    def _check_unknown_label(self) -> None:
        if self.unknown_label is None:
            return
        remedy = "Choose another one, such as -1 or 'unknown'."
        if is_missing_value(self.unknown_label):
            rule, got = "a label", f"{self.unknown_label!r}, which equals no label and which scores refuse"
            raise ConfigError(expected("unknown_label", rule, got, remedy))
        if self.unknown_label in self.classes_.tolist():
            rule, got = "a label that no class has", f"{self.unknown_label!r}, a class of y"
            raise ConfigError(expected("unknown_label", rule, got, remedy))

    def _how(self) -> FitSettings:
        """The parameters as the training takes them, but for the seed; raises where one cannot be used."""
        return FitSettings(
            method=plain_value(self.method),
            steps=whole_number("max_iter", self.max_iter, 1),
            batch_size=whole_number("batch_size", self.batch_size, 2),
            validation_fraction=fraction("validation_fraction", self.validation_fraction),
            seed=0,
            device=plain_value(self.device),
            settings=plain_value(self.settings or {}),
        )


def _numbered(argument: str, given: ArrayLike, X: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    values = column_or_1d(given)
    check_consistent_length(X, values)
    return numbered(argument, values)
