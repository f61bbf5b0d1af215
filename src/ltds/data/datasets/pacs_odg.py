"""PACS-ODG: open domain generalization on PACS, the protocol of DAML (Shu et al., CVPR 2021)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from ltds.core.errors import expected
from ltds.core.progress import SILENT, Progress
from ltds.data.build.dataset import build_dataset
from ltds.data.build.plan import BuildConfig, Plan, variant
from ltds.data.datasets.pacs import CLASSES, LabelledPaths, PacsLists, add, find_pacs, key_of, read_lists, start_pacs
from ltds.data.manifest import Manifest

ORDERS = {  # the order of the letters says which source trains on which classes; the last domain is the target
    "CPS-A": ("cartoon", "photo", "sketch", "art_painting"),
    "PAC-S": ("photo", "art_painting", "cartoon", "sketch"),
    "ACS-P": ("art_painting", "cartoon", "sketch", "photo"),
    "SPA-C": ("sketch", "photo", "art_painting", "cartoon"),
}
WARNING = (
    "the test list of a source domain is the whole domain, with its training and validation images. "
    "Only the accuracy on the target is measured on new images"
)


class PacsOdgConfig(BuildConfig):
    """Which domains, which classes each source trains on, and what a source is tested on."""

    order: Literal["CPS-A", "PAC-S", "ACS-P", "SPA-C"] = Field(
        description="three sources and, after the dash, the target"
    )
    class_sets: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] = Field(
        default=(("dog", "elephant", "guitar"), ("dog", "giraffe", "horse"), ("elephant", "giraffe", "house")),
        description="the classes of the first, second and third source",
    )
    source_test: Literal["all", "val"] = Field(
        default="all", description="a source's test images: its official test list (all of it) or its crossval list"
    )

    @field_validator("class_sets")
    @classmethod
    def _known(cls, class_sets: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        unknown = sorted({name for names in class_sets for name in names} - set(CLASSES))
        if unknown or not all(class_sets):
            raise ValueError(
                expected("class_sets", f"of {', '.join(CLASSES)}", unknown or "an empty set", "Correct it.")
            )
        return class_sets


def plan_pacs_odg(lists: PacsLists, config: PacsOdgConfig) -> Plan:
    """Sources in their order, then the target. Seven classes; the one that no source has (person) is open.

    Train and val: a source's train and crossval lists, only its class set. Test: the target's complete list; of a
    source its complete list ("all") or its crossval list ("val"), with all classes.
    """
    *sources, target = ORDERS[config.order]
    plan = start_pacs(variant(f"pacs-odg-{config.order.lower()}", config), ORDERS[config.order], repeats=True)
    plan.facts = {"held_out": target, "test_images": _about_test(config)}
    for domain, names in zip(sources, config.class_sets, strict=True):
        images = lists.images[domain]
        add(plan, _only(images["train"], names), domain, "train")
        add(plan, _only(images["val"], names), domain, "val")
        add(plan, lists.whole(domain) if config.source_test == "all" else images["val"], domain, "test")
    add(plan, lists.whole(target), target, "test")
    return plan


def _only(images: LabelledPaths, names: tuple[str, ...]) -> LabelledPaths:
    return {path: label for path, label in images.items() if CLASSES[label] in names}


def _about_test(config: PacsOdgConfig) -> str:
    if config.source_test == "all":
        return WARNING
    return "the test list of a source domain is its crossval list: no training images, but the validation images"


def build(out: Path, source: Path, config: PacsOdgConfig, *, splits: Path, progress: Progress = SILENT) -> Manifest:
    """PACS-ODG in one of its four orders, to be trained with the target held out. Images may have any size."""
    root = find_pacs(source)
    key = key_of("pacs-odg", config, splits)
    return build_dataset(
        out, root, key, lambda _: plan_pacs_odg(read_lists(splits), config), damaged=config.damaged, progress=progress
    )
