"""A model as a graph that other programs can run: from prepared inputs to logits, probabilities and features."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ltds.core.errors import ExportError
from ltds.engine.model import Model
from ltds.engine.preprocessing import FeaturePreprocessing, FrozenPreprocessing, ImagePreprocessing
from ltds.nn.precision import compute_in

INPUT = "inputs"
OUTPUTS = ("logits", "probabilities", "features")


class PredictionGraph(nn.Module):
    """Inputs (N,...) as `graph_preprocessing` makes them -> logits (N,C), probabilities (N,C), features (N,D).

    Probabilities are over the known classes, as in `Model.predict`; an open class has probability 0.
    """

    open_mask: Tensor  # (C,)

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.method = model.method
        preprocessing = model.record.preprocessing
        self.frozen = FrozenStage(preprocessing) if isinstance(preprocessing, FrozenPreprocessing) else nn.Identity()
        opened = torch.zeros(len(model.classes), dtype=torch.bool)
        opened[list(model.task.open_classes)] = True
        self.register_buffer("open_mask", opened, persistent=False)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        prediction = self.method.predict(self.frozen(inputs))
        known = prediction.logits.masked_fill(self.open_mask, float("-inf"))
        return prediction.logits, known.softmax(dim=1), prediction.features


class FrozenStage(nn.Module):
    """Images (N,3,S,S) to what the part that learned was trained on, rounded to half precision as there."""

    def __init__(self, preprocessing: FrozenPreprocessing) -> None:
        super().__init__()
        self.network = preprocessing.network.module
        self.scale = preprocessing.features.scale if preprocessing.features else 1.0

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.network(images)
        return outputs.float().half().float() / self.scale


def graph_preprocessing(model: Model) -> ImagePreprocessing | FeaturePreprocessing:
    """What prepares the inputs of the graph: the model's preprocessing without the network that the graph contains."""
    match model.record.preprocessing:
        case FrozenPreprocessing(images=images):
            return images
        case ImagePreprocessing() | FeaturePreprocessing() as preprocessing:
            return preprocessing
        case other:
            raise ExportError(f"Expected a model of images or features, but it takes the output of {type(other)}.")


def cpu_copy(model: Model) -> Model:
    """A copy of the model on the CPU, in float32, without gradients."""
    clone = copy.deepcopy(model)
    clone.method.cpu().requires_grad_(False)
    compute_in("float32", clone.method)
    clone.device = torch.device("cpu")
    if isinstance(clone.record.preprocessing, FrozenPreprocessing):
        clone.record.preprocessing.network.to(clone.device)
    return clone


def with_constant_flags(graph: PredictionGraph) -> PredictionGraph:
    """A copy with a bool in place of each buffer of one boolean.

    Some methods predict in another way once such a flag is set (`crt`, `daml`). A graph cannot branch on a tensor, and
    after training the flag never changes.
    """
    constant = copy.deepcopy(graph)
    for module in constant.modules():
        for name, value in list(module.named_buffers(recurse=False)):
            if value.dtype is torch.bool and value.dim() == 0:
                delattr(module, name)
                setattr(module, name, bool(value))
    return constant
