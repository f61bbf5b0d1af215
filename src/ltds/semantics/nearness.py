"""Which classes have similar embeddings: a quick check whether the embeddings make sense."""

from __future__ import annotations

from ltds.semantics.embeddings import ClassEmbeddings

SAME = 1e-6
SHOWN = 3  # similar classes of each


def similar_classes(embeddings: ClassEmbeddings) -> dict[str, list[tuple[str, float]]]:
    """For each class the three most similar others and their cosines, most similar first."""
    cosines = embeddings.vectors @ embeddings.vectors.T
    cosines.fill_diagonal_(-2)
    values, order = cosines.topk(min(SHOWN, len(embeddings.names) - 1), dim=1)
    return {
        name: [(embeddings.names[i], value) for i, value in zip(others, row, strict=True)]
        for name, others, row in zip(embeddings.names, order.tolist(), values.tolist(), strict=True)
    }


def same_vectors(embeddings: ClassEmbeddings) -> list[list[str]]:
    """Groups of classes with the same vector (up to rounding), such as two classes of the same name."""
    same = embeddings.vectors @ embeddings.vectors.T > 1 - SAME
    groups = [row.nonzero().flatten().tolist() for row in same]
    return [[embeddings.names[i] for i in group] for c, group in enumerate(groups) if len(group) > 1 and group[0] == c]
