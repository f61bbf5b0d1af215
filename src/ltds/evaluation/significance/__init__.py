"""Comparing methods over few runs: intervals, paired tests, ranks, and agreement of two tables. NumPy only."""

from ltds.evaluation.significance.intervals import (
    LEVEL,
    PairedDifference,
    SeedSummary,
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
from ltds.evaluation.significance.student import t_bound

__all__ = [
    "LEVEL",
    "Agreement",
    "PairedDifference",
    "SeedSummary",
    "Swap",
    "agreement",
    "block_ranks",
    "chi_squared_tail",
    "cliques",
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
    "t_bound",
    "wilcoxon",
]
