"""Class embeddings in a .npz file, with their names and provenance; reading it runs no code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ltds.core.array_files import read_provenance
from ltds.core.errors import DataError, expected
from ltds.core.files import atomic
from ltds.semantics.embeddings import ClassEmbeddings


def write_embeddings(file: str | Path, embeddings: ClassEmbeddings) -> None:
    """Write class embeddings of your own to a file, which the setting semantics.table can name.

        ltds.write_embeddings("mine.npz", ltds.ClassEmbeddings(("cat", "dog"), vectors))

    `ClassEmbeddings.from_table` reads it back.

    Args:
        file: The file, named *.npz. It gets the arrays `vectors` (C,S), `class_names` and `provenance` (JSON).
        embeddings: The class names and their vectors.
    """
    file = Path(file)
    if file.suffix != ".npz":
        raise DataError(expected(f"'{file}'", "named .npz", f"'{file.suffix}'", "Choose a name that ends in .npz."))
    provenance = json.dumps(dict(embeddings.provenance), ensure_ascii=False)
    with atomic(file) as stream:
        np.savez(
            stream,
            vectors=embeddings.vectors.numpy(),
            class_names=np.array(embeddings.names),
            provenance=np.array(provenance),
        )


def replace_if_damaged(file: Path, embeddings: ClassEmbeddings) -> None:
    """Write the embeddings again where the file is gone or cannot be read; one with other content stays."""
    try:
        ClassEmbeddings.from_table(file)
        read_provenance(file)
    except (OSError, ValueError, LookupError, RecursionError):
        write_embeddings(file, embeddings)
