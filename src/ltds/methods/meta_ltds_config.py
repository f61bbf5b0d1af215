"""The settings of LT-DS: each is one reading of the paper where print, text and released code differ."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from ltds.core.config import Fraction, Settings, refuse_idle
from ltds.losses.augmentation import StrengthSchedule
from ltds.losses.criteria import CriterionSettings
from ltds.losses.semantic_alignment import NegativesForm
from ltds.losses.semantic_to_visual import CycleForm
from ltds.nn.inner_step import GradientClip
from ltds.stats.prototypes import PrototypeStart

MANY_CLASSES, CONTRASTED = 2000, 1000  # contrast_classes=0: from 2000 classes on, a sample of 1000


def _enough_classes(value: int) -> int:
    if value and value < 2:
        raise ValueError(
            f"expected 0 (the default) or at least 2, because a class is contrasted with others, but got {value}; "
            "try 1000 if there are thousands of classes"
        )
    return value


ContrastClasses = Annotated[int, AfterValidator(_enough_classes)]


class LtdsWeights(Settings):
    """Weights of the losses besides the classification loss; 0 leaves a loss out."""

    z2s: NonNegativeFloat = Field(0.1, description="w_1: L_Z2S, features to class embeddings")
    s2s: NonNegativeFloat = Field(0.1, description="w_2: L_S2S, prototypes of domains to each other and to embeddings")
    s2z: NonNegativeFloat = Field(0.1, description="w_3: L_S2Z, prototypes back to the space of features")
    augmentation: NonNegativeFloat = Field(0.1, description="w_4: L_Aug, implicit augmentation")
    meta_test: NonNegativeFloat = Field(0.3, description="w_mte: all losses on the meta-test domains")


class MetaLtdsConfig(Settings):
    """Settings of LT-DS. "row N" is the row of docs/paper-notes.md that explains the choice."""

    criterion: CriterionSettings = Field(
        CriterionSettings(name="dc"), description="classification loss: a name (dc, ce, bsce, ...) or a group"
    )
    weights: LtdsWeights = Field(LtdsWeights(), description="weights of the other losses")
    margin: NonNegativeFloat = Field(0.1, description="alpha: margin of the semantic losses")
    temperature: PositiveFloat = Field(1 / 30, description="tau: temperature of the semantic losses")
    hide_open_names: bool = Field(False, description="do not use the embeddings of open classes (row 36)")

    meta_test_domains: NonNegativeInt = Field(1, description="meta-test domains per step; 0: no meta-learning (row 27)")
    gradient_order: Literal["first", "second"] = Field(
        "first", description="second: differentiate through the inner step, slower and larger (row 1)"
    )
    inner_lr: NonNegativeFloat = Field(0.2, description="beta_1: step size of the inner step to theta'")
    inner_clip: GradientClip = Field("none", description="clip the gradients of the inner step (row 2)")
    inner_clip_norm: PositiveFloat = Field(2.0, description="largest norm of the clipped gradients (row 2)")
    meta_test_statistics: bool = Field(True, description="BatchNorm statistics are updated in meta-test, too (row 25)")
    joint_forward: bool = Field(False, description="one forward pass for all domains, mixed in BatchNorm (row 26)")
    sum_domains: bool = Field(False, description="L_mtr is the sum over its domains, as in MLDG, not the mean")

    calibrated_z2s: bool = Field(True, description="class counts calibrate L_z2s, too (row 4)")
    s2s_negatives: NegativesForm = Field("paper", description="negatives of L_s2s: as printed, or as released (row 6)")
    align_to_semantics: bool = Field(True, description="L_S2S also aligns prototypes with the embeddings (row 8)")
    s2z_weights: tuple[NonNegativeFloat, NonNegativeFloat] = Field(
        (1.0, 1.0), description="weights of the classification and the cycle term in L_s2z (row 9)"
    )
    cycle_form: CycleForm = Field("s2s", description="form of the cycle term in L_s2z: as L_s2s or L_z2s (row 10)")
    contrast_classes: ContrastClasses = Field(
        0,
        description="largest number of classes in L_S2S and L_S2Z: the batch's, and others at random; "
        f"0: all if there are fewer than {MANY_CLASSES}, otherwise {CONTRASTED}",
    )
    prototype_gradient: bool = Field(True, description="gradients flow into prototypes through the batch (row 11)")
    prototype_start: PrototypeStart = Field("first_visit", description="first value of a prototype (row 12)")
    prototype_epsilon: NonNegativeFloat = Field(0.0, description="added to the count of a batch mean (row 13)")
    prototype_momentum: Fraction = Field(0.5, description="share of a prototype that an update keeps")
    single_prototype: bool = Field(False, description="one prototype per class for all domains (ablation k)")

    covariance_start: Fraction = Field(0.4, description="T_Sigma: share of the run after which L_Aug begins")
    covariance: Literal["diagonal", "full"] = Field("diagonal", description="form of the covariance matrices (row 18)")
    covariance_pseudo_sample: bool = Field(False, description="count one all-zero sample in every class (row 16)")
    covariance_order: Literal["together", "interleaved"] = Field(
        "together", description="update with all domains before L_Aug, or domain by domain (row 20)"
    )
    neighbours: PositiveInt = Field(5, description="classes whose covariances are averaged, itself included (row 19)")
    neighbour_weights: Literal["class_count", "running", "none"] = Field(
        "class_count", description="weights of that average: training images, samples so far, or equal (row 17)"
    )
    strength: NonNegativeFloat = Field(10.0, description="lambda: strength of the augmentation at its peak (row 3)")
    strength_schedule: StrengthSchedule = Field("ramp", description="how lambda changes over the run (row 3)")
    calibrated_augmentation: bool = Field(True, description="class counts calibrate L_aug, too (row 5)")
    slow_weights_in_meta_test: bool = Field(
        False, description="L_aug in meta-test uses theta for all classes except the true one (row 21)"
    )

    @property
    def semantic(self) -> bool:
        """Whether some loss maps to or from the semantic space."""
        return max(self.weights.z2s, self.weights.s2s, self.weights.s2z) > 0

    @property
    def calibrated(self) -> bool:
        """Whether a loss besides the criterion is calibrated by the counts of each domain."""
        w = self.weights
        return bool((w.z2s and self.calibrated_z2s) or (w.augmentation and self.calibrated_augmentation))

    @property
    def borrows(self) -> bool:
        """Whether the covariance of a class is averaged with its semantic neighbours; it needs two or more."""
        return self.weights.augmentation > 0 and self.neighbours > 1

    @property
    def uses_embeddings(self) -> bool:
        """Whether some loss or the neighbours need class embeddings."""
        return self.semantic or self.borrows

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> MetaLtdsConfig:
        w, fields = self.weights, type(self).model_fields
        if self.meta_test_domains and not w.meta_test:
            raise ValueError("weights.meta_test=0 still pays for meta-test: set meta_test_domains=0")
        if not self.meta_test_domains:
            inner = ["gradient_order", "inner_lr", "inner_clip", "inner_clip_norm", "meta_test_statistics"]
            refuse_idle(self, inner, "with meta_test_domains=0")
        if not (self.meta_test_domains and w.augmentation):
            refuse_idle(self, ["slow_weights_in_meta_test"], "without L_Aug in meta-test")
        if not w.augmentation:
            idle = [name for name in fields if name.startswith(("covariance", "neighbour", "strength"))]
            refuse_idle(self, [*idle, "calibrated_augmentation"], "with weights.augmentation=0")
        if not self.borrows:
            refuse_idle(self, ["neighbour_weights"], "with neighbours=1")
        if not self.uses_embeddings:
            refuse_idle(self, ["hide_open_names"], "with settings that use no class embeddings")
        if not self.semantic:
            refuse_idle(self, ["margin", "temperature"], "without a semantic loss (weights z2s, s2s and s2z are 0)")
        if not w.z2s:
            refuse_idle(self, ["calibrated_z2s"], "with weights.z2s=0")
        if not w.s2s:
            refuse_idle(self, ["s2s_negatives", "align_to_semantics"], "with weights.s2s=0")
        if not w.s2z:
            refuse_idle(self, ["s2z_weights", "cycle_form"], "with weights.s2z=0")
        if not (w.s2s or w.s2z):
            refuse_idle(self, ["contrast_classes"], "with weights.s2s=0 and weights.s2z=0")
        if not (w.s2s or w.s2z or (w.z2s and self.meta_test_domains)):
            refuse_idle(self, [name for name in fields if "prototype" in name], "without a loss that uses prototypes")
        if self.inner_clip == "none":
            refuse_idle(self, ["inner_clip_norm"], "with inner_clip=none")
        return self

    def contrasted(self, classes: int) -> int:
        """How many of `classes` classes are contrasted in a step; a batch with more uses all of its own."""
        if self.contrast_classes:
            return min(self.contrast_classes, classes)
        return classes if classes < MANY_CLASSES else CONTRASTED
