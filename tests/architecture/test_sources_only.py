"""Choices for a style of Bestiary are made without any of its images, and without test images of the benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from repository import benchmark_module

import ltds

SOURCES_ONLY = benchmark_module("sources_only")
SETTINGS = {"size": 16, "n_max": 12, "n_min": 4, "val_per_pair": 1, "test_per_pair": 2}


def test_without_a_style(tmp_path: Path) -> None:
    whole = ltds.build_data("bestiary", out=tmp_path / "all", settings=SETTINGS)
    inner = SOURCES_ONLY.without_style(whole, "plain", first=1)
    images = [Path(path).parts[1:] for path in inner.paths]  # split, style, kind, file
    assert [inner.domains[i] for i in inner.domain_ids] == [style for _, style, _, _ in images]
    assert [inner.classes[i] for i in inner.labels] == [kind for _, _, kind, _ in images]
    assert inner.domains == ("anime", "pastel", "impasto", "woodblock")
    assert {file for split, _, _, file in images if split == "test"} == {"0001.png"}
    only_plain = {whole.classes[i] for i in whole.task("plain").open_classes}
    assert set(whole.classes) - set(inner.classes) == only_plain
    for split in ("train", "val"):
        kept = sum(not {"plain", *only_plain} & set(Path(whole.paths[row]).parts) for row in whole.rows(split))
        assert len(inner.rows(split)) == kept > 0
    assert (np.bincount(inner.labels[inner.rows("test")]) == len(inner.domains)).all()
