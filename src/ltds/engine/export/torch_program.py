"""Export by torch.export: model.pt2, a graph that torch runs without the code of ltds."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.errors import ExportError
from ltds.core.files import write_bytes
from ltds.engine.export.comparison import RunExport
from ltds.engine.export.graph import PredictionGraph, with_constant_flags
from ltds.engine.model import Model

FILE = "model.pt2"


def write(folder: Path, model: Model, inputs: Tensor) -> RunExport:
    """Write the program, for any batch size, and load it again."""
    graph = with_constant_flags(PredictionGraph(model))
    # Two: one might be taken for a constant. Zeros: the file keeps them, and the inputs may be somebody's images.
    example = torch.zeros_like(inputs[:1]).repeat(2, *[1] * (inputs.dim() - 1))
    content = io.BytesIO()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            shapes = ({0: torch.export.Dim("batch", min=1)},)
            recorded = torch.export.export(graph, (example,), dynamic_shapes=shapes)
            _forget_source(recorded)
            torch.export.save(recorded, content)
            program = torch.export.load(io.BytesIO(content.getvalue())).module()
    except Exception as error:  # torch.export fails in many ways, and code of the user may run inside
        first = str(error).strip().splitlines()[:1]
        raise ExportError(
            f"Expected a network that torch.export can record, but got {type(error).__name__}: {''.join(first)}. "
            "Export to onnx or safetensors."
        ) from error
    write_bytes(folder / FILE, content.getvalue())

    @torch.inference_mode()
    def run(batch: Tensor) -> Sequence[NDArray[np.float32]]:
        return [output.float().numpy() for output in program(batch)]

    return run


def _forget_source(program: torch.export.ExportedProgram) -> None:
    """Remove where the code of each operation is: paths of this machine do not belong into a file for others."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            node.meta.pop("stack_trace", None)
