"""Comparing methods over few runs: intervals, paired tests, ranks, and agreement of two tables. NumPy only."""

from ltds.evaluation.significance.intervals import (
    DRAWS,
    LEVEL,
    PairedDifference,
    SeedSummary,
    coverage_limit,
    paired_difference,
    summary,
)
from ltds.evaluation.significance.rank_agreement import Agreement, Swap, agreement, descending_ranks, kendall, spearman
from ltds.evaluation.significance.ranks import (
    block_ranks,
    chi_squared_tail,
    cliques,
    critical_difference,
    friedman,
    studentized_range,
)
from ltds.evaluation.significance.signed_rank import holm, midranks, wilcoxon

__all__ = [
    "DRAWS",
    "LEVEL",
    "Agreement",
    "PairedDifference",
    "SeedSummary",
    "Swap",
    "agreement",
    "block_ranks",
    "chi_squared_tail",
    "cliques",
    "coverage_limit",
    "critical_difference",
    "descending_ranks",
    "friedman",
    "holm",
    "kendall",
    "midranks",
    "paired_difference",
    "spearman",
    "studentized_range",
    "summary",
    "wilcoxon",
]
