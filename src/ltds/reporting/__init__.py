"""Tables, pages and figures from run directories. It never imports a model or torch.

It reads no dataset, except for the small pictures of an evaluation on other data.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ltds.reporting.collection import Collection, collect
    from ltds.reporting.figures.context import FigureContext, ReportFigure
    from ltds.reporting.figures.drawing import Drawing
    from ltds.reporting.write import report, write_report

# Loaded on first use: `ltds methods` reads the paper's numbers and needs neither NumPy nor pydantic.
_PUBLIC = {
    "Collection": "ltds.reporting.collection",
    "Drawing": "ltds.reporting.figures.drawing",
    "FigureContext": "ltds.reporting.figures.context",
    "ReportFigure": "ltds.reporting.figures.context",
    "collect": "ltds.reporting.collection",
    "report": "ltds.reporting.write",
    "write_report": "ltds.reporting.write",
}
__all__ = ["Collection", "Drawing", "FigureContext", "ReportFigure", "collect", "report", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
