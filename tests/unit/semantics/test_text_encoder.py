"""Text encoders: pooling against one text at a time, CLIP's tower, other kinds of models, the cache."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from ltds.core.errors import ConfigError, DataError
from ltds.semantics.pretrained import folder_sha256
from ltds.semantics.text_encoder import from_clip, from_text_encoder

TEXTS = {"ox": "a strong ox", "whale": "whale", "bear": "a photo of a large brown bear", "odd": "zyx"}
WORDS = ("a", "photo", "of", "strong", "ox", "whale", "large", "brown", "bear")
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


def save_tokenizer(folder: Path, longest: int | None = 16) -> Any:
    """A tokenizer of whole words that puts [CLS] first and [SEP] last."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=longest, **names)
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


@pytest.fixture(scope="module")
def whole_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CLIP with both towers, as its repositories have it: the text tower's own projection_dim is a leftover."""
    from transformers import CLIPConfig, CLIPModel

    folder = tmp_path_factory.mktemp("whole_clip")
    torch.manual_seed(0)
    size = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "projection_dim": 512}
    text = {**size, "hidden_size": 16, "vocab_size": len(VOCABULARY), "max_position_embeddings": 16}
    text |= {"eos_token_id": 3, "bos_token_id": 2, "pad_token_id": 0}
    vision = {**size, "hidden_size": 12, "image_size": 8, "patch_size": 4}
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=6)
    CLIPModel(config).save_pretrained(folder)
    save_tokenizer(folder, None)  # CLIP's own tokenizer files may set no limit
    return folder


@needs_transformers
def test_whole_clip(whole_clip: Path) -> None:
    """Against CLIP's own text features, one text at a time."""
    import transformers

    model = transformers.CLIPModel.from_pretrained(whole_clip).eval()
    assert model.config.text_config.projection_dim == 512
    tokenizer = transformers.AutoTokenizer.from_pretrained(whole_clip)
    with torch.no_grad():
        features = [model.get_text_features(**tokenizer(text, return_tensors="pt")) for text in TEXTS.values()]
    made = from_clip(whole_clip, TEXTS)
    assert made.width == 6
    assert_close(
        made.vectors, torch.nn.functional.normalize(torch.cat([found.pooler_output for found in features]), dim=1)
    )


@needs_transformers
def test_clip_is_no_bert_and_bert_no_clip(whole_clip: Path, bert: Path) -> None:
    with pytest.raises(DataError, match=rf"text only, such as BERT, but got CLIP.*Use clip:{whole_clip}"):
        from_text_encoder(whole_clip, TEXTS)
    with pytest.raises(DataError, match=rf"a CLIP model, but got one of type 'bert'.*use bert:{bert}"):
        from_clip(bert, TEXTS)


@needs_transformers
def test_a_model_that_reads_only_images(tmp_path: Path) -> None:
    from transformers import ViTConfig, ViTModel

    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    ViTModel(ViTConfig(image_size=8, patch_size=4, **size)).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    with pytest.raises(DataError, match="a model for text only, but got ViTModel, which raised"):
        from_text_encoder(tmp_path, TEXTS)


