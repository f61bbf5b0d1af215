"""`ltds data features`: what a pretrained network sees in the images of a dataset, once and for all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN


def features(
    data: Annotated[str, typer.Argument(help="Dataset: 'bestiary' (built in) or a dataset folder.")],
    backbone: Annotated[str, typer.Option(help="Pretrained network.")] = "efficientnet-lite0",
    weights: Annotated[str, typer.Option(help="File of its weights (default for efficientnet-lite: ImageNet's).")] = "",
    size: Annotated[int, typer.Option(help="Side of the images that the network sees, in pixels.", min=16)] = 224,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write (default: DATA/features/BACKBONE-SIZE.npz, with a checksum for weights of your own)."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Compute one feature vector for each image with a pretrained network. Training on these vectors takes seconds.

    Example: ltds data features data/pacs-odg --backbone efficientnet-lite0

    Then: ltds train data/pacs-odg --features FILE --method ltds --held-out sketch --out runs/sketch
    """
    from ltds.engine.extraction import extract_features

    if out is not None:
        _refuse_to_replace(out)
    file = extract_features(
        data, backbone=backbone, weights=weights, size=size, out=out, device=device, progress=SCREEN
    )
    print(file)


def _refuse_to_replace(out: Path) -> None:
    """Raise unless the features and the weights beside them are new, or were written by this command."""
    from ltds.core.array_files import provenance_in
    from ltds.core.files import refuse_to_replace
    from ltds.engine.frozen import weights_beside

    refuse_to_replace(out, "features of ltds data features", lambda file: "network" in provenance_in(file))
    refuse_to_replace(weights_beside(out), f"the weights for '{out}'", lambda weights: "network" in provenance_in(out))
