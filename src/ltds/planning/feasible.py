"""Which runs and estimates a dataset allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ltds.core.errors import DataError
from ltds.data.manifest import Manifest
from ltds.engine.trainable import trainable_task
from ltds.planning.facts import test_only_domains


def require_trainable(manifest: Manifest, held_out: str | None, estimated: Sequence[str] = ()) -> None:
    """Refuse what cannot be trained to its end: one run, or with `estimated` domains those and the final model."""
    if not estimated:
        trainable_task(manifest, held_out)
        return
    _require_final(manifest, estimated[0])
    for domain in estimated:
        trainable_task(manifest, domain)


def way_to_train(manifest: Manifest) -> dict[str, str] | None:
    """Arguments for the most informative training that this dataset allows; None if it allows none."""
    return next((arguments for arguments in _ways(manifest) if _allows(manifest, arguments)), None)


def _require_final(manifest: Manifest, estimated: str) -> None:
    """The final model of an estimate trains on every domain, and is tested on other images of the same domains.

    `estimated`: a domain that could be held out instead.
    """
    untrained = test_only_domains(manifest)
    if len(untrained) == 1:
        raise DataError(
            f"Expected every domain of '{manifest.name}' to have training images, because the final model of an "
            f"estimate trains on all of them, but '{untrained[0]}' has none. Hold out '{untrained[0]}' without an "
            "estimate: that run trains on all other domains.",
            arguments=["estimate=none", f"held_out={untrained[0]}"],
        )
    if manifest.whole_held_out and not len(manifest.test_rows(None)):
        raise DataError(
            f"Expected '{manifest.name}' to have test images, on which the final model of an estimate is tested, but "
            f"all of its images are for training and validation. Hold out a domain, such as '{estimated}', without an "
            "estimate, or add images.",
            arguments=["estimate=none", f"held_out={estimated}"],
        )
    trainable_task(manifest, None)


def _ways(manifest: Manifest) -> Iterator[dict[str, str]]:
    if len(manifest.domains) > 1:
        yield {"estimate": "full"}
        yield from ({"held_out": domain} for domain in manifest.domains)
    yield {}


def _allows(manifest: Manifest, arguments: dict[str, str]) -> bool:
    try:
        require_trainable(manifest, arguments.get("held_out"), manifest.domains if "estimate" in arguments else ())
    except DataError:
        return False
    return True
