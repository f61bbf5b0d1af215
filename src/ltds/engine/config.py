"""RunConfig: everything that decides a run, from TOML, recipes and overrides to one frozen, complete record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from ltds.core.config import Fraction, Settings, check, listing, merge, parse
from ltds.core.errors import ConfigError
from ltds.methods.presets import Preset, find_preset
from ltds.nn.backbones import BackboneSettings


class Augmentation(Settings):
    """The training transform: random resized crop, flip, colour jitter (METHODS 0.3)."""

    scale: tuple[PositiveFloat, PositiveFloat] = (0.08, 1.0)
    ratio: tuple[PositiveFloat, PositiveFloat] = (3 / 4, 4 / 3)
    flip: Fraction = 0.5
    brightness: NonNegativeFloat = 0.4
    contrast: NonNegativeFloat = 0.4
    saturation: NonNegativeFloat = 0.4


class DataSettings(Settings):
    """The dataset folder, the domain kept for testing ("" trains on all), image side, images per source and step.

    `cache_size`: shorter side of the decoded images kept on disk, from which crops are taken (0: 8/7 of `size`, so 256
    for 224). A smaller image is kept as it is.
    """

    root: str
    held_out: str = ""
    size: PositiveInt = 224
    cache_size: NonNegativeInt = 0
    batch_size: Annotated[int, Field(ge=2)] = 48  # BatchNorm needs two
    augmentation: Augmentation = Augmentation()

    @property
    def decoded_side(self) -> int:
        return self.cache_size or round(self.size * 8 / 7)


class OptimizerSettings(Settings):
    """SGD on every parameter, BatchNorm and biases too."""

    lr: PositiveFloat = 0.1
    momentum: Fraction = 0.9
    weight_decay: NonNegativeFloat = 1e-4
    nesterov: bool = False

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> OptimizerSettings:
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum above 0")
        return self


class ScheduleSettings(Settings):
    """Length of the run, and the shares of it after which the learning rate is multiplied by `gamma`.

    A method with several phases (ltds methods NAME) counts each of them in shares of `epochs`.
    """

    epochs: PositiveInt = 100
    steps_per_epoch: PositiveInt = 101
    milestones: tuple[Fraction, ...] = (0.4, 0.8)
    gamma: PositiveFloat = 0.1


class AveragingSettings(Settings):
    """Whether to evaluate and keep an average of the weights over the last part of training."""

    name: Literal["none", "ema"] = Field("none", description="none, or ema: an exponential moving average")
    decay: Annotated[float, Field(gt=0, lt=1)] = Field(0.99, description="weight of the old average at each step")
    start: Annotated[float, Field(ge=0, lt=1)] = Field(0.3, description="share of a phase after which averaging starts")

    @model_validator(mode="before")
    @classmethod
    def _text_is_the_name(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data


class RunSettings(Settings):
    """Seed, device, CPU threads (0: torch's choice), and after how many steps to save (0: after each epoch).

    `frechet_every`: after how many epochs to write the distances between source domains to the journal (0: never).
    `tensorboard`: write event files next to log.jsonl.
    """

    seed: NonNegativeInt = 0
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    threads: NonNegativeInt = 0
    checkpoint_every: NonNegativeInt = 0
    frechet_every: NonNegativeInt = 0
    tensorboard: bool = False


class SemanticsSettings(Settings):
    """Class embeddings: a table (.csv, .npz, .npy, .mat), or "" for the dataset's own.

    Its own is semantics/attributes.csv, or else the one .npz file there, which `ltds data embed` makes.
    `key` names the array in a file that holds several.
    """

    table: str = ""
    key: str = ""


class _Common(Settings):
    data: DataSettings
    semantics: SemanticsSettings = SemanticsSettings()
    backbone: BackboneSettings = BackboneSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    averaging: AveragingSettings = AveragingSettings()
    run: RunSettings = RunSettings()


@dataclass(frozen=True)
class RunConfig:
    """A run's settings, complete: the common groups, and the method's name with its own settings."""

    data: DataSettings
    semantics: SemanticsSettings
    backbone: BackboneSettings
    optimizer: OptimizerSettings
    schedule: ScheduleSettings
    averaging: AveragingSettings
    run: RunSettings
    method_name: str
    method: Settings

    @property
    def preset(self) -> Preset:
        return find_preset(self.method_name)

    def to_dict(self) -> dict[str, Any]:
        """Tables for TOML, from which `resolve` makes the same config again."""
        groups = {name: getattr(self, name).model_dump(mode="json") for name in _Common.model_fields}
        return {"method": {"name": self.method_name, **self.method.model_dump(mode="json")}, **groups}


# Settings suited to a dataset, by the manifest's name; used where the user says nothing.
# The defaults above are the paper's for AWA2-LTS (supp. table of hyper-parameters, METHODS 0.3).
RECIPES: dict[str, dict[str, Any]] = {
    "bestiary": {
        "data": {"size": 32, "batch_size": 32, "augmentation": {"scale": [0.5, 1.0]}},
        "backbone": {"stem": "medium", "width": 24},
        # Chosen on source validation (dc and ltds, 'anime' held out, seed 0) among lr .05, .1, .2 and milestones
        # (.4, .8), (.6, .9): docs/bestiary.md has the numbers.
        "optimizer": {"lr": 0.2},
        "schedule": {"epochs": 30, "steps_per_epoch": 20, "milestones": [0.6, 0.9]},
    }
}

# The same for a method that uses class embeddings.
SEMANTIC_RECIPES: dict[str, dict[str, Any]] = {
    # Chosen on source validation (ltds, 'plain' and 'woodblock' held out, seed 0) among 1/30, .1, .2: docs/bestiary.md.
    "bestiary": {"temperature": 0.2}
}


def resolve(*layers: Mapping[str, Any], dataset: str = "") -> RunConfig:
    """The config that these tables make, later ones over earlier ones, over the recipe of the dataset.

    Every mistake is reported at once: in the common groups, in the method's name and in its settings.
    """
    given = merge({"data": {}}, *layers)
    recipe = dict(RECIPES.get(dataset, {}))
    if isinstance(given.get("backbone"), Mapping) and "name" in given["backbone"]:
        recipe.pop("backbone", None)  # it suits another network than the one that was asked for
    tables = merge(recipe, given)
    method = tables.pop("method", {})
    if not isinstance(method, Mapping):
        raise ConfigError(f"Expected [method] to be a group of settings, but got {method!r}. Write --method NAME.")
    method = dict(method)
    name = str(method.pop("name", "agg"))
    common, problems = check(_Common, tables)
    settings = None
    try:
        preset = find_preset(name)
    except ConfigError as error:
        problems.append(str(error))
    else:
        method = merge(_kept(preset.settings, method), method)
        settings, more = check(preset.method.Config, method, "method.")
        problems += more
        if settings is not None and preset.method.uses_embeddings(settings):
            known = preset.method.Config.model_fields
            suited = {name: value for name, value in SEMANTIC_RECIPES.get(dataset, {}).items() if name in known}
            settings = parse(preset.method.Config, merge(suited, method))
    if common is None or settings is None:
        raise ConfigError(listing(problems))
    return RunConfig(
        **{group: getattr(common, group) for group in _Common.model_fields}, method_name=name, method=settings
    )


def _kept(preset: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The preset's settings, without those of a group that is given another name: they suit the old one."""

    def renamed(key: str) -> bool:
        below, above = preset[key], given.get(key)
        if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
            return False
        return above.get("name") not in (None, below.get("name"))

    return {key: value for key, value in preset.items() if not renamed(key)}
