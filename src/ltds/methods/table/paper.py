"""The paper's method with its ablations, and the methods it is built on."""

from __future__ import annotations

from typing import Any

from ltds.methods.entry import ABLATIONS, ANCESTORS, PAPER, MethodEntry
from ltds.methods.papers import DOU, LI_META, LTDS, WANG

# Classes by name, so that the methods can be listed without torch.
AGG = "ltds.methods.agg:Agg"
ISDA = "ltds.methods.isda:Isda"
MASF = "ltds.methods.masf:Masf"
META_LTDS = "ltds.methods.meta_ltds:MetaLtds"

_FIRST_ORDER = "Meta-train and meta-test have separate backward passes; first order keeps no graph of the inner step."
_SECOND_ORDER = "Second order: the graph of the inner step is kept and differentiated, which costs time and memory."

# The paper's equations, with its misprints corrected; where the paper is silent, the released code (as in `ltds`).
_AS_PRINTED = {
    "gradient_order": "second",
    "strength": 5.0,
    "strength_schedule": "constant",
    "calibrated_augmentation": False,
    "covariance": "full",
}

# Algorithm 1 with the classification loss only.
_META_ALONE = {
    "criterion": "ce",
    "weights": {"z2s": 0.0, "s2s": 0.0, "s2z": 0.0, "augmentation": 0.0, "meta_test": 1.0},
    "gradient_order": "second",
}

# What the released code computes, including its mistakes.
_AS_RELEASED = {
    "s2s_negatives": "released",
    "align_to_semantics": False,
    "s2z_weights": (0.5, 0.5),
    "cycle_form": "z2s",
    "prototype_start": "zero",
    "prototype_epsilon": 1e-5,
    "covariance_pseudo_sample": True,
    "covariance_order": "interleaved",
    "neighbour_weights": "running",
    "slow_weights_in_meta_test": True,
}


def _ablation(letter: str, summary: str, settings: dict[str, Any], *, meta: bool = False) -> MethodEntry:
    """A row of the paper's Table 4; without meta-learning unless `meta`."""
    settings = settings if meta else {**settings, "meta_test_domains": 0}
    remark = _FIRST_ORDER if meta else ""
    summary = f"ablation {letter}: {summary}"
    return MethodEntry(
        f"ltds-{letter}",
        META_LTDS,
        summary,
        settings,
        group=ABLATIONS,
        page="ltds",
        citations=(LTDS,),
        remark=remark,
    )


def _only(*terms: str, criterion: str = "dc") -> dict[str, Any]:
    """Settings with only these losses besides the classification loss."""
    weights = {name: 0.0 for name in ("z2s", "s2s", "s2z", "augmentation") if name not in terms}
    return {"criterion": criterion, "weights": weights}


ENTRIES = (
    MethodEntry(
        "dc",
        AGG,
        "the paper's distribution calibrated loss (Eq. 2): counts of each domain",
        {"criterion": "dc"},
        group=PAPER,
        page="agg",
        citations=(LTDS,),
    ),
    MethodEntry(
        "ltds",
        META_LTDS,
        "the paper's method: meta-learning, visual-semantic mapping, guided augmentation",
        group=PAPER,
        page="ltds",
        citations=(LTDS,),
        remark=_FIRST_ORDER,
    ),
    MethodEntry(
        "ltds-paper",
        META_LTDS,
        "ltds as the paper prints it: second order, constant strength, full covariance",
        _AS_PRINTED,
        group=PAPER,
        page="ltds",
        citations=(LTDS,),
        remark=_SECOND_ORDER,
    ),
    MethodEntry(
        "ltds-code",
        META_LTDS,
        "ltds as the released code computes it, including its mistakes",
        _AS_RELEASED,
        group=PAPER,
        page="ltds",
        citations=(LTDS,),
        remark=_FIRST_ORDER,
    ),
    MethodEntry(
        "ltds-hidden-names",
        META_LTDS,
        "ltds without the embeddings of open classes, which no other method knows",
        {"hide_open_names": True},
        group=PAPER,
        page="ltds",
        citations=(LTDS,),
        remark=_FIRST_ORDER,
    ),
    _ablation("a", "cross-entropy alone", _only(criterion="ce")),
    _ablation("b", "L_dc alone", _only()),
    _ablation("c", "cross-entropy with meta-learning", _only(criterion="ce"), meta=True),
    _ablation("d", "L_dc with meta-learning", _only(), meta=True),
    _ablation("e", "L_dc + L_Z2S", _only("z2s")),
    _ablation("f", "L_dc + L_Z2S + L_S2S", _only("z2s", "s2s")),
    _ablation("g", "L_dc + L_Z2S + L_S2S + L_S2Z", _only("z2s", "s2s", "s2z")),
    _ablation("h", "L_dc + L_Aug", _only("augmentation")),
    _ablation("i", "all losses, no meta-learning", {}),
    _ablation("j", "everything, the same as ltds", {}, meta=True),
    _ablation("k", "one prototype for all domains", {"single_prototype": True}, meta=True),
    _ablation("l", "neighbours' covariances unweighted", {"neighbour_weights": "none"}, meta=True),
    MethodEntry(
        "isda",
        ISDA,
        "implicit augmentation of features along the covariance of their class",
        group=ANCESTORS,
        page="isda",
        citations=(WANG,),
    ),
    MethodEntry(
        "mldg",
        META_LTDS,
        "meta-learning alone: a step on all domains but one must also help that one",
        {**_META_ALONE, "inner_lr": 0.5, "sum_domains": True},
        group=ANCESTORS,
        page="mldg",
        citations=(LI_META,),
        remark=f"{_SECOND_ORDER} As in the original, for fixed features at a learning rate of 5e-4. From scratch: "
        "mldg-scratch.",
    ),
    MethodEntry(
        "mldg-scratch",
        META_LTDS,
        "mldg for training from scratch: the mean over domains and ltds' inner step",
        _META_ALONE,
        group=ANCESTORS,
        page="mldg",
        citations=(LI_META,),
        remark=_SECOND_ORDER,
    ),
    MethodEntry(
        "masf",
        MASF,
        "after a step on all domains but one, classes should agree over domains and form clusters",
        {"inner_lr": 1e-5},
        group=ANCESTORS,
        page="masf",
        citations=(DOU,),
        passes="2 * K - 1",
        remark=f"{_FIRST_ORDER} The inner step of the original, for a pretrained network and Adam at 1e-5. From "
        "scratch: masf-scratch.",
    ),
    MethodEntry(
        "masf-scratch",
        MASF,
        "masf for training from scratch: an inner step of .1",
        group=ANCESTORS,
        page="masf",
        citations=(DOU,),
        passes="2 * K - 1",
        remark=_FIRST_ORDER,
    ),
)
