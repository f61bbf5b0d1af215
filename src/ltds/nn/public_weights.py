"""Where to get ImageNet weights for a network that has none in an installed package."""

from __future__ import annotations

from ltds.core.errors import ConfigError
from ltds.nn.libraries import library_of

TORCHVISION = {
    "resnet18": "https://download.pytorch.org/models/resnet18-f37072fd.pth",
    "resnet34": "https://download.pytorch.org/models/resnet34-b627a593.pth",
    "resnet50": "https://download.pytorch.org/models/resnet50-0676ba61.pth",
}


def no_packaged_weights(backbone: str) -> ConfigError:
    """The error for backbone.weights=imagenet where no package has them; nothing is downloaded by itself."""
    return ConfigError(
        f"Expected a backbone whose ImageNet weights come with a package for backbone.weights=imagenet, but got "
        f"'{backbone}'. {_where(backbone)}",
        settings=["backbone.weights"],
    )


def _where(backbone: str) -> str:
    library, name = library_of(backbone), backbone.partition(":")[2]
    if backbone in TORCHVISION:
        return f"Download {TORCHVISION[backbone]} and name the file as backbone.weights."
    if library == "timm":
        code = f"save_file(timm.create_model('{name}', pretrained=True).state_dict(), 'weights.safetensors')"
        modules = "import timm; from safetensors.torch import save_file"
        return f"Where the internet can be reached: {modules}; {code}. Then name that file as backbone.weights."
    if library == "torchvision":
        code = f"torch.save(torchvision.models.get_model('{name}', weights='DEFAULT').state_dict(), 'weights.pth')"
        modules = "import torch, torchvision"
        return f"Where the internet can be reached: {modules}; {code}. Then name that file as backbone.weights."
    if library == "hf":
        return "The weights in its folder are loaded by themselves: leave backbone.weights out."
    return (
        "No weights of it are published in its layout. Use backbone.name=efficientnet-lite0, or resnet18 with a file, "
        "or name a file of your own as backbone.weights."
    )
