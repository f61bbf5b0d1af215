"""`ltds data embed`: what is known of a dataset's classes, as a table of class embeddings."""

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
from ltds.core.names import find

if TYPE_CHECKING:
    from ltds.data.manifest import Manifest
    from ltds.semantics.embeddings import ClassEmbeddings

SHOWN = 8


class Wish(NamedTuple):
    """What the user asked for; `argument` is what stands behind the colon of --with."""

    manifest: Manifest
    argument: str
    text: str
    pool: str
    prompt: str
    aliases: list[str]
    key: str


class Way(NamedTuple):
    """A way to make embeddings, what must stand behind its colon ("" for nothing), and the options it heeds."""

    make: Callable[[Wish], ClassEmbeddings]
    argument: str
    options: tuple[str, ...]


def embed(
    data: Annotated[str, typer.Argument(help="'bestiary', or a folder with a manifest.")],
    way: Annotated[
        str,
        typer.Option(
            "--with",
            help="attributes[:FILE|AWA2_DIR], glove:FILE, word2vec:FILE, bert:DIR|NAME, clip:DIR|NAME, minilm, "
            "table:FILE.",
        ),
    ],
    text: Annotated[str, typer.Option(help="What is said of a class: names, descriptions or descriptions:FILE.")] = "",
    pool: Annotated[str, typer.Option(help="Of an encoder's tokens: mean (as if left out) or cls.")] = "",
    prompt: Annotated[str, typer.Option(help="A sentence around names, e.g. 'a photo of a {}'.")] = "",
    alias: Annotated[
        list[str] | None, typer.Option(help="CLASS=WORDS to look up instead of its name. May be repeated.")
    ] = None,
    key: Annotated[str, typer.Option(help="The array to take from a table that holds several.")] = "",
    out: Annotated[Path | None, typer.Option(help="File to write; DATA/semantics/NAME.npz if left out.")] = None,
) -> None:
    """Make class embeddings. Train with them by --set semantics.table=FILE, or without where they are the only ones.

    Example: ltds data embed bestiary --with minilm --text descriptions
    """
    from ltds.cli.source import open_data
    from ltds.semantics.archive import write_embeddings

    kind, _, argument = way.partition(":")
    chosen = find("way to embed classes", kind, WAYS)
    given = {"text": text, "pool": pool, "prompt": prompt, "alias": " ".join(alias or []), "key": key}
    _require_heeded(kind, argument, chosen, {name for name, value in given.items() if value})
    manifest = open_data(data)
    made = chosen.make(Wish(manifest, argument, text or "names", pool or "mean", prompt or "{}", alias or [], key))
    made = replace(made, provenance={**made.provenance, "with": way, "command": shlex.join(["ltds", *sys.argv[1:]])})
    variant = [kind, "descriptions" if text.startswith("descriptions") else "", pool if pool == "cls" else "", key]
    file = out or manifest.root / "semantics" / ("-".join(part for part in variant if part) + ".npz")
    write_embeddings(file, made)
    _report(made)
    print(file)


def _require_heeded(kind: str, argument: str, way: Way, given: set[str]) -> None:
    if bool(argument) != bool(way.argument) and not (way.argument.startswith("[") and not argument):
        rule = f"written as '{kind}:{way.argument.strip('[]')}'" if way.argument else f"'{kind}' alone"
        raise ConfigError(expected("--with", rule, f"'{kind}:{argument}'", "Write it so."))
    idle = sorted(given - set(way.options))
    if idle:
        heeded = ", ".join(f"--{name}" for name in way.options) or "none"
        remedy = f"Leave it out; '{kind}' heeds {heeded}."
        raise ConfigError(expected(f"--{idle[0]}", f"an option that '{kind}' heeds", "one without effect", remedy))


