"""Metrics, open-set scores, significance tests, and the tables that a run stores. Importing it does not load torch."""

from ltds.evaluation.features import FeatureTable
from ltds.evaluation.metrics import accuracy, expected_calibration_error, harmonic, macro_accuracy
from ltds.evaluation.openset import (
    OpenSetScores,
    auroc,
    best_h,
    known_and_open_rates,
    oscr,
    softened_confidence,
    softening_temperature,
    struck_out_threshold,
)
from ltds.evaluation.protocol import compute_metrics, validation_metrics
from ltds.evaluation.run_metrics import evaluate
from ltds.evaluation.significance import (
    Agreement,
    PairedDifference,
    SeedSummary,
    agreement,
    block_ranks,
    critical_difference,
    friedman,
    holm,
    paired_difference,
    summary,
    wilcoxon,
)
from ltds.evaluation.table import PredictionTable

__all__ = [
    "Agreement",
    "FeatureTable",
    "OpenSetScores",
    "PairedDifference",
    "PredictionTable",
    "SeedSummary",
    "accuracy",
    "agreement",
    "auroc",
    "best_h",
    "block_ranks",
    "compute_metrics",
    "critical_difference",
    "evaluate",
    "expected_calibration_error",
    "friedman",
    "harmonic",
    "holm",
    "known_and_open_rates",
    "macro_accuracy",
    "oscr",
    "paired_difference",
    "softened_confidence",
    "softening_temperature",
    "struck_out_threshold",
    "summary",
    "validation_metrics",
    "wilcoxon",
]
