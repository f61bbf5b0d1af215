"""The methods of ltds as a scikit-learn classifier on feature vectors; needs pip install 'ltds[sklearn]'."""

try:
    import sklearn as sklearn
except ImportError as error:
    raise ImportError(
        "Expected the package scikit-learn for ltds.sklearn, but got none. Install it: pip install 'ltds[sklearn]'"
    ) from error

from ltds.sklearn.classifier import LongTailClassifier

__all__ = ["LongTailClassifier"]
