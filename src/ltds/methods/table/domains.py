"""The methods for domain generalization, and those that combine it with balanced losses."""

from __future__ import annotations

from ltds.methods.entry import BOTH, DOMAINS, MethodEntry
from ltds.methods.papers import KANG, LI_EPISODIC, LTDS, MANCINI, REN, SHU, YANG, ZHOU

# Classes by name, so that the methods can be listed without torch.
AGG = "ltds.methods.agg:Agg"
BODA = "ltds.methods.boda:Boda"
CUMIX = "ltds.methods.cumix:Cumix"
DAML = "ltds.methods.daml:Daml"
EPI_FCR = "ltds.methods.epi_fcr:EpiFcr"

_EPISODES = "One pass is without gradient. One network predicts; the others only help to train it."
_TOGETHER = "All domains in one forward pass."
_AVERAGED = "Prediction takes K passes: the mean of the networks' probabilities."
_CENTROIDS = "Besides, a pass over all training images without gradient, once an epoch."

_PRETRAINED = "Losses as in the original, for a pretrained network at a learning rate of 1e-3. From scratch: {}."

# The original's 3, 3 and .1, scaled to a sum of 1: they suit its learning rate of 1e-3, not training from scratch.
_CUMIX_WEIGHTS = {"samples": 3 / 6.1, "features": 3 / 6.1, "images": 0.1 / 6.1}

ENTRIES = (
    MethodEntry(
        "epi-fcr",
        EPI_FCR,
        "backbone and classifier also trained with partners of other domains, and with a random classifier",
        {"average_domains": False},
        group=DOMAINS,
        page="epi-fcr",
        citations=(LI_EPISODIC,),
        networks="K + 1",
        passes="2 * K + 1",
        remark=f"{_EPISODES} {_PRETRAINED.format('epi-fcr-scratch')}",
    ),
    MethodEntry(
        "epi-fcr-scratch",
        EPI_FCR,
        "epi-fcr for training from scratch: its losses divided by the number of domains",
        group=DOMAINS,
        page="epi-fcr",
        citations=(LI_EPISODIC,),
        networks="K + 1",
        passes="2 * K + 1",
        remark=_EPISODES,
    ),
    MethodEntry(
        "mixstyle",
        AGG,
        "agg whose feature maps take on the styles of other images in training",
        {"mixstyle": {"p": 0.5}},
        group=DOMAINS,
        page="mixstyle",
        citations=(ZHOU,),
        remark=_TOGETHER,
    ),
    MethodEntry(
        "cumix",
        CUMIX,
        "mixed images and features, first within a domain, later across domains",
        group=DOMAINS,
        page="cumix",
        citations=(MANCINI,),
        passes="2 * K",
        remark=_PRETRAINED.format("cumix-scratch"),
    ),
    MethodEntry(
        "cumix-scratch",
        CUMIX,
        "cumix for training from scratch: its weights divided by 6.1, to a sum of 1",
        {"weights": _CUMIX_WEIGHTS},
        group=DOMAINS,
        page="cumix",
        citations=(MANCINI,),
        passes="2 * K",
    ),
    MethodEntry(
        "cumix-embeddings",
        CUMIX,
        "cumix-scratch with a projection and the class embeddings as its classifier",
        {"weights": _CUMIX_WEIGHTS, "semantic_head": True},
        group=DOMAINS,
        page="cumix",
        citations=(MANCINI,),
        passes="2 * K",
    ),
    MethodEntry(
        "daml",
        DAML,
        "a network for each domain; mixed features, distillation, and meta-learning across domains",
        {"only_known_classes": True},
        group=DOMAINS,
        page="daml",
        citations=(SHU,),
        networks="K",
        passes="2 * K**2",
        remark=f"{_AVERAGED} {_PRETRAINED.format('daml-scratch')}",
    ),
    MethodEntry(
        "daml-scratch",
        DAML,
        "daml with outputs for all classes, open ones too, as the paper compares with it from scratch",
        group=DOMAINS,
        page="daml",
        citations=(SHU, LTDS),
        networks="K",
        passes="2 * K**2",
        remark=_AVERAGED,
    ),
    MethodEntry(
        "daml-warmup",
        DAML,
        "agg for the first part of the run, then daml-scratch from its weights at a tenth of the learning rate",
        {"warmup": 0.4},
        group=DOMAINS,
        page="daml",
        citations=(SHU, LTDS),
        networks="K",
        passes="2 * K**2",
        remark=f"The warm-up trains one network, K passes. {_AVERAGED}",
    ),
    MethodEntry(
        "mixstyle-bsce",
        AGG,
        "mixstyle with balanced softmax",
        {"mixstyle": {"p": 0.5}, "criterion": "bsce"},
        group=BOTH,
        page="mixstyle",
        citations=(ZHOU, REN),
        remark=_TOGETHER,
    ),
    MethodEntry(
        "epi-fcr-bsce",
        EPI_FCR,
        "epi-fcr-scratch with balanced softmax",
        {"criterion": "bsce"},
        group=BOTH,
        page="epi-fcr",
        citations=(LI_EPISODIC, REN),
        networks="K + 1",
        passes="2 * K + 1",
        remark=_EPISODES,
    ),
    MethodEntry(
        "boda",
        BODA,
        "images are pulled to their class in other domains, as much as the counts of both allow",
        group=BOTH,
        page="boda",
        citations=(YANG,),
        remark=_CENTROIDS,
    ),
    MethodEntry(
        "boda-crt",
        BODA,
        "boda, then a new classifier trained on class-balanced batches",
        {"retrain_classifier": True},
        group=BOTH,
        page="boda",
        citations=(YANG, KANG),
        remark=_CENTROIDS,
    ),
)