@needs_transformers
@pytest.mark.parametrize(("lost", "named"), [(1, "no 'encoder.layer.0[^ ]*'"), (9, "no '.*' and 4 more")])
def test_weights_that_are_missing_are_named(bert: Path, tmp_path: Path, lost: int, named: str) -> None:
    folder = shutil.copytree(bert, tmp_path / "bert")
    weights = load_file(folder / "model.safetensors")
    gone = [name for name in weights if "encoder.layer.0" in name][:lost]
    save_file({name: weights[name] for name in weights.keys() - gone}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(DataError, match=rf"those of AutoModel, but got {named}\. The file is for"):
        from_text_encoder(folder, TEXTS)


def save_plain_tokenizer(folder: Path) -> None:
    """As GPT-2 has it: no token to pad with, none to begin with, no limit."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", eos_token="[SEP]").save_pretrained(folder)


@needs_transformers
def test_gpt2(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    size = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 16, "initializer_range": 0.5}
    GPT2Model(GPT2Config(vocab_size=len(VOCABULARY), eos_token_id=3, bos_token_id=3, **size)).save_pretrained(tmp_path)
    save_plain_tokenizer(tmp_path)
    made = from_text_encoder(tmp_path, TEXTS)
    assert_close(made.vectors, one_by_one(tmp_path, "GPT2Model", lambda found: found.last_hidden_state[0].mean(0)))
    with pytest.raises(ConfigError, match="argument 'pool' to be 'mean' for a model without a CLS token"):
        from_text_encoder(tmp_path, TEXTS, "cls")


@needs_transformers
def test_t5_by_its_encoder(tmp_path: Path) -> None:
    from transformers import T5Config, T5Model

    torch.manual_seed(0)
    size = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    T5Model(T5Config(vocab_size=len(VOCABULARY), decoder_start_token_id=0, **size)).save_pretrained(tmp_path)
    save_tokenizer(tmp_path, None)
    made = from_text_encoder(tmp_path, {**TEXTS, "long": " ".join(["ox"] * 600)})
    assert made.provenance["cut_short"] == []  # T5 has no positions to run out of
    wanted = one_by_one(tmp_path, "T5EncoderModel", lambda found: found.last_hidden_state[0].mean(0))
    assert_close(made.vectors[:4], wanted, atol=1e-5, rtol=1e-4)


def into_cache(folder: Path, home: Path, name: str) -> str:
    """Lay the model out as a download would: blobs, a snapshot of links to them, and the name of its commit."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    place = home / "hub" / f"models--{name.replace('/', '--')}"
    for part in ("blobs", "refs", f"snapshots/{commit}"):
        (place / part).mkdir(parents=True)
    (place / "refs" / "main").write_text(commit)
    for file in folder.iterdir():
        shutil.copy(file, place / "blobs" / f"{file.name}-blob")
        (place / "snapshots" / commit / file.name).symlink_to(f"../../blobs/{file.name}-blob")
    return commit


NO_NETWORK = """
import socket, sys
def connect(*_): raise SystemExit("the network was asked for")
socket.socket.connect = socket.getaddrinfo = connect
from ltds.core.errors import DataError
from ltds.semantics.text_encoder import from_text_encoder
made = from_text_encoder("tiny/bert", {"ox": "a strong ox", "whale": "whale"})
print(made.provenance["model"], made.provenance["revision"], made.provenance["sha256"])
try:
    from_text_encoder("tiny/absent", {"ox": "ox"})
except DataError as error:
    print(error)
"""


@needs_transformers
def test_a_model_in_the_cache(bert: Path, tmp_path: Path) -> None:
    """In a process of its own, for HF_HOME is read once."""
    commit = into_cache(bert, tmp_path / "home", "tiny/bert")
    settings = {**os.environ, "HF_HOME": str(tmp_path / "home")}
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE"):
        settings.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK], env=settings, cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    found, said = done.stdout.splitlines()
    assert found == f"tiny/bert {commit} {folder_sha256(bert)}"
    assert f"no folder of that name, and no such model in '{tmp_path / 'home/hub'}'" in said
    assert "hf download NAME" in said


@needs_transformers
def test_a_folder_goes_before_the_cache(
    bert: Path, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    commit = into_cache(clip, tmp_path / "home", "tiny/model")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    monkeypatch.chdir(tmp_path)
    assert from_clip("tiny/model", TEXTS).provenance["revision"] == commit
    shutil.copytree(bert, tmp_path / "tiny" / "model")
    made = from_text_encoder("tiny/model", TEXTS)
    assert made.provenance["model"] == "model"
    assert "revision" not in made.provenance


@needs_transformers
def test_texts_too_long_are_noted(bert: Path) -> None:
    made = from_text_encoder(bert, {"long": " ".join(["ox"] * 40), "short": "ox"})
    assert made.provenance["cut_short"] == ["long"]
    assert made.vectors.isfinite().all()


@needs_transformers
def test_folders_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="got no folder of that name, and no such model in"):
        from_text_encoder(tmp_path / "none", TEXTS)
    with pytest.raises(DataError, match=r"without a config.json"):
        from_text_encoder(tmp_path, TEXTS)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(DataError, match="a model for AutoModel"):
        from_text_encoder(tmp_path, TEXTS)


@needs_transformers
def test_the_code_of_a_model_never_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_tokenizer(tmp_path)
    map_ = '"auto_map": {"AutoModel": "own.Own", "AutoConfig": "own.OwnConfig"}'
    (tmp_path / "config.json").write_text('{"model_type": "own", ' + map_ + "}")
    (tmp_path / "own.py").write_text("print('code from a model folder ran')\n")
    with pytest.raises(DataError, match="contains custom code"):
        from_text_encoder(tmp_path, TEXTS)
    assert "ran" not in capsys.readouterr().out
