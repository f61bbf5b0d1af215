"""Datasets that can be built by name. A dataset from elsewhere needs no entry here.

Anybody's folder with a manifest can be used as it is; anybody's function `package.module:function` can be called like
the builders below: it takes `out`, and by keyword whatever it needs, writes a dataset there and returns its Manifest.
A parameter `config`, annotated with a subclass of Settings, takes its settings; one called `progress` a progress bar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_type_hints

from ltds.core.registry import find_or_import
from ltds.data.datasets.recipe import BESTIARY, Recipe

if TYPE_CHECKING:
    from ltds.core.config import Settings
    from ltds.data.manifest import Manifest


@dataclass(frozen=True)
class DatasetBuilder:
    """What a dataset is, the function that builds it, imported only when it is used, and settings that suit it."""

    description: str
    function: str
    recipe: Recipe = field(default_factory=Recipe)


BUILDERS: dict[str, DatasetBuilder] = {
    "bestiary": DatasetBuilder(
        "fifty drawn animals in five styles, nothing to download", "ltds.data.datasets.bestiary:build", BESTIARY
    ),
    "awa2-lts": DatasetBuilder(
        "Animals with Attributes 2, long-tailed, in five styles", "ltds.data.datasets.awa2_lts:build"
    ),
    "imagenet-lts": DatasetBuilder("the lists of ImageNet-LT, in five styles", "ltds.data.datasets.imagenet_lts:build"),
    "pacs-odg": DatasetBuilder(
        "PACS for open domain generalization: each source has three classes", "ltds.data.datasets.pacs_odg:build"
    ),
    "pacs": DatasetBuilder("PACS with its official lists", "ltds.data.datasets.pacs:build"),
    "pacs-lt": DatasetBuilder(
        "PACS, long-tailed with a chosen ratio in every domain", "ltds.data.datasets.pacs:build_long_tailed"
    ),
    "folder": DatasetBuilder("images sorted into folders by domain and class", "ltds.data.datasets.folder:build"),
    "lists": DatasetBuilder("images named in text or CSV files", "ltds.data.datasets.lists:build"),
    "lts": DatasetBuilder("class folders made long-tailed and stylised", "ltds.data.datasets.lts:build"),
}


def find_builder(name: str) -> Callable[..., Manifest]:
    """The function that builds the dataset of this name, or the function that "package.module:function" names."""
    known: Mapping[str, Any] = BUILDERS
    path = BUILDERS[name].function if name in BUILDERS else name
    builder: Callable[..., Manifest] = find_or_import("dataset", path, known)
    return builder


def config_type(builder: Callable[..., Any]) -> type[Settings] | None:
    """The class of a builder's settings, the annotation of its parameter `config`; None if it has none."""
    return get_type_hints(builder).get("config")


OWN_IMAGES = ("folder", "lists")  # builders of datasets from the user's images, whatever their names


def find_recipe(dataset: Manifest | str) -> Recipe:
    """The recipe of this dataset, or of a dataset of this name; an empty one for all others."""
    if isinstance(dataset, str):
        known = BUILDERS.get(dataset)
        return known.recipe if known else Recipe()
    if dataset.provenance.get("builder") in OWN_IMAGES:
        return Recipe()
    built = dataset.provenance.get("config")
    return find_recipe(dataset.name).for_images(built if isinstance(built, Mapping) else {})
