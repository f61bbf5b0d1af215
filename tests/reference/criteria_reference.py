"""Slow twins of softmax equalisation, logit adjustment and MixStyle from their papers: float64 and loops only."""

from __future__ import annotations

import math


def seql(logits, y, counts, share, draws):
    """-z_y + log sum_k w_k exp(z_k), w_k = 1 - b_k [n_k / sum n < lambda] (1 - [k = y])."""
    total = 0.0
    for k, z in enumerate(logits):
        tail = 1 if counts[k] / sum(counts) < share else 0
        total += (1 - draws[k] * tail * (0 if k == y else 1)) * math.exp(z)
    return -logits[y] + math.log(total)


def blended(counts, domain, k):
    """n~_c^d = (1-k) n_c^d + k N_d n_c / N."""
    everything = sum(sum(row) for row in counts)
    out = []
    for c in range(len(counts[0])):
        pooled = sum(row[c] for row in counts)
        out.append((1 - k) * counts[domain][c] + k * sum(counts[domain]) * pooled / everything)
    return out


def adjusted(logits, y, counts, tau):
    """-log softmax(z + tau log pi)_y: pi^tau as weights; a class without a prior leaves the sum, unless tau is 0."""
    prior = [n / sum(counts) for n in counts]
    terms = [
        0.0 if p == 0 and tau else (p**tau if tau else 1.0) * math.exp(z) for p, z in zip(prior, logits, strict=True)
    ]
    return -math.log(terms[y] / sum(terms))


def posthoc(logits, counts, tau):
    """z_c - tau log pi_c; a class without a prior keeps its logit."""
    return [z - tau * math.log(n / sum(counts)) if n else z for z, n in zip(logits, counts, strict=True)]


def style(channel):
    """mu and sigma of one channel, a nested list H x W; the variance over HW - 1."""
    values = [v for row in channel for v in row]
    mu = sum(values) / len(values)
    variance = sum((v - mu) ** 2 for v in values) / (len(values) - 1)
    return mu, math.sqrt(variance + 1e-6)


def mixstyle(x, partners, share):
    """x nested N x C x H x W."""
    out = []
    for i, image in enumerate(x):
        channels = []
        for c, channel in enumerate(image):
            (mu, sigma), (mu_j, sigma_j), kept = style(channel), style(x[partners[i]][c]), share[i]
            new_sigma, new_mu = kept * sigma + (1 - kept) * sigma_j, kept * mu + (1 - kept) * mu_j
            channels.append([[(v - mu) / sigma * new_sigma + new_mu for v in row] for row in channel])
        out.append(channels)
    return out
