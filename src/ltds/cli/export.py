"""`ltds export`: a model as files for other programs and other machines."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ltds.cli.screen import SCREEN

if TYPE_CHECKING:
    from ltds.engine.export import ExportFormat


def export(
    model: Annotated[Path, typer.Argument(help="Run directory, or folder that this command wrote as safetensors.")],
    out: Annotated[Path, typer.Option(help="New folder to write.")],
    to: Annotated[
        str,
        typer.Option(
            help="safetensors (for ltds, on any machine, without data and run), onnx (for any program) or torch-export "
            "(for torch without ltds)."
        ),
    ] = "safetensors",
    check: Annotated[
        list[Path] | None,
        typer.Option(help="Image, or folder of images, to compare on (default: random inputs). May be repeated."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Score below which the exported model says 'unknown' (default: the model's own)."),
    ] = None,
    nearest: Annotated[
        bool,
        typer.Option(
            "--nearest",
            help="safetensors: add what 'ltds predict --nearest' needs: features, names and small copies of all "
            "training images.",
        ),
    ] = False,
    trust: Annotated[
        list[str] | None, typer.Option(help="Module outside ltds that the model needs and that may be imported.")
    ] = None,
) -> None:
    """Write a model to a folder, with its classes, preprocessing and threshold, and a model card (README.md).

    Example: ltds export runs/first --to onnx --out models/first --check photos

    The export is run and compared with the model before the folder appears.
    """
    from ltds.core.runs import RunDirectory
    from ltds.engine.model_record import takes_vectors
    from ltds.engine.use import export as export_model

    format_name = cast("ExportFormat", to)
    done = export_model(
        model,
        out,
        to=format_name,
        check=check or [],
        threshold=threshold,
        nearest=nearest,
        trust=trust or (),
        progress=SCREEN,
    )
    folder = shlex.quote(str(done.folder))
    SCREEN.say(f"Wrote {folder}: {', '.join(done.files)}")
    SCREEN.say(f"Compared with the model on {done.checked_on}: largest difference {done.difference:.2g}")
    if nearest:
        SCREEN.say("It contains small copies of all training images: pass it on only to those who may see them.")
    vectors = takes_vectors(RunDirectory(done.folder))
    if to == "safetensors" and vectors:
        SCREEN.say(f"Use it in Python: ltds.load_model({str(done.folder)!r}).predict(VECTORS)")
    elif to == "safetensors":
        SCREEN.say(f"Use it: ltds predict {folder} IMAGES")
    elif to == "onnx":
        script = shlex.quote(str(done.folder / "predict_onnx.py"))
        SCREEN.say(f"Use it without ltds: python {script} {'VECTORS.npy' if vectors else 'IMAGES'}")
