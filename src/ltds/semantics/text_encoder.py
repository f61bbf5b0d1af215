"""Text encoders: class embeddings from a language model that reads a text about each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from ltds.core.errors import ConfigError, DataError, expected
from ltds.semantics.embeddings import ClassEmbeddings
from ltds.semantics.pretrained import LoadedModel, first_line, folder_sha256, load_clip, load_encoder

Pool = Literal["mean", "cls"]
Encode = Callable[[Mapping[str, Tensor]], Tensor]
BATCH = 32
NO_LIMIT = 1_000_000  # tokenizers without a limit report 1e30


def from_text_encoder(name: str | Path, texts: Mapping[str, str], pool: Pool = "mean") -> ClassEmbeddings:
    """The model's last layer for each class's text: the mean over its tokens, or the first token (CLS).

    `name` is a folder, or a model in the Hugging Face cache.
    """
    loaded = load_encoder(name)
    if pool == "cls" and loaded.tokenizer.cls_token is None:
        remedy = "Use 'mean', which works for every model."
        raise ConfigError(expected("argument 'pool'", "'mean' for a model without a CLS token", "'cls'", remedy))

    def encode(inputs: Mapping[str, Tensor]) -> Tensor:
        hidden: Tensor = loaded.model(**inputs).last_hidden_state  # (N,tokens,S)
        if pool == "cls":
            return hidden[:, 0]
        mask = inputs["attention_mask"].unsqueeze(2).to(hidden)
        return (hidden * mask).sum(1) / mask.sum(1)

    return _embeddings(loaded, texts, encode, f"pooled by {pool}")


def from_clip(name: str | Path, texts: Mapping[str, str]) -> ClassEmbeddings:
    """CLIP's projected text features, which are in the same space as its image features."""
    loaded = load_clip(name)

    def encode(inputs: Mapping[str, Tensor]) -> Tensor:
        projected: Tensor = loaded.model(**inputs).text_embeds
        return projected

    return _embeddings(loaded, texts, encode, "projected by CLIP")


def _embeddings(loaded: LoadedModel, texts: Mapping[str, str], encode: Encode, how: str) -> ClassEmbeddings:
    model, tokenizer, source = loaded
    longest = _longest(model, tokenizer)
    try:
        vectors = torch.cat(list(_encoded(tokenizer, list(texts.values()), longest, encode)))
    except Exception as error:  # every model class fails in its own way
        rule, remedy = (
            "a model for text only",
            "Use a model such as BERT, MiniLM, T5 or GPT-2; for CLIP: clip:DIR.",
        )
        got = f"{type(model).__name__}, which raised {first_line(error)}"
        raise DataError(expected(f"'{source.name}'", rule, got, remedy)) from error
    lengths = {name: len(tokenizer(text, verbose=False).input_ids) for name, text in texts.items()}
    provenance = {
        "model": source.name,
        **({"revision": source.revision} if source.revision else {}),
        "architecture": type(model).__name__,
        "how": how,
        "sha256": folder_sha256(source.folder),
        "texts": dict(texts),
        "cut_short": [name for name, length in lengths.items() if longest is not None and length > longest],
    }
    return ClassEmbeddings(tuple(texts), vectors, provenance)


def _encoded(tokenizer: Any, texts: list[str], longest: int | None, encode: Encode) -> Iterator[Tensor]:
    """(N,S) for each batch of texts. If a model has no padding token, any token will do, because it is masked."""
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.padding_side = "right"  # the first token stays first, and positions count from the start of the text
    with torch.inference_mode():
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            yield encode(
                tokenizer(batch, padding=True, truncation=longest is not None, max_length=longest, return_tensors="pt")
            )


def _longest(model: Any, tokenizer: Any) -> int | None:
    """How many tokens the model reads; None if there is no limit."""
    positions = getattr(model.config, "max_position_embeddings", None)
    limits = [limit for limit in (tokenizer.model_max_length, positions) if limit is not None and limit < NO_LIMIT]
    return min(limits, default=None)
