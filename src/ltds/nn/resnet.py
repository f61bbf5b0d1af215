"""ResNets without a classifier. State dicts have torchvision's key names, so that public weight files load."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from ltds.nn.stages import LaterStages, split_layers

ResNetStem = Literal["imagenet", "medium", "small"]
STAGE_NAMES = ("layer1", "layer2", "layer3", "layer4")


def _conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    """relu(x + two 3x3 convolutions of x)."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = _conv3x3(inputs, width, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv3x3(width, width)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += shortcut
        return self.relu(out)  # type: ignore[no-any-return]


class Bottleneck(nn.Module):
    """relu(x + 1x1, 3x3, 1x1 convolutions of x), four times as wide outside as inside."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv3x3(width, width, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += shortcut
        return self.relu(out)  # type: ignore[no-any-return]


class ResNet(nn.Module):
    """Images (N,3,H,W) to features (N,D), D = out_features, entries >= 0.

    The stem divides height and width by 4 ("imagenet": 7x7 stride 2, then max-pool), by 2 ("medium": 3x3
    stride 2, for 48 to 96 pixels) or not at all ("small": 3x3 stride 1, for up to 32 pixels).
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: tuple[int, int, int, int],
        *,
        stem: ResNetStem = "imagenet",
        width: int = 64,
    ) -> None:
        super().__init__()
        self._inputs = width
        if stem == "imagenet":
            self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        else:
            self.conv1 = _conv3x3(3, width, stride=2 if stem == "medium" else 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1) if stem == "imagenet" else nn.Identity()
        self.layer1 = self._stage(block, width, layers[0], stride=1)
        self.layer2 = self._stage(block, 2 * width, layers[1], stride=2)
        self.layer3 = self._stage(block, 4 * width, layers[2], stride=2)
        self.layer4 = self._stage(block, 8 * width, layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.out_features = 8 * width * block.expansion
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def reset_parameters(self) -> None:
        """Draw new weights from the same distributions as the constructor."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.BatchNorm2d):
                module.reset_parameters()
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def _stage(self, block: type[BasicBlock] | type[Bottleneck], width: int, blocks: int, stride: int) -> nn.Sequential:
        outputs = width * block.expansion
        downsample = None
        if stride != 1 or self._inputs != outputs:
            shortcut = nn.Conv2d(self._inputs, outputs, 1, stride=stride, bias=False)
            downsample = nn.Sequential(shortcut, nn.BatchNorm2d(outputs))
        first = block(self._inputs, width, stride, downsample)
        self._inputs = outputs
        return nn.Sequential(first, *(block(outputs, width, 1, None) for _ in range(blocks - 1)))

    @property
    def stages(self) -> tuple[nn.Module, ...]:
        """The four residual stages, whose outputs are feature maps (N,C,H,W), early to late."""
        return self.layer1, self.layer2, self.layer3, self.layer4

    def split(self, stages: int) -> tuple[nn.Module, LaterStages]:
        """The stem with the first `stages` stages, and the later ones; both share the weights."""
        names = ("conv1", "bn1", "relu", "maxpool", *STAGE_NAMES, "avgpool")
        layers = {name: self.get_submodule(name) for name in names} | {"flatten": nn.Flatten()}
        return split_layers(layers, STAGE_NAMES, stages, self.out_features)

    def forward(self, images: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.avgpool(x).flatten(1)  # type: ignore[no-any-return]
