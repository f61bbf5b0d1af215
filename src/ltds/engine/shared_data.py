"""What runs on the same images share on disk: decoded images, and the outputs of frozen stages."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ltds.core.errors import DataError
from ltds.core.progress import SILENT, Progress
from ltds.data.cache import ImageCache
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.device import choose_device
from ltds.engine.extraction import warn_of_changed_images
from ltds.engine.frozen import activation_inputs


def shared_data_key(config: RunConfig) -> str:
    """Equal for runs that share all of it."""
    data, backbone = config.data, config.backbone
    if data.features:
        return f"{data.root} {data.features}"
    if backbone.frozen:
        settings = data.model_dump_json(exclude={"held_out", "batch_size"})
        return f"{settings} {backbone.model_dump_json()}"
    return f"{data.root} {data.decoded_side}"


def prepare_shared_data(config: RunConfig, manifest: Manifest, progress: Progress = SILENT) -> None:
    """Make what is not there yet, so that runs that start at the same time need not do it all at once.

    Precomputed features are there; if their images have changed since, a warning says so.
    """
    if config.data.features:
        with suppress(DataError):  # a file that cannot be used: each run says so
            warn_of_changed_images(Path(config.data.features), manifest)
        return
    if config.backbone.frozen:
        device = choose_device(config.run.device)
        activation_inputs(config.data, config.backbone, manifest, device, progress)
    else:
        ImageCache.open(manifest, config.data.decoded_side, progress=progress)
