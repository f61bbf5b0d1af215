"""The settings of LT-DS: each is one reading of the paper where print, text and released code differ."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from ltds.core.config import Fraction, Settings
from ltds.losses.augmentation import StrengthSchedule
from ltds.losses.criteria import CriterionSettings
from ltds.losses.semantic_alignment import NegativesForm
from ltds.losses.semantic_to_visual import CycleForm
from ltds.nn.inner_step import GradientClip
from ltds.stats.prototypes import PrototypeStart


class Weights(Settings):
    """w_1 .. w_4 of L_mtr, and w_mte of L_mte. A weight of 0 leaves its term out altogether."""

    z2s: NonNegativeFloat = 0.1
    s2s: NonNegativeFloat = 0.1
    s2z: NonNegativeFloat = 0.1
    augmentation: NonNegativeFloat = 0.1
    meta_test: NonNegativeFloat = 0.3


class MetaLtdsConfig(Settings):
    """Settings of LT-DS. A number in a comment is the row of docs/paper-notes.md that explains the choice."""

    criterion: CriterionSettings = CriterionSettings(name="dc")
    weights: Weights = Weights()
    margin: NonNegativeFloat = 0.1
    temperature: PositiveFloat = 1 / 30
    strict: bool = False  # 36: True hides the names of open classes

    meta_test_domains: NonNegativeInt = 1  # 27; 0: no meta-learning
    order: Literal["first", "second"] = "first"  # 1
    inner_lr: NonNegativeFloat = 0.2
    inner_clip: GradientClip = "none"  # 2
    inner_clip_norm: PositiveFloat = 2.0
    meta_test_statistics: bool = True  # 25
    joint_forward: bool = False  # 26
    sum_domains: bool = False  # True: L_mtr is a sum over its domains, not their mean (MLDG)

    calibrated_z2s: bool = True  # 4
    negatives: NegativesForm = "paper"  # 6
    align_to_semantics: bool = True  # 8
    back_weights: tuple[NonNegativeFloat, NonNegativeFloat] = (1.0, 1.0)  # 9
    cycle: CycleForm = "s2s"  # 10
    prototype_gradient: bool = True  # 11
    prototype_start: PrototypeStart = "first_visit"  # 12
    prototype_epsilon: NonNegativeFloat = 0.0  # 13
    prototype_momentum: Fraction = 0.5
    single_prototype: bool = False  # ablation k

    covariance_start: Fraction = 0.4  # T_Sigma as a share of the run
    covariance: Literal["diagonal", "full"] = "diagonal"  # 18
    covariance_pseudo_sample: bool = False  # 16
    covariance_order: Literal["together", "interleaved"] = "together"  # 20
    neighbours: PositiveInt = 5  # 19
    neighbour_weights: Literal["class_size", "running", "none"] = "class_size"  # 17; none: ablation l
    strength: NonNegativeFloat = 10.0  # 3: lambda
    strength_schedule: StrengthSchedule = "ramp"  # 3
    calibrated_augmentation: bool = True  # 5
    slow_weights_in_meta_test: bool = False  # 21

    @property
    def semantic(self) -> bool:
        """Whether some loss maps to or from the semantic space."""
        return max(self.weights.z2s, self.weights.s2s, self.weights.s2z) > 0

    @property
    def calibrated(self) -> bool:
        """Whether a loss beside the criterion is calibrated by the counts of each domain."""
        w = self.weights
        return bool((w.z2s and self.calibrated_z2s) or (w.augmentation and self.calibrated_augmentation))

    @property
    def borrows(self) -> bool:
        """Whether a class borrows covariances from its semantic neighbours; with one neighbour it keeps its own."""
        return self.weights.augmentation > 0 and self.neighbours > 1

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> MetaLtdsConfig:
        w, fields = self.weights, type(self).model_fields
        if self.meta_test_domains and not w.meta_test:
            raise ValueError("weights.meta_test=0 still pays for meta-test: set meta_test_domains=0")
        idle: list[str] = []
        if not self.meta_test_domains:
            idle += ["order", "inner_lr", "inner_clip", "inner_clip_norm", "meta_test_statistics"]
        if not (self.meta_test_domains and w.augmentation):
            idle += ["slow_weights_in_meta_test"]
        if not w.augmentation:
            idle += [name for name in fields if name.startswith(("covariance", "neighbour", "strength"))]
            idle += ["calibrated_augmentation"]
        if not self.borrows:
            idle += ["neighbour_weights"] if self.semantic else ["neighbour_weights", "strict"]
        if not self.semantic:
            idle += ["margin", "temperature"]
        if not w.z2s:
            idle += ["calibrated_z2s"]
        if not w.s2s:
            idle += ["negatives", "align_to_semantics"]
        if not w.s2z:
            idle += ["back_weights", "cycle"]
        if not (w.s2s or w.s2z or (w.z2s and self.meta_test_domains)):
            idle += [name for name in fields if "prototype" in name]
        if self.inner_clip == "none":
            idle += ["inner_clip_norm"]
        changed = [name for name in idle if getattr(self, name) != fields[name].default]
        if changed:
            raise ValueError(f"{changed[0]} has no effect beside the other settings: leave it out")
        return self
