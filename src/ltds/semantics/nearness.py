"""Nearness: which classes the embeddings put side by side, to see at a glance whether they make sense."""

from __future__ import annotations

from ltds.semantics.embeddings import ClassEmbeddings

SAME = 1e-6


def nearest_classes(embeddings: ClassEmbeddings, among: int = 3) -> dict[str, list[tuple[str, float]]]:
    """For each class the `among` nearest others and their cosines, nearest first."""
    cosines = embeddings.vectors @ embeddings.vectors.T
    cosines.fill_diagonal_(-2)
    values, order = cosines.topk(min(among, len(embeddings.names) - 1), dim=1)
    return {
        name: [(embeddings.names[i], value) for i, value in zip(others, row, strict=True)]
        for name, others, row in zip(embeddings.names, order.tolist(), values.tolist(), strict=True)
    }


def same_vectors(embeddings: ClassEmbeddings) -> list[list[str]]:
    """Groups of classes with one vector (up to the rounding of another batch), such as two of one name."""
    same = embeddings.vectors @ embeddings.vectors.T > 1 - SAME
    groups = [row.nonzero().flatten().tolist() for row in same]
    return [[embeddings.names[i] for i in group] for c, group in enumerate(groups) if len(group) > 1 and group[0] == c]
