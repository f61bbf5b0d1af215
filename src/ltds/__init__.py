"""ltds: image classification when classes are long-tailed, domains shift and some classes were never seen.

import ltds

run = ltds.train("bestiary", method="ltds", held_out="woodblock", out="runs/first")
model = ltds.load_model(run.path)
model.predict(["a.png", "b.png"])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ltds.api.benchmark import benchmark as benchmark
    from ltds.api.evaluate import evaluate as evaluate
    from ltds.api.train import train as train
    from ltds.core.bars import Bars as Bars
    from ltds.core.config import Settings as Settings
    from ltds.core.runs import RunDirectory as RunDirectory
    from ltds.core.task import Task as Task
    from ltds.core.types import Batch as Batch
    from ltds.core.types import Clock as Clock
    from ltds.core.types import Prediction as Prediction
    from ltds.core.types import StepLoss as StepLoss
    from ltds.data.datasets.by_name import build_data as build_data
    from ltds.data.features import write_features as write_features
    from ltds.data.manifest import Manifest as Manifest
    from ltds.data.without_domain import without_domain as without_domain
    from ltds.engine.export import ExportResult as ExportResult
    from ltds.engine.extraction import extract_features as extract_features
    from ltds.engine.load import load_model as load_model
    from ltds.engine.model import ImagePrediction as ImagePrediction
    from ltds.engine.model import Model as Model
    from ltds.engine.predict_files import FilePredictions as FilePredictions
    from ltds.engine.training_index import NearestImage as NearestImage
    from ltds.engine.training_index import TrainingIndex as TrainingIndex
    from ltds.engine.use import export as export
    from ltds.engine.use import predict as predict
    from ltds.methods.base import Method as Method
    from ltds.methods.base import Phase as Phase
    from ltds.methods.problem import Problem as Problem
    from ltds.methods.registry import list_methods as list_methods
    from ltds.planning.check.report import DataCheck as DataCheck
    from ltds.planning.check.run import check as check
    from ltds.reporting.write import report as report
    from ltds.semantics.archive import write_embeddings as write_embeddings
    from ltds.semantics.embeddings import ClassEmbeddings as ClassEmbeddings
    from ltds.serving.server import serve as serve

__version__ = "0.1.0"

# Public names and their modules. They are imported on first use, so that `import ltds` stays quick;
# the imports above tell type checkers the same.
_MODULES = {
    "Bars": "ltds.core.bars",
    "Batch": "ltds.core.types",
    "ClassEmbeddings": "ltds.semantics.embeddings",
    "Clock": "ltds.core.types",
    "DataCheck": "ltds.planning.check.report",
    "ExportResult": "ltds.engine.export",
    "FilePredictions": "ltds.engine.predict_files",
    "ImagePrediction": "ltds.engine.model",
    "Manifest": "ltds.data.manifest",
    "Method": "ltds.methods.base",
    "Model": "ltds.engine.model",
    "NearestImage": "ltds.engine.training_index",
    "Phase": "ltds.methods.base",
    "Prediction": "ltds.core.types",
    "Problem": "ltds.methods.problem",
    "RunDirectory": "ltds.core.runs",
    "Settings": "ltds.core.config",
    "StepLoss": "ltds.core.types",
    "Task": "ltds.core.task",
    "TrainingIndex": "ltds.engine.training_index",
    "benchmark": "ltds.api.benchmark",
    "build_data": "ltds.data.datasets.by_name",
    "check": "ltds.planning.check.run",
    "evaluate": "ltds.api.evaluate",
    "export": "ltds.engine.use",
    "extract_features": "ltds.engine.extraction",
    "list_methods": "ltds.methods.registry",
    "load_model": "ltds.engine.load",
    "predict": "ltds.engine.use",
    "report": "ltds.reporting.write",
    "serve": "ltds.serving.server",
    "train": "ltds.api.train",
    "without_domain": "ltds.data.without_domain",
    "write_embeddings": "ltds.semantics.archive",
    "write_features": "ltds.data.features",
}
__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'ltds' has no attribute '{name}'")
    importlib.import_module("ltds.core.processor").set_environment()  # before torch is loaded
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
