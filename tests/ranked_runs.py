"""What tests of whole runs in several ranks share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from ltds.core.runs import RunDirectory
from ltds.evaluation.table import PredictionTable


def settings(ranks: int, **more: Any) -> dict[str, Any]:
    return {"run": {"ranks": ranks, "sync_batchnorm": True, "rank_timeout": 100, "threads": 1, "device": "cpu", **more}}


def assert_close(one: RunDirectory, other: RunDirectory) -> None:
    """The same journal, weights and predictions, up to rounding in float32."""
    for mine, theirs in zip(one.read_journal(), other.read_journal(), strict=True):
        assert (mine["kind"], mine["step"]) == (theirs["kind"], theirs["step"])
        if mine["kind"] == "step":
            assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-3)
    for name, value in load_file(one.last_checkpoint).items():
        np.testing.assert_allclose(value, load_file(other.last_checkpoint)[name], rtol=1e-2, atol=2e-3, err_msg=name)
    for split in ("val", "test"):
        tables = [PredictionTable.load(run.predictions_file(split)) for run in (one, other)]
        np.testing.assert_array_equal(tables[0].rows, tables[1].rows)
        np.testing.assert_allclose(tables[0].logits, tables[1].logits, rtol=1e-2, atol=5e-3)
