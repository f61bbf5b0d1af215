"""Every named method, whole: a class and the settings that make it that method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ltds.core.errors import ConfigError
from ltds.core.names import find_or_import
from ltds.methods.agg import Agg
from ltds.methods.base import Method
from ltds.methods.crt import Decoupled
from ltds.methods.cumix import Cumix
from ltds.methods.daml import Daml
from ltds.methods.epi_fcr import EpiFcr
from ltds.methods.isda import Isda
from ltds.methods.masf import Masf
from ltds.methods.meta_ltds import MetaLtds
from ltds.methods.remix import Remix


@dataclass(frozen=True)
class Preset:
    """A method's class, the settings that differ from its defaults, and what it is in one line."""

    method: type[Method]
    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)


PRESETS: dict[str, Preset] = {
    "agg": Preset(Agg, "all source domains together, plain cross-entropy: the baseline"),
    "bsce": Preset(
        Agg, "balanced softmax: logits shifted by log class counts, pooled over domains", {"criterion": "bsce"}
    ),
    "dc": Preset(Agg, "the paper's distribution calibrated loss (Eq. 2): counts of each domain", {"criterion": "dc"}),
    "equal": Preset(
        Agg, "softmax equalisation: samples of other classes spare the logits of rare ones", {"criterion": "equal"}
    ),
    "la": Preset(
        Agg,
        "logit adjustment by the counts of each domain, blended with a tenth of the pool's",
        {"criterion": {"name": "adjusted", "zero_count": "blend"}},
    ),
    "la-posthoc": Preset(Agg, "agg, its logits adjusted by the log class prior after training", {"posthoc_tau": 1.0}),
    "mixstyle": Preset(
        Agg, "agg whose feature maps take on the styles of other images in training", {"mixstyle": {"p": 0.5}}
    ),
    "mixstyle-bsce": Preset(Agg, "mixstyle with balanced softmax", {"mixstyle": {"p": 0.5}, "criterion": "bsce"}),
    "agg-embeddings": Preset(Agg, "agg that also pulls features to the embedding of their class", {"z2s": 0.1}),
}

PRESETS |= {
    "crt": Preset(Decoupled, "agg, then a fresh classifier alone on class-balanced samples"),
    "lws": Preset(Decoupled, "agg, then a learned scale for the logits of each class", {"head": "lws"}),
    "tau-norm": Preset(
        Decoupled, "agg, then classifier rows divided by a power of their length, chosen on validation", {"head": "tau"}
    ),
    "ncm": Preset(Decoupled, "agg, then the class whose mean feature is nearest", {"head": "ncm"}),
}

# The original's 3, 3, .1 scaled to a sum of 1: they suit its learning rate of 1e-3, not one for training from scratch.
_CUMIX = {"weights": {"samples": 3 / 6.1, "features": 3 / 6.1, "images": 0.1 / 6.1}}

PRESETS |= {
    "remix": Preset(Remix, "mixup over all domains, whose labels lean to the rarer class"),
    "cumix": Preset(Cumix, "mixed images and features, first within a domain, later across domains", _CUMIX),
    "cumix-embeddings": Preset(
        Cumix, "cumix with a projection and the class embeddings as its classifier", {**_CUMIX, "semantic_head": True}
    ),
}
PRESETS |= {
    "epi-fcr": Preset(EpiFcr, "a backbone and a classifier trained beside partners of other domains, and a random one"),
    "epi-fcr-bsce": Preset(EpiFcr, "epi-fcr with balanced softmax", {"criterion": "bsce"}),
    "daml": Preset(Daml, "a network for each domain; mixed features, distillation, and meta-learning across domains"),
    "daml-warmup": Preset(Daml, "agg for a while, then daml from its weights at a tenth of the lr", {"warmup": 0.4}),
}

# The paper's equations with their slips of the pen mended; where the paper is silent, the released code (as `ltds`).
_PAPER = {
    "order": "second",
    "strength": 5.0,
    "strength_schedule": "constant",
    "calibrated_augmentation": False,
    "covariance": "full",
}

