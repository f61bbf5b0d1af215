"""Class embeddings for a plan: those of the dataset, or made from the class names where the text extra is installed."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ltds.core.errors import DataError
from ltds.data.manifest import Manifest
from ltds.semantics.pretrained import MINILM

MADE = "minilm.npz"


class FoundEmbeddings(NamedTuple):
    """Where class embeddings come from, in words; "" if there are none, and then `why`. `table`: a file to name."""

    source: str
    table: str = ""
    why: str = ""


def find_embeddings(manifest: Manifest, *, make: bool = True) -> FoundEmbeddings:
    """The dataset's embeddings; with `make`, new ones from the class names, stored in the dataset's folder."""
    folder = manifest.root / "semantics"
    if (folder / "attributes.csv").is_file():
        return FoundEmbeddings("from the dataset's attributes")
    tables = sorted(folder.glob("*.npz"))
    if tables:
        chosen = folder / MADE if folder / MADE in tables else tables[0]
        return FoundEmbeddings(f"'{chosen.name}' of the dataset", str(chosen) if len(tables) > 1 else "")
    if any(not any(letter.isalpha() for letter in name) for name in manifest.classes):
        return FoundEmbeddings("", why="some class names are numbers, which say nothing about a class")
    if find_spec(MINILM) is None or find_spec("transformers") is None:
        return FoundEmbeddings("", why="no text encoder is installed (pip install 'ltds[text]')")
    return _from_names(manifest, folder / MADE) if make else FoundEmbeddings("made from the class names")


def _from_names(manifest: Manifest, file: Path) -> FoundEmbeddings:
    from ltds.semantics.archive import write_embeddings
    from ltds.semantics.nearness import same_vectors
    from ltds.semantics.pretrained import minilm_folder
    from ltds.semantics.text_encoder import from_text_encoder
    from ltds.semantics.texts import name_texts

    try:
        embeddings = from_text_encoder(minilm_folder(), name_texts(manifest.classes))
    except DataError as error:
        return FoundEmbeddings("", why=f"the text encoder cannot be used: {error}")
    same = same_vectors(embeddings)
    if same:  # such as names in a script that the encoder cannot read
        names = ", ".join(same[0][:3])
        return FoundEmbeddings("", why=f"the text encoder cannot tell some class names apart ({names})")
    write_embeddings(file, replace(embeddings, provenance={**embeddings.provenance, "with": "minilm"}))
    return FoundEmbeddings("made from the class names by MiniLM")