def _report(made: ClassEmbeddings) -> None:
    from ltds.semantics.nearness import nearest_classes, same_vectors

    for names in same_vectors(made):
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        SCREEN.say(f"These have the same vector, so it does not tell them apart: {', '.join(names[:SHOWN])}{more}")
    cut = made.provenance.get("cut_short", [])
    if cut:
        SCREEN.say(f"{len(cut)} texts are longer than the model reads, and were cut: {', '.join(cut[:SHOWN])}")
    SCREEN.say(f"{len(made.names)} classes, {made.width} numbers each. Nearest to")
    for name, others in list(nearest_classes(made).items())[:SHOWN]:
        SCREEN.say(f"  {name}: " + ", ".join(f"{other} {cosine:.2f}" for other, cosine in others))


def _attributes(wish: Wish) -> ClassEmbeddings:
    from ltds.semantics.attributes import from_attributes_csv, from_awa2

    file = Path(wish.argument or wish.manifest.root / "semantics" / "attributes.csv")
    if not wish.argument and not file.is_file():
        remedy = "Write one, or name AWA2's folder or a CSV file: --with attributes:PATH."
        raise DataError(expected(f"'{file}'", "a table of attributes", "nothing there", remedy))
    made = from_awa2(file) if file.is_dir() else from_attributes_csv(file)
    return made.aligned_to(wish.manifest.classes)


def _table(wish: Wish) -> ClassEmbeddings:
    from ltds.core.files import sha256
    from ltds.semantics.embeddings import ClassEmbeddings

    file = Path(wish.argument)
    made = ClassEmbeddings.from_table(file, key=wish.key or None).aligned_to(wish.manifest.classes)
    return replace(made, provenance={**made.provenance, "sha256": sha256(file)})


def _word_vectors(wish: Wish) -> ClassEmbeddings:
    from ltds.semantics.texts import read_aliases
    from ltds.semantics.word_vectors import from_word_vectors

    classes = wish.manifest.classes
    return from_word_vectors(Path(wish.argument), classes, read_aliases(wish.aliases, classes))


def _encoder(wish: Wish) -> ClassEmbeddings:
    from ltds.semantics.pretrained import minilm_folder
    from ltds.semantics.text_encoder import from_text_encoder

    if wish.pool not in ("mean", "cls"):
        raise ConfigError(expected("--pool", "mean or cls", f"'{wish.pool}'", "Leave it out for mean."))
    model = wish.argument or minilm_folder()
    return from_text_encoder(model, _texts(wish), "cls" if wish.pool == "cls" else "mean")


def _clip(wish: Wish) -> ClassEmbeddings:
    from ltds.semantics.text_encoder import from_clip

    return from_clip(wish.argument, _texts(wish))


def _texts(wish: Wish) -> dict[str, str]:
    from ltds.semantics.texts import name_texts, read_descriptions

    kind, _, file = wish.text.partition(":")
    if kind == "names" and not file:
        return name_texts(wish.manifest.classes, wish.prompt)
    if kind != "descriptions":
        remedy = "A file of descriptions is named as --text descriptions:FILE."
        raise ConfigError(expected("--text", "names, descriptions or descriptions:FILE", f"'{wish.text}'", remedy))
    if wish.prompt != "{}":
        remedy = "Leave it out: a description is a sentence already."
        raise ConfigError(expected("--prompt", "given for names alone", f"'{wish.prompt}'", remedy))
    own = wish.manifest.root / "semantics" / "descriptions.csv"
    return read_descriptions(Path(file) if file else own, wish.manifest.classes)


WAYS = {
    "attributes": Way(_attributes, "[PATH]", ()),
    "glove": Way(_word_vectors, "FILE", ("alias",)),
    "word2vec": Way(_word_vectors, "FILE", ("alias",)),
    "bert": Way(_encoder, "DIR|NAME", ("text", "pool", "prompt")),
    "clip": Way(_clip, "DIR|NAME", ("text", "prompt")),
    "minilm": Way(_encoder, "", ("text", "pool", "prompt")),
    "table": Way(_table, "FILE", ("key",)),
}
