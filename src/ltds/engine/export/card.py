"""The model card: what a model was trained on, how good it is and on how many images that rests, and its limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ltds.core.runs import NEAREST_FILE
from ltds.core.task import Task
from ltds.core.text import count, score_text
from ltds.core.trust import code_needed
from ltds.engine.export.card_results import card_results, confidence_gaps, tested_open_classes, trained_domains
from ltds.engine.model_record import UnknownRule
from ltds.engine.own_code import code_checksums, outside_modules
from ltds.engine.preprocessing import FeaturePreprocessing, FrozenPreprocessing
from ltds.engine.stored_model import StoredModel
from ltds.evaluation.class_groups import SHOT_MEANING, SHOTS, shot_groups
from ltds.evaluation.metrics import FEW_OPEN_CLASSES


def model_card(model: StoredModel, to: str, difference: float, checked_on: str, *, with_index: bool = False) -> str:
    """README.md of an exported model, in Markdown. `with_index`: an index of the training images is in its folder."""
    parts = [
        _purpose(model),
        [*_use(model, to), *(_index() if with_index else ())],
        _data(model.task),
        _method(model),
        card_results(model),
        _unknown(model.record.unknown),
    ]
    parts += [_limits(model), _check(to, difference, checked_on)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _purpose(model: StoredModel) -> Iterator[str]:
    known = len(model.task.classes) - len(model.task.open_classes)
    yield f"# {model.config.method_name} on {model.task.name}"
    thing = "a feature vector" if isinstance(model.record.preprocessing, FeaturePreprocessing) else "an image"
    rejects = "" if model.record.unknown.threshold is None else ', or says "unknown"'
    yield f"This model names the class of {thing}, one of {known}{rejects}."


def _use(model: StoredModel, to: str) -> Iterator[str]:
    yield "## How to use it"
    modules = code_needed(model.config.to_dict())
    trust = f", trust={list(modules)}".replace("'", '"') if modules else ""
    load = f'model = ltds.load_model("THIS_FOLDER"{trust})'
    vectors = isinstance(model.record.preprocessing, FeaturePreprocessing)
    if to == "safetensors" and vectors:
        yield from ("```python", "import ltds", load)
        yield from (f"model.predict(vectors)  # an array (N,{model.record.preprocessing.input_dim})", "```")
        yield "It takes feature vectors, computed as for training, no images. Loading it runs no code from this folder."
        yield from _modules(model)
    elif to == "safetensors":
        yield from ("```python", "import ltds", load)
        yield from ('model.predict(["a.jpg", "b.png"])', "```")
        asks = ", which asks for the same trust" if modules else ""
        yield f"or `ltds predict THIS_FOLDER IMAGES`{asks}. Loading it runs no code from this folder."
        yield from _modules(model)
    elif to == "onnx":
        files, needs = ("vectors.npy", "numpy") if vectors else ("a.jpg b.png", "numpy, Pillow")
        yield f"`python predict_onnx.py {files}` needs {needs} and onnxruntime, and nothing of ltds."
        yield 'Classes, preprocessing and the threshold for "unknown" are in `model.json`.'
    else:
        yield '`torch.export.load("model.pt2").module()` maps inputs to logits, probabilities, features.'
        yield 'Classes, preprocessing and the threshold for "unknown" are in `model.json`.'


def _modules(model: StoredModel) -> Iterator[str]:
    """What is needed besides ltds and this folder."""
    checksums = code_checksums(model.config)
    for module in outside_modules(model.config):
        version = f" (SHA-256 of its file at the export: {checksums[module]})" if module in checksums else ""
        yield f"It needs the module `{module}`{version}, which is not included."


def _index() -> Iterator[str]:
    yield ""
    yield (
        f"`{NEAREST_FILE}` finds the training images that are most like an image: `model.predict(images, nearest=3)`. "
        "It contains the names and small copies of all training images; delete it before you pass the folder on to "
        "somebody who must not see them."
    )


def _data(task: Task) -> Iterator[str]:
    counts = task.class_counts
    trained = counts[counts > 0]
    sources = trained_domains(task)
    yield "## Data"
    yield (
        f"Trained on {int(counts.sum())} images of {len(trained)} classes of the dataset {task.name}, from "
        f"{len(sources)} {'domain' if len(sources) == 1 else 'domains'}: "
        + ", ".join(f"{domain} ({images})" for domain, images in sources.items())
        + "."
    )
    if len(trained):
        yield f"The largest class has {int(trained.max())} training images, the smallest {int(trained.min())}."
    if task.held_out is not None:
        yield f"The domain {task.held_out} was kept apart: the model has seen no image of it."
    if task.open_classes:
        yield f"Without a training image, so never named: {', '.join(task.classes[c] for c in task.open_classes)}."
    groups = np.array(shot_groups(task))
    yield (
        "Classes by number of training images: "
        + ", ".join(f"{int((groups == shot).sum())} {shot} ({SHOT_MEANING[shot]})" for shot in SHOTS)
        + "."
    )


def _method(model: StoredModel) -> Iterator[str]:
    config = model.config
    yield "## Method"
    yield f"{config.method_name}: {config.method_entry.summary}"
    yield f"{_network(model)} All settings are in `model.json`."


def _network(model: StoredModel) -> str:
    backbone, preprocessing = model.config.backbone, model.record.preprocessing
    match preprocessing:
        case FeaturePreprocessing(input_dim=dim):
            return f"Network {backbone.name}, on precomputed features of length {dim}."
        case FrozenPreprocessing(images=images, network=network):
            size, stages = images.transform.size, network.stages
            frozen = f"the first {stages} stages of {network.settings.name}" if stages else network.settings.name
            rest = "the rest of it" if stages else backbone.name
            return f"Network: {frozen}, pretrained and not changed, on images of {size} pixels; {rest} was trained."
        case _:
            file = Path(backbone.weights).name
            weights = f", started from the weights {file}" if file else ""
            return f"Network {backbone.name}{weights}, on images of {model.config.data.size} pixels."


def _unknown(rule: UnknownRule) -> Iterator[str]:
    yield '## When it says "unknown"'
    if rule.threshold is None:
        yield (
            "Never: there was no correctly classified validation image to choose a threshold on. Give a threshold of "
            "your own when you predict."
        )
        return
    split = f" (split: {rule.split})" if rule.split else ""
    yield f"When the score {rule.score} is below {score_text(rule.threshold)}. Rule: {rule.rule}{split}."
    if rule.doubt:
        yield f"**{rule.doubt}**"
    elif rule.images is not None:
        yield f"It was chosen on {rule.images} correctly classified validation images."


def _limits(model: StoredModel) -> Iterator[str]:
    task = model.task
    tested = "tested on the images counted above" if model.scores else "not tested"
    yield "## Limits"
    less = "the first table above" if model.scores.get("unseen") else "less"
    yield f"- It was {tested}. On images of another origin expect {less}, and measure it there."
    yield "- It knows only the classes that it was trained on. Images of others are often given one of these names."
    gaps = confidence_gaps(model)
    yield f"- A confidence is the model's own estimate, not a measured probability of being right.{gaps}"
    classes = tested_open_classes(model)
    if 0 < classes < FEW_OPEN_CLASSES:
        yield (
            f"- It was tested on {count(classes, 'class')} unknown to it: it may notice others far more or far less "
            "often."
        )
    rare = shot_groups(task).count("few")
    if rare:
        yield f"- {rare} classes have {SHOT_MEANING['few']} training images: check their predictions by eye."


def _check(to: str, difference: float, checked_on: str) -> Iterator[str]:
    yield "## Export"
    yield (
        f"Written by ltds as {to}, run again and compared with the original on {checked_on}: largest difference "
        f"{difference:.2g}."
    )
