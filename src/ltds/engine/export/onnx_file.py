"""Export to ONNX: model.onnx, and a script that runs it with numpy, Pillow and onnxruntime only."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.errors import ConfigError, ExportError
from ltds.core.files import write_bytes
from ltds.engine.export.comparison import RunExport
from ltds.engine.export.graph import INPUT, OUTPUTS, PredictionGraph, with_constant_flags
from ltds.engine.model import Model
from ltds.engine.preprocessing import FeaturePreprocessing

FILE = "model.onnx"


def write(folder: Path, model: Model, inputs: Tensor) -> RunExport:
    """Write the graph and the script, and open the graph in onnxruntime."""
    runtime = _require_onnx()
    write_bytes(folder / FILE, _graph(with_constant_flags(PredictionGraph(model)), inputs))
    of_features = isinstance(model.record.preprocessing, FeaturePreprocessing)
    script = "predict_onnx_features.py" if of_features else "predict_onnx.py"
    source = resources.files("ltds.engine.export.standalone").joinpath(script)
    write_bytes(folder / "predict_onnx.py", source.read_bytes())
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(folder / FILE), options, providers=["CPUExecutionProvider"])

    def run(batch: Tensor) -> Sequence[NDArray[np.float32]]:
        return list(session.run(list(OUTPUTS), {INPUT: batch.numpy()}))

    return run


def _require_onnx() -> Any:
    try:
        import onnx  # noqa: F401 (torch writes the file with it)
        import onnxruntime
    except ImportError as error:
        raise ConfigError(
            f"Expected the packages onnx and onnxruntime for this format, but got: {error}. "
            "Install them: pip install 'ltds[onnx]'"
        ) from error
    return onnxruntime


def _graph(graph: PredictionGraph, inputs: Tensor) -> bytes:
    """The ONNX file's content, for any batch size.

    torch's exporter by tracing takes 0.3 s where the one by torch.export takes 14 s for the same network. The latter is
    for networks that the former cannot do.
    """
    problems = []
    example = inputs[:1].repeat(2, *[1] * (inputs.dim() - 1))  # two: one might be taken for a constant
    for export in (_traced, _by_torch_export):
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                return export(graph, example)
        except Exception as error:  # exporters fail in many ways, and other code of the user may run inside
            problems.append(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}")
    raise ExportError(
        f"Expected a network that torch can write as ONNX, but got {problems[0]} (by tracing) and {problems[1]} (by "
        "torch.export). Export to torch-export or safetensors."
    )


def _traced(graph: PredictionGraph, example: Tensor) -> bytes:
    content = io.BytesIO()
    axes = {name: {0: "batch"} for name in (INPUT, *OUTPUTS)}
    torch.onnx.export(
        graph,
        (example,),
        content,  # type: ignore[arg-type]  # it takes open files, too
        input_names=[INPUT],
        output_names=list(OUTPUTS),
        dynamic_axes=axes,
        dynamo=False,
    )
    return content.getvalue()


def _by_torch_export(graph: PredictionGraph, example: Tensor) -> bytes:
    program = torch.onnx.export(
        graph,
        (example,),
        input_names=[INPUT],
        output_names=list(OUTPUTS),
        dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    return bytes(program.model_proto.SerializeToString())
