"""The papers that the methods come from."""

from __future__ import annotations

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
YANG = "Yang et al., On Multi-Domain Long-Tailed Recognition, Imbalanced Domain Generalization and Beyond, ECCV 2022"
