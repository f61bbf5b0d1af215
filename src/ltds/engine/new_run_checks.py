"""What a new run is refused for. A run that was started before such a rule existed can be resumed and used."""

from __future__ import annotations

from ltds.core.config import parse
from ltds.core.errors import ConfigError, expected
from ltds.core.storable import require_storable
from ltds.data.datasets import find_recipe
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.settings import AugmentationSettings
from ltds.engine.trainable import require_known_validation, require_validation
from ltds.nn.mixstyle import MixStyleSettings, require_learning_stages


def check_new_run(config: RunConfig) -> None:
    """Refuse settings that do not do what they seem to, or that the run could not be read from again."""
    require_storable(config.method, "method.")
    if config.optimizer.backbone_lr_scale == 0:
        raise ConfigError(
            "Expected optimizer.backbone_lr_scale to be above 0, but got 0: the statistics of BatchNorm would still "
            "change, and the inner step of meta-learning would still move the backbone. To keep it as it is, set "
            "backbone.frozen=4; to keep BatchNorm's statistics only, backbone.batchnorm=fixed."
        )
    mixstyle = getattr(config.method, "mixstyle", None)
    if isinstance(mixstyle, MixStyleSettings) and mixstyle.p:
        require_learning_stages(mixstyle, config.backbone.frozen)
    if config.averaging.name == "swad" and config.schedule.keep == "last":
        raise ConfigError(
            "Expected schedule.keep=best with averaging.name=swad, which keeps the mean over a window of steps, but "
            "got 'last'. Leave schedule.keep out, or use averaging.name=ema."
        )
    _require_room_for_a_window(config)


def _require_room_for_a_window(config: RunConfig) -> None:
    """Refuse SWAD in a run that is too short for it: no weights would be averaged."""
    epochs, patience = config.schedule.epochs, config.averaging.start_patience
    if config.averaging.name == "swad" and epochs < patience:
        remedy = (
            "averaging.name=swad needs that many epochs before its window can start, so nothing would be averaged. "
            "Set more schedule.epochs (each with fewer schedule.steps_per_epoch, for a run of the same length), set "
            f"averaging.start_patience={epochs}, or use averaging.name=ema."
        )
        rule = f"at most the number of epochs (schedule.epochs={epochs})"
        raise ConfigError(expected("averaging.start_patience", rule, patience, remedy))


def check_new_run_on(manifest: Manifest, config: RunConfig) -> None:
    """Refuse settings that have no effect on this dataset, or that it lacks images for.

    After a plan, which may add what they need.
    """
    data, frozen = config.data, config.backbone.frozen
    recipe = find_recipe(manifest).settings.get("data", {}).get("augmentation", {})
    usual = (AugmentationSettings(), parse(AugmentationSettings, recipe))
    if frozen and data.cached_variants == 1 and data.augmentation not in usual:
        raise ConfigError(
            f"Expected data.augmentation to be left out with backbone.frozen={frozen} and data.cached_variants=1, but "
            f"got other settings ({data.augmentation}): only the plain image is computed, without augmentation. Set "
            "data.cached_variants=4, for example, for three augmented variants of each training image."
        )
    require_validation(config, manifest)
    if patience := config.schedule.patience:
        purpose = f"schedule.patience={patience}, which ends a phase by their accuracy"
        require_known_validation(config, manifest, purpose, "leave schedule.patience out")
