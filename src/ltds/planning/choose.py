"""The choices of a plan, each a small function from facts to settings with a reason.

Where numbers stand behind a choice, docs/pacs.md (a pretrained network on PACS) and docs/bestiary.md (one trained
from scratch) have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ltds.core.config import check_settings, merge, nested
from ltds.data.manifest import Manifest
from ltds.engine.settings import decay_for
from ltds.methods.entry import MethodEntry
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from ltds.methods.registry import find_method
from ltds.planning.facts import DatasetFacts, fewest_trained_classes
from ltds.planning.network import Learning
from ltds.planning.run_plan import Choice, Given
from ltds.planning.stages import SIZE, VARIANTS

SIDES = (32, 48, 64, 96, 128, 160, 192, 224)
LARGEST_ON_CPU, SMALLEST_PRETRAINED = 96, 64
SWAD = frozenset({"start_patience", "end_patience", "tolerance"})  # settings of another average than the chosen one
BATCH_CPU, BATCH_GPU, BATCH_FEATURES = 12, 32, 24


def choose_method(facts: DatasetFacts, embeddings: str) -> tuple[str, str]:
    """The name of the method to start with, and why. `embeddings`: where class embeddings come from, "" for none."""
    tail = f"{facts.largest_class} to {facts.smallest_class} training images a class"
    if embeddings and facts.sources >= 2:
        return "ltds", f"{facts.sources} source domains, {tail}, and class embeddings ({embeddings})"
    missing = "one source domain, and ltds needs two" if facts.sources < 2 else "no class embeddings, which ltds needs"
    if facts.sources >= 2 and facts.missing_pairs:
        return "dc", f"not every domain has every class ({tail}), so it counts them in each; {missing}"
    if facts.long_tailed:
        return "bsce", f"long-tailed ({tail}); {missing}"
    return "agg", f"classes about even ({tail}); {missing}"


def choose_size(facts: DatasetFacts, given: Given, learning: Learning, on_cpu: bool) -> Choice | None:
    data = given.get("data", {})
    if learning == "features":
        return None
    if learning == "stages":
        return _crops(data)
    settings: dict[str, Any] = {}
    if "scale" not in data.get("augmentation", {}):
        settings["data.augmentation.scale"] = [0.5, 1.0]
    if "size" in data:
        reason = "as you asked; a random crop has at least half of the image"
        return Choice("image size", settings, f"{data['size']} pixels", reason) if settings else None
    side = facts.shorter_side or 224
    fitting = [s for s in SIDES if s <= side] or [max(16, side - side % 8)]
    size = fitting[-1]
    reason = f"the median image is {side} pixels high or wide" if facts.shorter_side else "the usual size"
    if on_cpu and size > LARGEST_ON_CPU:
        size, reason = LARGEST_ON_CPU, f"{reason}, but this machine has no GPU"
    if learning == "pretrained" and size < SMALLEST_PRETRAINED:
        size, reason = SMALLEST_PRETRAINED, f"{reason}, but the pretrained network needs larger ones"
    return Choice("image size", {"data.size": size, **settings}, f"{size} pixels", reason)


def _crops(data: Mapping[str, Any]) -> Choice | None:
    """The images that frozen stages compute once: their size, and how many crops of each."""
    suited = {"data.size": SIZE, "data.cached_variants": VARIANTS}
    settings = {name: value for name, value in suited.items() if name.split(".")[1] not in data}
    shown = f"{data.get('size', SIZE)} pixels"
    reason = f"computed once for {data.get('cached_variants', VARIANTS)} crops of each training image"
    return Choice("image size", settings, shown, reason) if settings else None


def choose_stem(size: int) -> dict[str, Any]:
    """The first layers of a ResNet that suit the size of the images."""
    return {"backbone.stem": "small" if size <= 40 else "medium" if size <= 96 else "imagenet"}


def choose_batch(facts: DatasetFacts, given: Given, times: int, learning: Learning, on_cpu: bool) -> Choice | None:
    if "batch_size" in given.get("data", {}):
        return None
    usual = BATCH_FEATURES if learning in ("features", "stages") else BATCH_CPU if on_cpu else BATCH_GPU
    most = max(2, facts.smallest_domain // times)
    reason = f"of each of {facts.sources} source domains in a step"
    if most < usual:
        reason += f"; '{facts.smallest_domain_name}', the smallest, has only {facts.smallest_domain} training images"
    return Choice("batch", {"data.batch_size": min(usual, most)}, f"{min(usual, most)} images", reason)


def choose_optimizer(given: Given, learning: Learning) -> Choice | None:
    own, scratch = given.get("optimizer", {}), learning == "scratch"
    if own.get("name", "sgd") != "sgd":  # the numbers here are for sgd
        return None
    suited = {"optimizer.name": "sgd", "optimizer.lr": 0.1 if scratch else 0.01}
    settings: dict[str, Any] = {name: value for name, value in suited.items() if name.split(".")[1] not in own}
    if leaves_milestones_open(given):
        settings["schedule.milestones"] = [0.6, 0.9] if scratch else [0.8]
    reason = "for a network trained from scratch" if scratch else "small, so that what the network knows is kept"
    if "lr" in own:
        reason = "as you asked"
    shown = f"sgd, learning rate {own.get('lr', suited['optimizer.lr']):g}"
    return Choice("learning", settings, shown, reason) if settings else None


def leaves_milestones_open(given: Given) -> bool:
    """Whether the user says nothing about how the learning rate falls."""
    return not set(given.get("schedule", {})) & {"decay", "milestones", "gamma"}


def choose_gpu_precision(given: Given, on_cpu: bool) -> Choice | None:
    """On a GPU: bfloat16 if it has it. Elsewhere float32, in which accuracy was measured."""
    if on_cpu or "precision" in given.get("run", {}):
        return None
    reason = "the network computes in bfloat16 if the GPU has it, which is faster; weights and losses stay float32"
    return Choice("precision", {"run.precision": "auto"}, "auto", reason)


def choose_averaging(given: Given, steps: int, learning: Learning) -> Choice | None:
    """A moving average of the weights.

    On features the last average is kept, which was better in unseen domains than the best validated one, by 2 points
    of accuracy, in a comparison inside the sources of PACS-ODG (docs/pacs.md). So it is for the last stage, which
    was measured with the settings for features.
    """
    settings = averaging_settings(given, steps)
    if settings is None:
        return None
    decay = settings.get("averaging.decay") or given["averaging"]["decay"]
    if learning in ("features", "stages") and not set(given.get("schedule", {})) & {"keep", "patience"}:
        settings["schedule.keep"] = "last"
    reason = "the average of the last weights is steadier than the last ones alone"
    return Choice("averaging", settings, f"ema, decay {decay:g}", reason) if settings else None


def averaging_settings(given: Given, steps: int) -> dict[str, Any] | None:
    """What the user leaves open of an average over about the last tenth of the steps; None if they ask for another.

    A text stands for the whole group of settings.
    """
    own = given.get("averaging", {})
    if not isinstance(own, Mapping) or own.get("name", "ema") != "ema" or SWAD & own.keys():
        return None
    suited = {"averaging.name": "ema", "averaging.decay": decay_for(steps)}
    return {name: value for name, value in suited.items() if name.split(".")[1] not in own}


# Features, the last stage, and a pretrained network's inner_lr and augmentation: as measured on PACS
# (docs/pacs.md). Its temperature was chosen on source validation of 654 images of PACS, 100 steps: 77.6 % with 0.2,
# 65.4 % with 1/30. From scratch: docs/bestiary.md.
SUITED: dict[Learning, dict[str, Any]] = {
    "features": {"inner_lr": 0.01, "weights.augmentation": 0.0},
    "stages": {"joint_forward": True, "inner_lr": 0.01, "weights.augmentation": 0.0},
    "pretrained": {"joint_forward": True, "inner_lr": 0.01, "weights.augmentation": 0.0, "temperature": 0.2},
    "scratch": {"temperature": 0.2},
}


def choose_method_settings(name: str, given: Given, learning: Learning) -> dict[str, Any]:
    """Settings of the method that suit the network, without those that contradict what the user gives."""
    wanted = SUITED[learning]
    entry, own = find_method(name), _own(given)
    fields = entry.method.Config.model_fields
    kept: dict[str, Any] = {}
    for setting, value in wanted.items():
        group = setting.split(".")[0]
        if group in own or group not in fields or not _applies(entry, setting):
            continue
        tried = merge(entry.settings, nested({**kept, setting: value}), own)
        if check_settings(entry.method.Config, tried)[0] is not None:
            kept[setting] = value
    return {f"method.{setting}": value for setting, value in kept.items()}


def choose_neighbours(name: str, given: Given, chosen: Mapping[str, Any], manifest: Manifest) -> dict[str, Any]:
    """Fewer semantic neighbours, where the method averages over more classes than there are; the user's are kept.

    `chosen`: the settings of the method that are chosen already.
    """
    entry, own = find_method(name), _own(given)
    settings, _ = check_settings(entry.method.Config, merge(entry.settings, nested(chosen).get("method", {}), own))
    if "neighbours" in own or not isinstance(settings, MetaLtdsConfig) or not settings.borrows:
        return {}
    classes = fewest_trained_classes(manifest) if settings.hide_open_names else len(manifest.classes)
    return {"method.neighbours": classes} if classes < settings.neighbours else {}


def _applies(entry: MethodEntry, setting: str) -> bool:
    """All but joint_forward are for ltds itself, with and without open names; its ablations are left as they are."""
    return setting == "joint_forward" or entry.name in ("ltds", "ltds-hidden-names")


def _own(given: Given) -> dict[str, Any]:
    """The user's settings of the method."""
    return {name: value for name, value in _method_table(given).items() if name != "name"}


def _method_table(given: Given) -> Mapping[str, Any]:
    method = given.get("method", {})
    return method if isinstance(method, Mapping) else {"name": method}
