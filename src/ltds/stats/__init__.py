"""Statistics of features: prototypes and covariances that are learned in training, and distances between domains."""

from ltds.stats.covariance import CovarianceEstimate, OnlineCovariance, PartialSums, covariance_distances
from ltds.stats.frechet import frechet_distance, pairwise_frechet
from ltds.stats.neighbours import neighbour_covariance, semantic_neighbours
from ltds.stats.prototypes import BlendedPrototypes, Prototypes, completed_prototypes

__all__ = [
    "BlendedPrototypes",
    "CovarianceEstimate",
    "OnlineCovariance",
    "PartialSums",
    "Prototypes",
    "completed_prototypes",
    "covariance_distances",
    "frechet_distance",
    "neighbour_covariance",
    "pairwise_frechet",
    "semantic_neighbours",
]
