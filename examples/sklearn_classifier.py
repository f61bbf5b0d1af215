"""A scikit-learn classifier for rare classes and several sites, on feature vectors of any origin.

    python examples/sklearn_classifier.py

Three sites have many samples of two classes and few of the third. Which classifier finds the third at a fourth site?
Replace `samples` with your own features, labels and sites. Needs: pip install 'ltds[sklearn]'
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ltds.sklearn import LongTailClassifier

CLASSES = np.array(["common", "frequent", "rare"])


def samples(
    counts: tuple[int, ...], sites: tuple[int, ...], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.str_], NDArray[np.int64]]:
    """Features, classes and sites; the classes overlap, and every site is shifted."""
    world, rng = np.random.default_rng(0), np.random.default_rng(seed)
    centres, shifts = world.normal(size=(3, 16)), 0.4 * world.normal(size=(4, 16))
    y = np.repeat(np.arange(3), counts)
    site = rng.choice(sites, size=len(y))
    return centres[y] + shifts[site] + 1.5 * rng.normal(size=(len(y), 16)), CLASSES[y], site


def main() -> dict[str, dict[str, float]]:
    X, y, site = samples((400, 300, 12), sites=(0, 1, 2), seed=1)
    X_new, y_new, _ = samples((100, 100, 100), sites=(3,), seed=2)
    fitted = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
        "ltds": LongTailClassifier("bsce").fit(X, y, domains=site),
    }
    recalls = {}
    for name, classifier in fitted.items():
        found = recall_score(y_new, classifier.predict(X_new), labels=CLASSES, average=None)
        recalls[name] = dict(zip(CLASSES.tolist(), found.tolist(), strict=True))
    return recalls


if __name__ == "__main__":
    for name, recalls in main().items():
        print(f"{name:20}", "  ".join(f"{label} {share:.0%}" for label, share in recalls.items()))
