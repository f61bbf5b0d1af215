"""Names for images that a model calls "unknown": the open class whose description is nearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ltds.core.errors import ConfigError
from ltds.evaluation.naming import nearest_names

if TYPE_CHECKING:
    from ltds.engine.model import ImagePrediction, Model


class UnknownNamer:
    """Gives unknown images the name of an open class, by the class embeddings that the model was trained with."""

    def __init__(self, model: Model) -> None:
        embeddings = model.stored.embeddings
        known = set(embeddings.names) if embeddings is not None else set()
        open_names = [model.classes[c] for c in model.task.open_classes]
        self.names = [name for name in open_names if name in known]
        if embeddings is None or not self.names or not _projects(model):
            raise ConfigError(
                "Expected a model that maps images to class embeddings and knows those of open classes, to name "
                f"unknown images, but got one of method '{model.stored.config.method_name}', with "
                f"{len(open_names)} open classes, {len(self.names)} of which have an embedding in the model. Train "
                "'ltds', or 'agg-embeddings', and hold out a domain with classes that no other domain has."
            )
        self.model = model
        index = {name: i for i, name in enumerate(embeddings.names)}
        self.vectors = embeddings.vectors[[index[name] for name in self.names]].numpy()

    def __call__(self, answers: Sequence[ImagePrediction], features: NDArray[np.float32]) -> list[ImagePrediction]:
        """The answers for images with these features (N,D), those that are unknown with a name."""
        if not len(answers):
            return []
        with torch.inference_mode():
            projected = self.model.method.project(torch.from_numpy(features).to(self.model.device))
        assert projected is not None
        names = nearest_names(projected.float().cpu().numpy(), self.vectors)
        return [
            replace(answer, name=self.names[name]) if answer.unknown else answer
            for answer, name in zip(answers, names, strict=True)
        ]


def _projects(model: Model) -> bool:
    width = model.features([]).shape[1]
    with torch.inference_mode():
        return model.method.project(torch.zeros(2, width, device=model.device)) is not None
