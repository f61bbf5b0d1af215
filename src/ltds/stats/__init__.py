"""Statistics of features: prototypes, centroids and covariances learned in training, distances between domains."""

from ltds.stats.centroids import PairCentroids
from ltds.stats.covariance import CovarianceEstimate, OnlineCovariance, PartialSums, covariance_distances
from ltds.stats.frechet import frechet_distance, pairwise_frechet
from ltds.stats.neighbours import neighbour_covariance, semantic_neighbours
from ltds.stats.prototypes import BlendedPrototypes, Prototypes, completed_prototypes
from ltds.stats.statistics import Statistics

__all__ = [
    "BlendedPrototypes",
    "CovarianceEstimate",
    "OnlineCovariance",
    "PairCentroids",
    "PartialSums",
    "Prototypes",
    "Statistics",
    "completed_prototypes",
    "covariance_distances",
    "frechet_distance",
    "neighbour_covariance",
    "pairwise_frechet",
    "semantic_neighbours",
]
