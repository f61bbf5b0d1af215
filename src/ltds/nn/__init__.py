"""Networks: backbones that map images to features, the layers built on them, and gradient steps as functions."""

from ltds.nn.backbones import BACKBONES, BackboneSettings, build_backbone, load_weights
from ltds.nn.efficientnet import EfficientNetLite
from ltds.nn.feature_dim import feature_dim_of
from ltds.nn.inner_step import call_with, clip_gradients, fast_weights, gradients, submodule_weights
from ltds.nn.known_gradient import with_known_gradient
from ltds.nn.metric_net import MetricNet
from ltds.nn.mixstyle import MixStyle, MixStyleSettings, draw_partners, mix_styles
from ltds.nn.networks import DomainNetwork, new_domain_network, reinitialised_copy
from ltds.nn.projector import Projector
from ltds.nn.resnet import BasicBlock, Bottleneck, ResNet
from ltds.nn.small import TinyNet

__all__ = [
    "BACKBONES",
    "BackboneSettings",
    "BasicBlock",
    "Bottleneck",
    "DomainNetwork",
    "EfficientNetLite",
    "MetricNet",
    "MixStyle",
    "MixStyleSettings",
    "Projector",
    "ResNet",
    "TinyNet",
    "build_backbone",
    "call_with",
    "clip_gradients",
    "draw_partners",
    "fast_weights",
    "feature_dim_of",
    "gradients",
    "load_weights",
    "mix_styles",
    "new_domain_network",
    "reinitialised_copy",
    "submodule_weights",
    "with_known_gradient",
]
