"""The table of kinds: distinct, varied, and told in sentences."""

from __future__ import annotations

import numpy as np

from ltds.bestiary import KINDS, NAMES, attribute_table, describe
from ltds.bestiary.kinds import PALETTE


def _nearest() -> dict[str, str]:
    table, _ = attribute_table()
    distance = ((table[:, None] - table[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    return {NAMES[i]: NAMES[j] for i, j in enumerate(distance.argmin(axis=1))}


def test_there_are_fifty_kinds_with_unique_names() -> None:
    assert len(KINDS) == 50
    assert len(set(NAMES)) == 50


def test_attributes_tell_every_two_kinds_apart() -> None:
    table, names = attribute_table()
    assert table.shape == (50, len(names))
    assert len(set(names)) == len(names)
    distance = np.abs(table[:, None] - table[None]).sum(-1) + 9 * np.eye(50)
    assert distance.min() > 0.2


def test_every_attribute_is_a_share_and_varies() -> None:
    table, names = attribute_table()
    assert table.min() == 0.0
    assert table.max() == 1.0
    assert [name for name, column in zip(names, table.T, strict=True) if np.ptp(column) == 0] == []


def test_each_choice_has_one_column_set() -> None:
    table, names = attribute_table()
    for choice in ("ears", "horns", "tail", "wings", "pattern"):
        columns = [i for i, name in enumerate(names) if name.startswith(f"{choice}_")]
        assert (table[:, columns].sum(axis=1) == 1).all(), choice


def test_colours_are_those_of_the_palette() -> None:
    table, names = attribute_table()
    red = table[:, names.index("main_red")]
    assert np.allclose(red * 255, [PALETTE[kind.main][0] for kind in KINDS], atol=0.2)


def test_relatives_are_each_others_nearest() -> None:
    nearest = _nearest()
    for a, b in (("leopard", "cheetah"), ("wolf", "fox"), ("stork", "flamingo"), ("mammoth", "elephant")):
        assert nearest[a] == b
    assert nearest["cheetah"] == "leopard"
    assert nearest["porcupine"] == "hedgehog"
    assert nearest["moose"] == "deer"


def test_rare_kinds_have_common_relatives() -> None:
    rank = {name: i for i, name in enumerate(NAMES)}
    pairs = {"cheetah": "tiger", "moose": "deer", "mammoth": "elephant", "zebra": "horse", "porcupine": "hedgehog"}
    for rare, common in pairs.items():
        assert rank[common] < 25 <= rank[rare], (rare, common)


def test_sentences_are_unique_and_name_what_is_seen() -> None:
    sentences = [describe(kind) for kind in KINDS]
    assert len(set(sentences)) == 50
    assert len({s.split(" is ", 1)[1] for s in sentences}) == 50, "two kinds differ only in their name"
    assert sentences[NAMES.index("tiger")] == (
        "A tiger is a large, long-bodied orange animal with four middling thick legs, round ears, black stripes, "
        "a white belly and a long tail."
    )
    owl = sentences[NAMES.index("owl")]
    assert owl.startswith("An owl is a small")
    assert " a umber" not in " ".join(sentences)
