"""What `loss` and `predict` of a method return is checked, and the sentence names the class and what came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.core.errors import TrainingError
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.methods.agg import Agg
from toy import recorded, toy_session


class Odd(Agg):
    """Returns what a test asks for."""

    kind = ""

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        total = F.cross_entropy(self.classifier(self.backbone(batch.images)), batch.labels)
        made: dict[str, Any] = {
            "tensor": total,
            "tuple": (total, {}),
            "None": None,
            "per sample": StepLoss(total.expand(3)),
            "float term": StepLoss(total, {"ce": total.item()}),  # type: ignore[dict-item]
            "vector term": StepLoss(total, {"ce": torch.ones(3)}),
            "integer": StepLoss(torch.tensor(3)),
            "detached": StepLoss(total.detach()),
            "NaN at once": StepLoss(total * float("nan")),
        }
        answer: StepLoss = made.get(self.kind, StepLoss(total))
        return answer

    def predict(self, images: Tensor) -> Prediction:
        features = self.backbone(images)
        logits = self.classifier(features)
        made: dict[str, Any] = {
            "plain logits": logits,
            "one column": Prediction(logits[:, :1], features),
            "integer logits": Prediction(logits.long(), features),
            "maps": Prediction(logits, features[:, :, None, None]),
            "no features": Prediction(logits, None),  # type: ignore[arg-type]
            "NaN logits": Prediction(logits * float("nan"), features),
        }
        answer: Prediction = made.get(self.kind, Prediction(logits, features))
        return answer


class Infinite(Agg):
    """Has a buffer that begins with infinity."""

    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(config, problem)
        self.register_buffer("lowest", torch.full((2,), float("inf")))


MESSAGES = {
    "tensor": r"what Odd\.loss returns to be a ltds\.StepLoss, but got a tensor \(\)\. Return ltds\.StepLoss",
    "tuple": r"what Odd\.loss returns to be a ltds\.StepLoss, but got a tuple",
    "None": r"what Odd\.loss returns to be a ltds\.StepLoss, but got a NoneType",
    "per sample": r"the term 'total' of Odd\.loss to be a tensor with one number, but got a tensor \(3,\)",
    "float term": r"the term 'ce' of Odd\.loss to be a tensor with one number, but got a float",
    "vector term": r"the term 'ce' of Odd\.loss to be a tensor with one number, but got a tensor \(3,\)",
    "integer": r"the total of Odd\.loss to be a function of the weights, but got a constant",
    "detached": r"the total of Odd\.loss to be a function of the weights, .* without detach\(\)",
    "NaN at once": r"finite loss at step 1, but the term 'total' became nan\. No weight has changed yet",
    "plain logits": r"what Odd\.predict returns to be a ltds\.Prediction, but got a Tensor",
    "one column": r"the logits of Odd\.predict to be of shape \(\d+, 6\), but got \(\d+, 1\)",
    "integer logits": r"the logits of Odd\.predict to be a tensor of floating-point numbers, but got torch\.int64",
    "maps": r"the features of Odd\.predict to be of shape \(\d+, D\), but got \(\d+, \d+, 1, 1\)",
    "no features": r"the features of Odd\.predict to be a tensor of floating-point numbers, but got a NoneType",
    "NaN logits": r"the logits of Odd\.predict to be finite, but got NaN or infinity",
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_a_method_returns_is_checked(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(Odd, "kind", kind)
    session = toy_session(toy, "test_own_outputs:Odd")
    with pytest.raises(TrainingError, match=MESSAGES[kind]):
        train(session, recorded(session, tmp_path / "run"))


def test_a_buffer_that_is_not_finite_is_called_a_buffer(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, "test_own_outputs:Infinite")
    with pytest.raises(TrainingError, match=r"finite buffers after step 2, but 'lowest' .* a large number instead of"):
        train(session, recorded(session, tmp_path / "run"))