# What the released code computes, its slips included.
_CODE = {
    "negatives": "released",
    "align_to_semantics": False,
    "back_weights": (0.5, 0.5),
    "cycle": "z2s",
    "prototype_start": "zero",
    "prototype_epsilon": 1e-5,
    "covariance_pseudo_sample": True,
    "covariance_order": "interleaved",
    "neighbour_weights": "running",
    "slow_weights_in_meta_test": True,
}


def _ablation(*terms: str, criterion: str = "dc", meta: bool = False) -> dict[str, Any]:
    """Settings with only these terms of L_mtr beside the classification loss."""
    weights = {name: 0.0 for name in ("z2s", "s2s", "s2z", "augmentation") if name not in terms}
    return {"criterion": criterion, "weights": weights} | ({} if meta else {"meta_test_domains": 0})


PRESETS |= {
    "ltds": Preset(MetaLtds, "the paper's method: meta-learning, visual-semantic mapping, guided augmentation"),
    "ltds-paper": Preset(
        MetaLtds, "ltds as the paper prints it: second order, constant strength, full covariance", _PAPER
    ),
    "ltds-code": Preset(MetaLtds, "ltds as the released code computes it, its slips included", _CODE),
    "ltds-a": Preset(MetaLtds, "ablation a: cross-entropy alone", _ablation(criterion="ce")),
    "ltds-b": Preset(MetaLtds, "ablation b: L_dc alone", _ablation()),
    "ltds-c": Preset(MetaLtds, "ablation c: cross-entropy with meta-learning", _ablation(criterion="ce", meta=True)),
    "ltds-d": Preset(MetaLtds, "ablation d: L_dc with meta-learning", _ablation(meta=True)),
    "ltds-e": Preset(MetaLtds, "ablation e: L_dc + L_Z2S", _ablation("z2s")),
    "ltds-f": Preset(MetaLtds, "ablation f: L_dc + L_Z2S + L_S2S", _ablation("z2s", "s2s")),
    "ltds-g": Preset(MetaLtds, "ablation g: L_dc + L_Z2S + L_S2S + L_S2Z", _ablation("z2s", "s2s", "s2z")),
    "ltds-h": Preset(MetaLtds, "ablation h: L_dc + L_Aug", _ablation("augmentation")),
    "ltds-i": Preset(MetaLtds, "ablation i: all losses, no meta-learning", {"meta_test_domains": 0}),
    "ltds-j": Preset(MetaLtds, "ablation j: everything, the same as ltds"),
    "ltds-k": Preset(MetaLtds, "ablation k: one prototype for all domains", {"single_prototype": True}),
    "ltds-l": Preset(MetaLtds, "ablation l: neighbours' covariances unweighted", {"neighbour_weights": "none"}),
}

# The paper's ancestors: MLDG of its meta-learning, ISDA of its augmentation; MASF also aligns classes over domains.
_MLDG: dict[str, Any] = {
    "criterion": "ce",
    "weights": {"z2s": 0.0, "s2s": 0.0, "s2z": 0.0, "augmentation": 0.0, "meta_test": 1.0},
    "order": "second",
}

PRESETS |= {
    "isda": Preset(Isda, "implicit augmentation of features along the covariance of their class"),
    "mldg": Preset(MetaLtds, "meta-learning alone: a step on all domains but one must also help that one", _MLDG),
    "masf": Preset(Masf, "after a step on all domains but one, classes should agree over domains and form clusters"),
}


def find_preset(name: str) -> Preset:
    """The preset of this name, or the user's own Method class given as "package.module:Class"."""
    found = find_or_import("method", name, PRESETS)
    if isinstance(found, Preset):
        return found
    if isinstance(found, type) and issubclass(found, Method):
        return Preset(found, (found.__doc__ or name).splitlines()[0])
    raise ConfigError(f"Expected '{name}' to be a subclass of ltds.methods.base.Method, but got {found!r}.")
