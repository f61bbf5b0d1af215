"""Losses as equations, usable in any training loop: those of the paper, and those of the methods it compares with."""

from ltds.losses.adjustment import LogitAdjustedLoss, adjusted_after_training, logit_adjustment, smoothed_counts
from ltds.losses.augmentation import augmentation_loss, augmented_logits, strength_at
from ltds.losses.balanced_alignment import balanced_alignment_loss, moment_alignment_loss
from ltds.losses.calibrated import (
    BalancedSoftmaxLoss,
    DistributionCalibratedLoss,
    PlainCrossEntropy,
    calibrated_cross_entropy,
    log_counts,
)
from ltds.losses.class_alignment import class_alignment_loss
from ltds.losses.classification import ClassificationLoss
from ltds.losses.criteria import CRITERIA, Criterion, CriterionSettings
from ltds.losses.distillation import distillation_loss, mixed_teacher
from ltds.losses.equalization import EqualizedLoss, draw_ignored, equalized_cross_entropy, rare_classes
from ltds.losses.semantic_alignment import Directions, prototype_contrast, semantic_alignment_loss
from ltds.losses.semantic_to_visual import semantic_to_visual_loss
from ltds.losses.soft_labels import soft_label_loss
from ltds.losses.triplet import semihard_triplet_loss
from ltds.losses.visual_to_semantic import semantic_logits, visual_to_semantic_loss

__all__ = [
    "CRITERIA",
    "BalancedSoftmaxLoss",
    "ClassificationLoss",
    "Criterion",
    "CriterionSettings",
    "Directions",
    "DistributionCalibratedLoss",
    "EqualizedLoss",
    "LogitAdjustedLoss",
    "PlainCrossEntropy",
    "adjusted_after_training",
    "augmentation_loss",
    "augmented_logits",
    "balanced_alignment_loss",
    "calibrated_cross_entropy",
    "class_alignment_loss",
    "distillation_loss",
    "draw_ignored",
    "equalized_cross_entropy",
    "log_counts",
    "logit_adjustment",
    "mixed_teacher",
    "moment_alignment_loss",
    "prototype_contrast",
    "rare_classes",
    "semantic_alignment_loss",
    "semantic_logits",
    "semantic_to_visual_loss",
    "semihard_triplet_loss",
    "smoothed_counts",
    "soft_label_loss",
    "strength_at",
    "visual_to_semantic_loss",
]
