"""`ltds serve`: a local page to drop images on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN


def serve(
    model: Annotated[Path, typer.Argument(help="Run directory, or folder that 'ltds export' wrote as safetensors.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen at. With 0.0.0.0, everyone in your network can use the model.")
    ] = "127.0.0.1",
    top: Annotated[int, typer.Option(min=1, help="How many of the most probable classes to show.")] = 5,
    threshold: Annotated[
        float | None, typer.Option(help="Score below which to say 'unknown' (default: the model's own).")
    ] = None,
    nearest: Annotated[
        int | None,
        typer.Option(min=0, help="How many of the most similar training images to show (default: 3 where possible)."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Dataset that the model was trained on, if it was moved after training.")
    ] = None,
    max_mb: Annotated[float, typer.Option(help="Largest image file that is accepted, in megabytes.")] = 20,
    max_megapixels: Annotated[float, typer.Option(help="Largest image that is accepted, in million pixels.")] = 50,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Name by which browsers may reach this server, in addition to localhost and IP addresses."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    trust: Annotated[
        list[str] | None, typer.Option(help="Module outside ltds that the model needs and that may be imported.")
    ] = None,
) -> None:
    """Open a page on this machine: drop images on it to see their classes and the most similar training images.

    Example: ltds serve runs/first --port 8080

    Nothing leaves this machine, nothing that you drop is stored, and no file of this machine can be read through it.
    """
    from ltds.serving.server import serve as serve_model

    serve_model(
        model,
        host=host,
        port=port,
        top=top,
        threshold=threshold,
        nearest=nearest,
        data=data,
        max_mb=max_mb,
        max_megapixels=max_megapixels,
        allow_host=allow_host or (),
        device=device,
        trust=trust or (),
        progress=SCREEN,
        say=SCREEN.say,
    )
