"""ltds: classification when classes are long-tailed, domains shift and some classes were never seen."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0.dev0"

# Public names and where they live; loaded on first use, so that `import ltds` and `ltds --help` stay quick.
_PUBLIC = {
    "Batch": "ltds.core.types",
    "ClassEmbeddings": "ltds.semantics.embeddings",
    "Manifest": "ltds.data.manifest",
    "Method": "ltds.methods.base",
    "PRESETS": "ltds.methods.presets",
    "Prediction": "ltds.core.types",
    "RunDirectory": "ltds.core.runs",
    "StepLoss": "ltds.core.types",
    "Task": "ltds.core.task",
    "create_run": "ltds.engine.start",
    "evaluate": "ltds.evaluation.protocol",
    "resolve": "ltds.engine.config",
    "resume_run": "ltds.engine.start",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ltds' has no attribute '{name}'")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
