"""A very small backbone with convolutions and BatchNorm: for tests and for trying ideas."""

from __future__ import annotations

from torch import Tensor, nn


class TinyNet(nn.Module):
    """Images (N,3,H,W) to features (N,D) through two convolutions of stride 2 and a mean over positions."""

    def __init__(self, out_features: int = 16) -> None:
        super().__init__()
        self.out_features = out_features
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, out_features, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(out_features),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )

    def reset_parameters(self) -> None:
        """Draw new weights from the same distributions as the constructor."""
        for layer in self.body:
            if isinstance(layer, nn.Conv2d | nn.BatchNorm2d):
                layer.reset_parameters()

    @property
    def stages(self) -> tuple[nn.Module, ...]:
        """The modules whose outputs are feature maps (N,C,H,W), early to late: each convolution, each ReLU."""
        return tuple(self.body[i] for i in (0, 2, 3, 5))

    def forward(self, images: Tensor) -> Tensor:
        return self.body(images).flatten(1)  # type: ignore[no-any-return]
