"""The settings that every method shares: data, semantics, optimizer, schedule, averaging, run.

The defaults are the paper's for AWA2-LTS (supplement, table of hyper-parameters).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from ltds.core.config import Fraction, Settings, ShareBelowOne, refuse_idle
from ltds.nn.backbones import BackboneSettings

AskedPrecision = Literal["auto", "float32", "bfloat16"]


class AugmentationSettings(Settings):
    """The training transform: random resized crop, flip, colour jitter."""

    scale: tuple[PositiveFloat, PositiveFloat] = Field((0.08, 1.0), description="area of the crop, as shares")
    ratio: tuple[PositiveFloat, PositiveFloat] = Field((3 / 4, 4 / 3), description="width : height of the crop")
    flip: Fraction = Field(0.5, description="probability of a horizontal flip")
    brightness: NonNegativeFloat = Field(0.4, description="strength of the brightness jitter")
    contrast: NonNegativeFloat = Field(0.4, description="strength of the contrast jitter")
    saturation: NonNegativeFloat = Field(0.4, description="strength of the saturation jitter")


class DataSettings(Settings):
    """The dataset and how its images reach the network."""

    root: str = Field(description="folder of the dataset")
    features: str = Field("", description="file of precomputed features (.npz) to train on instead of the images")
    held_out: str = Field("", description='domain kept for testing; "" trains on every domain')
    size: PositiveInt = Field(224, description="side of the images that the network sees, in pixels")
    cache_size: NonNegativeInt = Field(
        0,
        description="shorter side of the decoded images on disk; 0: 8/7 of size; smaller images stay as they are",
    )
    batch_size: Annotated[int, Field(ge=2)] = Field(48, description="images of each source domain in a step")
    cached_variants: PositiveInt = Field(
        1,
        description="with backbone.frozen: crops of each training image, computed once; 1: no augmentation",
    )
    augmentation: AugmentationSettings = Field(
        AugmentationSettings(), description="random crop, flip and colour jitter of the training images"
    )

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> DataSettings:
        image_settings = ["size", "cache_size", "cached_variants", "augmentation"]
        refuse_idle(self, image_settings if self.features else [], "on precomputed features")
        return self

    @property
    def decoded_side(self) -> int:
        return self.cache_size or round(self.size * 8 / 7)


class SemanticsSettings(Settings):
    """Class embeddings, for methods that use them."""

    table: str = Field(
        "", description='file (.csv, .npz, .npy, .mat); "": the dataset\'s semantics/attributes.csv, or its only .npz'
    )
    key: str = Field("", description="name of the array, in a file that holds several")


class OptimizerSettings(Settings):
    """The optimizer of all parameters, BatchNorm and biases included."""

    name: Literal["sgd", "adamw"] = Field("sgd", description="sgd or adamw")
    lr: PositiveFloat = Field(0.1, description="learning rate at the start")
    momentum: Fraction = Field(0.9, description="momentum of sgd")
    nesterov: bool = Field(False, description="Nesterov's form of the momentum")
    betas: tuple[ShareBelowOne, ShareBelowOne] = Field((0.9, 0.999), description="decay rates of adamw's two moments")
    weight_decay: NonNegativeFloat = Field(1e-4, description="weight decay; decoupled from the gradient for adamw")
    backbone_lr_scale: NonNegativeFloat = Field(
        1.0, description="factor on the learning rate of the backbone, e.g. 0.1 for a pretrained one; not 0"
    )
    clip_norm: NonNegativeFloat = Field(0.0, description="largest norm of the gradient; 0: no clipping")

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> OptimizerSettings:
        if self.name == "sgd" and self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum above 0: raise momentum, or leave nesterov out")
        idle = ["momentum", "nesterov"] if self.name == "adamw" else ["betas"]
        refuse_idle(self, idle, f"with optimizer.name={self.name}")
        return self


class ScheduleSettings(Settings):
    """The length of the run and how the learning rate falls. A phase of a method has its own share of `epochs`."""

    epochs: PositiveInt = Field(100, description="length of the run in epochs; validation follows each epoch")
    steps_per_epoch: PositiveInt = Field(101, description="steps of an epoch")
    decay: Literal["milestones", "cosine"] = Field("milestones", description="how the learning rate falls")
    milestones: tuple[Fraction, ...] = Field(
        (0.4, 0.8), description="shares of a phase after which the learning rate is multiplied by gamma"
    )
    gamma: PositiveFloat = Field(0.1, description="factor on the learning rate at each milestone")
    warmup: ShareBelowOne = Field(0.0, description="share of a phase in which the learning rate rises from 0")
    patience: NonNegativeInt = Field(
        0, description="epochs without a better validation accuracy after which a phase ends early; 0: never"
    )
    keep: Literal["best", "last"] = Field(
        "best",
        description="the weights that a phase ends with: those of the epoch with the best validation, or the last",
    )

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> ScheduleSettings:
        if self.keep == "last":
            refuse_idle(self, ["patience"], "with schedule.keep=last")
        refuse_idle(self, ["milestones", "gamma"] if self.decay == "cosine" else [], "with schedule.decay=cosine")
        return self


def decay_for(steps: int) -> float:
    """The decay for a run of `steps` steps: the average covers about the last tenth, at most 100 steps.

    More steps would include weights from before the learning rate fell. With 120 steps the default's 100 cost
    `agg` on Bestiary four points of validation accuracy.
    """
    return round(min(0.99, max(0.5, 1 - 10 / steps)), 3)


class AveragingSettings(Settings):
    """Whether to evaluate and keep an average of the weights over the last part of training."""

    name: Literal["none", "ema", "swad"] = Field(
        "none",
        description="none; ema: an exponential moving average; swad: the mean over a window chosen on validation, with "
        "BatchNorm's statistics estimated for it",
    )
    decay: Annotated[float, Field(gt=0, lt=1)] = Field(0.99, description="ema: weight of the old average at each step")
    start: ShareBelowOne = Field(0.3, description="ema: share of a phase after which averaging starts")
    start_patience: PositiveInt = Field(
        3,
        description="swad: the window starts at the first epoch that the next start_patience - 1 do not improve on",
    )
    end_patience: PositiveInt = Field(
        6, description="swad: the window ends before this many epochs in a row with too high a loss"
    )
    tolerance: NonNegativeFloat = Field(
        0.3,
        description="swad: too high is above (1 + tolerance) times the mean loss of the first start_patience epochs",
    )

    @model_validator(mode="before")
    @classmethod
    def _text_is_the_name(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> AveragingSettings:
        used = {"ema": ["decay", "start"], "swad": ["start_patience", "end_patience", "tolerance"]}
        idle = [name for kind, names in used.items() if kind != self.name for name in names]
        refuse_idle(self, idle, f"with averaging.name={self.name}" if self.name != "none" else "without averaging")
        return self


class RunSettings(Settings):
    """Seed, machine, and additional output."""

    seed: NonNegativeInt = Field(0, description="seed of everything that is drawn at random")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="auto takes a GPU if there is one")
    threads: NonNegativeInt = Field(0, description="CPU threads; 0: one for each core that the process may use")
    precision: AskedPrecision = Field(
        "float32",
        description="numbers of the backbone; auto: bfloat16 on a GPU that has it, or if a probe finds it faster",
    )
    ranks: PositiveInt = Field(
        1, description="processes of this machine that train together, each on its share of every batch"
    )
    sync_batchnorm: bool = Field(
        False, description="with several ranks: BatchNorm over the images of all ranks, as one rank computes it; slower"
    )
    rank_timeout: PositiveInt = Field(
        600, description="if a rank does not answer for this many seconds, training ends in all ranks"
    )
    compile: bool = Field(
        False, description="compile the backbone with torch.compile: takes minutes at the start, then steps are faster"
    )
    look_every: NonNegativeInt = Field(
        0, description="steps between checks of the loss; each check makes a GPU wait; 0: 10 on a GPU, else 1"
    )
    checkpoint_every: NonNegativeInt = Field(0, description="steps between checkpoints; 0: one after each epoch")
    frechet_every: NonNegativeInt = Field(
        0, description="epochs between measurements of the distance between source domains; 0: never"
    )
    tensorboard: bool = Field(False, description="also write event files for TensorBoard")


class SharedSettings(Settings):
    """All settings except the method's, by group."""

    data: DataSettings
    semantics: SemanticsSettings = SemanticsSettings()
    backbone: BackboneSettings = BackboneSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    averaging: AveragingSettings = AveragingSettings()
    run: RunSettings = RunSettings()
