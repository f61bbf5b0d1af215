"""What is known of each preset beside its settings: where it comes from, where it is described, what a step costs."""

from __future__ import annotations

from dataclasses import dataclass

BASELINE = "Baselines"
LONG_TAIL = "Long-tailed recognition"
DOMAINS = "Domain generalization"
BOTH = "Both combined"
PAPER = "The paper's method"
ABLATIONS = "Its ablations"
ANCESTORS = "Its ancestors"
GROUPS = (BASELINE, LONG_TAIL, DOMAINS, BOTH, PAPER, ABLATIONS, ANCESTORS)


@dataclass(frozen=True)
class Entry:
    """`page`: docs/methods/PAGE.md. `networks` and `passes` are formulas in K, the number of source domains.

    `passes`: how many batches of one domain go through a backbone in a step of the main phase; `agg` needs K.
    """

    group: str
    page: str
    citations: tuple[str, ...] = ()
    networks: str = "1"
    passes: str = "K"
    remark: str = ""


LTDS = "Gu et al., Tackling Long-Tailed Category Distribution Under Domain Shifts, ECCV 2022"
KANG = "Kang et al., Decoupling Representation and Classifier for Long-Tailed Recognition, ICLR 2020"
REN = "Ren et al., Balanced Meta-Softmax for Long-Tailed Visual Recognition, NeurIPS 2020"
TAN = "Tan et al., Equalization Loss for Long-Tailed Object Recognition, CVPR 2020"
MENON = "Menon et al., Long-Tail Learning via Logit Adjustment, ICLR 2021"
CHOU = "Chou et al., Remix: Rebalanced Mixup, ECCV Workshops 2020"
LI_EPISODIC = "Li et al., Episodic Training for Domain Generalization, ICCV 2019"
ZHOU = "Zhou et al., Domain Generalization with MixStyle, ICLR 2021"
MANCINI = "Mancini et al., Towards Recognizing Unseen Categories in Unseen Domains, ECCV 2020"
SHU = "Shu et al., Open Domain Generalization with Domain-Augmented Meta-Learning, CVPR 2021"
WANG = "Wang et al., Implicit Semantic Data Augmentation for Deep Networks, NeurIPS 2019"
LI_META = "Li et al., Learning to Generalize: Meta-Learning for Domain Generalization, AAAI 2018"
DOU = "Dou et al., Domain Generalization via Model-Agnostic Learning of Semantic Features, NeurIPS 2019"

_HEAD = "A second, shorter phase trains the head alone: forward passes without a gradient for the backbone."
_FITTED = "After training, one pass over the training or validation images."
_EPISODES = "One pass is without gradient. One network predicts; the others only train it."
_NETWORKS = "Prediction takes K passes: the mean of the networks' probabilities."
_WARMUP = f"The warm-up trains one network, K passes. {_NETWORKS}"
_TOGETHER = "All domains in one forward pass."
_INNER = "Meta-train and meta-test are differentiated apart; first order keeps no graph of the inner step."
_SECOND = "Second order: the graph of the inner step is kept and differentiated, in time and memory."

CATALOGUE: dict[str, Entry] = {
    "agg": Entry(BASELINE, "agg", (LTDS,)),
    "agg-embeddings": Entry(BASELINE, "agg-embeddings", (LTDS,), remark="A small projector beside the classifier."),
    "crt": Entry(LONG_TAIL, "crt", (KANG,), remark=_HEAD),
    "lws": Entry(LONG_TAIL, "crt", (KANG,), remark=_HEAD),
    "tau-norm": Entry(LONG_TAIL, "crt", (KANG,), remark=_FITTED),
    "ncm": Entry(LONG_TAIL, "crt", (KANG,), remark=_FITTED),
    "bsce": Entry(LONG_TAIL, "agg", (REN,)),
    "equal": Entry(LONG_TAIL, "equal", (TAN,)),
    "la": Entry(LONG_TAIL, "logit-adjustment", (MENON,)),
    "la-posthoc": Entry(LONG_TAIL, "logit-adjustment", (MENON,)),
    "remix": Entry(LONG_TAIL, "remix", (CHOU,), remark=_TOGETHER),
    "epi-fcr": Entry(DOMAINS, "epi-fcr", (LI_EPISODIC,), "K + 1", "2 * K + 1", _EPISODES),
    "mixstyle": Entry(DOMAINS, "mixstyle", (ZHOU,), remark=_TOGETHER),
    "cumix": Entry(DOMAINS, "cumix", (MANCINI,), passes="2 * K"),
    "cumix-embeddings": Entry(DOMAINS, "cumix", (MANCINI,), passes="2 * K"),
    "daml": Entry(DOMAINS, "daml", (SHU,), "K", "2 * K**2", _NETWORKS),
    "daml-warmup": Entry(DOMAINS, "daml", (SHU, LTDS), "K", "2 * K**2", _WARMUP),
    "mixstyle-bsce": Entry(BOTH, "mixstyle", (ZHOU, REN), remark=_TOGETHER),
    "epi-fcr-bsce": Entry(BOTH, "epi-fcr", (LI_EPISODIC, REN), "K + 1", "2 * K + 1", _EPISODES),
    "dc": Entry(PAPER, "agg", (LTDS,)),
    "ltds": Entry(PAPER, "ltds", (LTDS,), remark=_INNER),
    "ltds-paper": Entry(PAPER, "ltds", (LTDS,), remark=_SECOND),
    "ltds-code": Entry(PAPER, "ltds", (LTDS,), remark=_INNER),
    **{f"ltds-{letter}": Entry(ABLATIONS, "ltds", (LTDS,)) for letter in "abefghi"},
    **{f"ltds-{letter}": Entry(ABLATIONS, "ltds", (LTDS,), remark=_INNER) for letter in "cdjkl"},
    "isda": Entry(ANCESTORS, "isda", (WANG,)),
    "mldg": Entry(ANCESTORS, "mldg", (LI_META,), remark=_SECOND),
    "masf": Entry(ANCESTORS, "masf", (DOU,), passes="2 * K - 1", remark=_INNER),
}
