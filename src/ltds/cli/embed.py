"""`ltds data embed`: class embeddings for a dataset, from attributes, word vectors or text encoders."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ltds.cli.screen import SCREEN
from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.registry import find
from ltds.core.text import few

if TYPE_CHECKING:
    from ltds.data.manifest import Manifest
    from ltds.semantics.embeddings import ClassEmbeddings

SHOWN = 8


class EmbedRequest(NamedTuple):
    """What the user asked for; `argument` is the text after the colon of --with."""

    manifest: Manifest
    argument: str
    text: str
    pool: str
    prompt: str
    aliases: list[str]
    key: str


class Embedder(NamedTuple):
    """A source of embeddings, what must follow its colon ("" for nothing), and the options that it uses."""

    make: Callable[[EmbedRequest], ClassEmbeddings]
    argument: str
    options: tuple[str, ...]


def embed(
    data: Annotated[str, typer.Argument(help="Dataset: 'bestiary' (built in) or a dataset folder.")],
    embedder: Annotated[
        str,
        typer.Option(
            "--with",
            help="attributes[:FILE|AWA2_DIR], glove:FILE, word2vec:FILE, bert:DIR|NAME, clip:DIR|NAME, minilm, "
            "table:FILE.",
        ),
    ],
    text: Annotated[str, typer.Option(help="Text for a class: names, descriptions or descriptions:FILE.")] = "",
    pool: Annotated[str, typer.Option(help="How to combine an encoder's tokens: mean (default) or cls.")] = "",
    prompt: Annotated[str, typer.Option(help="A sentence around each name, e.g. 'a photo of a {}'.")] = "",
    alias: Annotated[
        list[str] | None, typer.Option(help="CLASS=WORDS: words to look up instead of the name. May be repeated.")
    ] = None,
    key: Annotated[str, typer.Option(help="The array to use from a table that holds several.")] = "",
    out: Annotated[Path | None, typer.Option(help="File to write (default: DATA/semantics/NAME.npz).")] = None,
) -> None:
    """Make class embeddings, which some methods train with.

    Example: ltds data embed bestiary --with minilm --text descriptions

    If the dataset has several tables, choose one for training with --set semantics.table=FILE.
    """
    from ltds.core.array_files import provenance_in
    from ltds.core.files import refuse_to_replace
    from ltds.data.datasets.opening import open_dataset
    from ltds.semantics.archive import write_embeddings

    kind, _, argument = embedder.partition(":")
    chosen = find("source of class embeddings", kind, EMBEDDERS)
    given = {"text": text, "pool": pool, "prompt": prompt, "alias": " ".join(alias or []), "key": key}
    _check_options(kind, argument, chosen, {name for name, value in given.items() if value})
    manifest = open_dataset(data, SCREEN)
    variant = [kind, "descriptions" if text.startswith("descriptions") else "", pool if pool == "cls" else "", key]
    file = out or manifest.root / "semantics" / ("-".join(filter(None, variant)) + ".npz")
    refuse_to_replace(file, "a table of ltds data embed", lambda there: "with" in provenance_in(there))
    request = EmbedRequest(manifest, argument, text or "names", pool or "mean", prompt or "{}", alias or [], key)
    embeddings = chosen.make(request)
    command = shlex.join(["ltds", *sys.argv[1:]])
    embeddings = replace(embeddings, provenance={**embeddings.provenance, "with": embedder, "command": command})
    write_embeddings(file, embeddings)
    _report(embeddings)
    print(file)


def _check_options(kind: str, argument: str, embedder: Embedder, given: set[str]) -> None:
    """Refuse a missing or needless argument, and options without effect."""
    if bool(argument) != bool(embedder.argument) and not (embedder.argument.startswith("[") and not argument):
        rule = f"written as '{kind}:{embedder.argument.strip('[]')}'" if embedder.argument else f"'{kind}' alone"
        raise ConfigError(expected("--with", rule, f"'{kind}:{argument}'", "Write it like this."))
    without_effect = sorted(given - set(embedder.options))
    if without_effect:
        used = ", ".join(f"--{name}" for name in embedder.options) or "none"
        rule, remedy = f"an option that '{kind}' uses", f"Leave it out; '{kind}' uses {used}."
        raise ConfigError(expected(f"--{without_effect[0]}", rule, "one without effect", remedy))


def _report(embeddings: ClassEmbeddings) -> None:
    from ltds.semantics.nearness import same_vectors, similar_classes

    for names in same_vectors(embeddings):
        SCREEN.say(f"These have the same vector, so it cannot tell them apart: {few(names, SHOWN)}")
    cut = embeddings.provenance.get("cut_short", [])
    if cut:
        SCREEN.say(f"{len(cut)} texts are longer than the model can read and were cut: {few(cut, SHOWN)}")
    SCREEN.say(f"{len(embeddings.names)} classes, {embeddings.width} numbers each. Nearest classes:")
    for name, others in list(similar_classes(embeddings).items())[:SHOWN]:
        SCREEN.say(f"  {name}: " + ", ".join(f"{other} {cosine:.2f}" for other, cosine in others))


def _attributes(request: EmbedRequest) -> ClassEmbeddings:
    from ltds.semantics.attributes import from_attributes_csv, from_awa2

    file = Path(request.argument or request.manifest.root / "semantics" / "attributes.csv")
    if not request.argument and not file.is_file():
        remedy = "Write one, or give AWA2's folder or a CSV file: --with attributes:PATH."
        raise DataError(expected(f"'{file}'", "a table of attributes", "nothing there", remedy))
    table = from_awa2(file) if file.is_dir() else from_attributes_csv(file)
    return table.aligned_to(request.manifest.classes)


def _table(request: EmbedRequest) -> ClassEmbeddings:
    from ltds.core.files import sha256
    from ltds.semantics.embeddings import ClassEmbeddings

    file = Path(request.argument)
    table = ClassEmbeddings.from_table(file, key=request.key or None).aligned_to(request.manifest.classes)
    return replace(table, provenance={**table.provenance, "sha256": sha256(file)})


def _word_vectors(request: EmbedRequest) -> ClassEmbeddings:
    from ltds.semantics.texts import read_aliases
    from ltds.semantics.word_vectors import from_word_vectors

    classes = request.manifest.classes
    return from_word_vectors(Path(request.argument), classes, read_aliases(request.aliases, classes))


def _encoder(request: EmbedRequest) -> ClassEmbeddings:
    from ltds.semantics.pretrained import minilm_folder
    from ltds.semantics.text_encoder import from_text_encoder

    if request.pool not in ("mean", "cls"):
        raise ConfigError(expected("--pool", "mean or cls", f"'{request.pool}'", "Leave it out for mean."))
    model = request.argument or minilm_folder()
    return from_text_encoder(model, _texts(request), "cls" if request.pool == "cls" else "mean")


def _clip(request: EmbedRequest) -> ClassEmbeddings:
    from ltds.semantics.text_encoder import from_clip

    return from_clip(request.argument, _texts(request))


def _texts(request: EmbedRequest) -> dict[str, str]:
    from ltds.semantics.texts import name_texts, read_descriptions

    kind, _, file = request.text.partition(":")
    if kind == "names" and not file:
        return name_texts(request.manifest.classes, request.prompt)
    if kind != "descriptions":
        remedy = "To use a file of descriptions, write --text descriptions:FILE."
        raise ConfigError(expected("--text", "names, descriptions or descriptions:FILE", f"'{request.text}'", remedy))
    if request.prompt != "{}":
        remedy = "Leave it out: a description is a sentence already."
        raise ConfigError(expected("--prompt", "given for names alone", f"'{request.prompt}'", remedy))
    default = request.manifest.root / "semantics" / "descriptions.csv"
    return read_descriptions(Path(file) if file else default, request.manifest.classes)


EMBEDDERS = {
    "attributes": Embedder(_attributes, "[PATH]", ()),
    "glove": Embedder(_word_vectors, "FILE", ("alias",)),
    "word2vec": Embedder(_word_vectors, "FILE", ("alias",)),
    "bert": Embedder(_encoder, "DIR|NAME", ("text", "pool", "prompt")),
    "clip": Embedder(_clip, "DIR|NAME", ("text", "prompt")),
    "minilm": Embedder(_encoder, "", ("text", "pool", "prompt")),
    "table": Embedder(_table, "FILE", ("key",)),
}
