"""Alignment of domains when classes are long-tailed: pairs of domain and class (BoDA), and moments of whole domains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

_EXACT = "donot_use_mm_for_euclid_dist"  # from differences: |z|^2 - 2 z.m + |m|^2 is inaccurate for small distances


def balanced_alignment_loss(
    features: Tensor,
    labels: Tensor,
    domains: Tensor,
    centroids: Tensor,
    centroid_labels: Tensor,
    centroid_domains: Tensor,
    counts: Tensor,
    *,
    nu: float = 0.5,
    temperature: float = 1.0,
) -> Tensor:
    """The scalar -(1/P) sum over samples i and their positives m of [l_im - log sum over other pairs m' of exp l_im'].

    l_im = -|mu_m - z_i| / N_i (N_m / N_i)^nu / T: features z (N,D) of labels (N,) and domains (N,); centroids mu (M,D),
    the mean features of the (domain, class) pairs that have training images, with centroid_labels (M,) and
    centroid_domains (M,). N_i and N_m are the training images of the sample's pair and of the centroid's: counts (K,C).
    Positives are the centroids of the same class in other domains, P in all. The sample's own centroid takes no part.
    0 if there are no positives. Without the counts, rare pairs would be pulled to where frequent ones are (Yang et al.,
    ECCV 2022, Eq. 4).
    """
    same_class = labels[:, None] == centroid_labels
    same_domain = domains[:, None] == centroid_domains
    counts = counts.to(features.dtype)
    own, others = counts[domains, labels][:, None], counts[centroid_domains, centroid_labels]
    distances = torch.cdist(features, centroids.to(features.dtype), compute_mode=_EXACT)
    logits = -distances / own * (others / own) ** nu / temperature
    logits = logits.masked_fill(same_class & same_domain, -torch.inf)
    positive = same_class & ~same_domain
    log_p = (logits - logits.logsumexp(dim=1, keepdim=True)).masked_fill(~positive, 0)
    return -log_p.sum() / positive.sum().clamp(min=1)


def moment_alignment_loss(features: Sequence[Tensor]) -> Tensor:
    """The scalar mean over pairs of domains of mean_a (mu_a - mu'_a)^2 + mean_ab (Sigma_ab - Sigma'_ab)^2.

    features: f(x) of each domain's images (N_d,D), two domains or more; mu its mean, Sigma its unbiased covariance.
    With a single image of a domain there is no covariance, and its pairs compare means only.
    """
    means = [x.mean(dim=0) for x in features]
    roots = [(x - mean) / math.sqrt(max(1, len(x) - 1)) for x, mean in zip(features, means, strict=True)]
    pairs = []
    for a, b in combinations(range(len(features)), 2):
        difference = (means[a] - means[b]).square().mean()
        if len(roots[a]) > 1 and len(roots[b]) > 1:
            difference = difference + _distance_of_products(roots[a], roots[b])
        pairs.append(difference)
    return torch.stack(pairs).mean()


def _distance_of_products(a: Tensor, b: Tensor) -> Tensor:
    """The mean square of A^T A - B^T B, for rows A (N,D) and B (M,D).

    |A^T A|^2 = |A A^T|^2, and so on: products of samples, which are few, instead of features, which are many.
    """
    square = (a @ a.T).square().sum() + (b @ b.T).square().sum() - 2 * (a @ b.T).square().sum()
    return square / a.shape[1] ** 2
