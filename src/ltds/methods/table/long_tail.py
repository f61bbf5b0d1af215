"""The baselines and the methods for long-tailed recognition."""

from __future__ import annotations

from ltds.methods.entry import BASELINE, LONG_TAIL, MethodEntry
from ltds.methods.papers import CHOU, KANG, LTDS, MENON, REN, TAN

# Classes by name, so that the methods can be listed without torch.
AGG = "ltds.methods.agg:Agg"
DECOUPLED = "ltds.methods.crt:Decoupled"
REMIX = "ltds.methods.remix:Remix"

_HEAD = "A second, shorter phase trains the head alone: forward passes without a gradient for the backbone."
_FITTED = "After training, one pass over the training or validation images."

ENTRIES = (
    MethodEntry(
        "agg",
        AGG,
        "all source domains together, plain cross-entropy: the baseline",
        group=BASELINE,
        page="agg",
        citations=(LTDS,),
    ),
    MethodEntry(
        "agg-embeddings",
        AGG,
        "agg that also pulls features to the embedding of their class",
        {"z2s": 0.1},
        group=BASELINE,
        page="agg-embeddings",
        citations=(LTDS,),
        remark="It also trains a small projector.",
    ),
    MethodEntry(
        "crt",
        DECOUPLED,
        "agg, then a new classifier trained alone on class-balanced samples",
        group=LONG_TAIL,
        page="crt",
        citations=(KANG,),
        remark=_HEAD,
    ),
    MethodEntry(
        "lws",
        DECOUPLED,
        "agg, then a learned scale for the logits of each class",
        {"head": "lws"},
        group=LONG_TAIL,
        page="crt",
        citations=(KANG,),
        remark=_HEAD,
    ),
    MethodEntry(
        "tau-norm",
        DECOUPLED,
        "agg, then classifier rows divided by a power of their length, chosen on validation",
        {"head": "tau"},
        group=LONG_TAIL,
        page="crt",
        citations=(KANG,),
        remark=_FITTED,
    ),
    MethodEntry(
        "ncm",
        DECOUPLED,
        "agg, then the class whose mean feature is nearest",
        {"head": "ncm"},
        group=LONG_TAIL,
        page="crt",
        citations=(KANG,),
        remark=_FITTED,
    ),
    MethodEntry(
        "bsce",
        AGG,
        "balanced softmax: logits shifted by log class counts, pooled over domains",
        {"criterion": "bsce"},
        group=LONG_TAIL,
        page="agg",
        citations=(REN,),
    ),
    MethodEntry(
        "equal",
        AGG,
        "softmax equalisation: samples of other classes do not push down the logits of rare ones",
        {"criterion": "equal"},
        group=LONG_TAIL,
        page="equal",
        citations=(TAN,),
    ),
    MethodEntry(
        "la",
        AGG,
        "logit adjustment by the counts of each domain, blended with a tenth of the pooled counts",
        {"criterion": {"name": "adjusted", "zero_count": "blend"}},
        group=LONG_TAIL,
        page="logit-adjustment",
        citations=(MENON,),
    ),
    MethodEntry(
        "la-posthoc",
        AGG,
        "agg, its logits adjusted by the log class prior after training",
        {"posthoc_tau": 1.0},
        group=LONG_TAIL,
        page="logit-adjustment",
        citations=(MENON,),
    ),
    MethodEntry(
        "remix",
        REMIX,
        "mixup over all domains, whose labels favour the rarer class",
        group=LONG_TAIL,
        page="remix",
        citations=(CHOU,),
        remark="All domains in one forward pass.",
    ),
)
