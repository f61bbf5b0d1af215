"""Damaged and invented files for every reader: words or a result, never a traceback, a signal or a hang."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import string
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from ltds.benchmarking.grid import read_grid
from ltds.core.errors import LtdsError
from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.decode import decode
from ltds.data.features import FeatureVectors, write_features
from ltds.data.manifest import Manifest
from ltds.data.stylelist import read_style_list
from ltds.engine.load import load_model
from ltds.evaluation.features import FeatureTable
from ltds.evaluation.table import PredictionTable
from ltds.evaluation.thumbnails import load_thumbnails
from ltds.planning.series import RunSeries
from ltds.reporting.collection import collect
from ltds.semantics.embeddings import ClassEmbeddings
from ltds.semantics.tables import read_table
from ltds.semantics.word_vectors import read_vectors
from soak.child import in_child
from soak.tally import Tally

BATCH = 25  # mutations in one child


@dataclass(frozen=True)
class FuzzedReader:
    """A file that ltds reads, in a folder that is otherwise in order, and the reader."""

    file: Path
    read: Callable[[], object]


def readers(data: Manifest, done: Path, folder: Path) -> dict[str, FuzzedReader]:
    """Every kind of file that may come from somebody else, each in a folder of its own."""
    found: dict[str, FuzzedReader] = {}

    def copy(name: str, source: Path, file: str) -> Path:
        shutil.copytree(source, folder / name, symlinks=True)
        return folder / name / file

    for name in ("manifest.csv", "manifest.json"):
        file = copy(name, data.root, name)
        found[name] = FuzzedReader(file, partial(Manifest.read, file.parent))
    for name in ("config.toml", "task.json", "model.json", "embeddings.npz", "checkpoints/best.safetensors"):
        file = copy(f"run-{Path(name).name}", done, name)
        found[name] = FuzzedReader(file, partial(load_model, folder / f"run-{Path(name).name}", device="cpu"))
    for name in ("metrics.json", "environment.json", "log.jsonl"):
        file = copy(f"run-{name}", done, name)
        found[name] = FuzzedReader(file, partial(_reported, file.parent))
    for name, load in (
        ("test", PredictionTable.load),
        ("features", FeatureTable.load),
        ("thumbnails", load_thumbnails),
    ):
        if (done / "predictions" / f"{name}.npz").is_file():
            file = copy(f"run-{name}", done, f"predictions/{name}.npz")
            found[f"{name}.npz"] = FuzzedReader(file, partial(load, file))
    for file, read in _made(data, folder / "made"):
        found[file.name] = FuzzedReader(file, read)
    return found


def _reported(run: Path) -> object:
    return [row.journal for row in collect([run]).runs] and RunDirectory(run).read_journal()


def _made(data: Manifest, folder: Path) -> list[tuple[Path, Callable[[], object]]]:
    """Files that users bring: vectors, tables, lists, settings and images of every format."""
    folder.mkdir(parents=True)
    words, numbers = list(data.classes), np.eye(6, 8, dtype=np.float32)
    lines = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, numbers, strict=True))
    pairs = zip(words, numbers, strict=True)
    binary = b"6 8\n" + b"".join(word.encode() + b" " + struct.pack("<8f", *row) + b"\n" for word, row in pairs)
    texts = {
        "vectors.txt": lines.encode(),
        "vectors.txt.gz": gzip.compress(lines.encode()),
        "vectors.bin": binary,
        "attributes.csv": (data.root / "semantics" / "attributes.csv").read_bytes(),
        "stylize.csv": b"path,source,style\nimages/a.png,images/b.png,classical:oil\n",
        "grid.toml": b'data = "d"\nmethods = ["agg", "dc"]\nseeds = [0, 1]\n[settings.optimizer]\nlr = 0.1\n',
        "series.json": json.dumps({"format": 1, "runs": {"final": {"data": {"root": "d"}}}}).encode(),
    }
    for name, content in texts.items():
        (folder / name).write_bytes(content)
    np.savez(folder / "table.npz", vectors=numbers, class_names=np.array(words))
    np.save(folder / "table.npy", numbers)
    write_features(folder / "precomputed.npz", np.ones((len(data), 4), np.float32), data.paths)
    reads: dict[str, Callable[[Path], object]] = {
        **{name: partial(_vectors, words) for name in texts if name.startswith("vectors")},
        "attributes.csv": ClassEmbeddings.from_table,
        "table.npz": ClassEmbeddings.from_table,
        "table.npy": partial(read_table, names=words),
        "precomputed.npz": partial(_features, data),
        "stylize.csv": lambda file: list(read_style_list(file.parent)),
        "grid.toml": lambda file: read_grid(file, {}),
        "series.json": lambda file: RunSeries.read(file.parent),
    }
    picture = Image.fromarray(numpy_generator(0, "soak").integers(0, 256, (24, 30, 3), dtype=np.uint8))
    for kind in ("png", "jpeg", "webp", "gif", "bmp", "tiff", "jp2", "ppm"):
        stream = io.BytesIO()
        picture.save(stream, format={"jp2": "JPEG2000"}.get(kind, kind.upper()))
        (folder / f"image.{kind}").write_bytes(stream.getvalue())
        reads[f"image.{kind}"] = lambda file: decode(file, 16)
    return [(folder / name, partial(read, folder / name)) for name, read in reads.items()]


def _vectors(words: list[str], file: Path) -> object:
    return read_vectors(file, words)


def _features(data: Manifest, file: Path) -> object:
    return FeatureVectors.read(file, data)


def mutate(reader: FuzzedReader, name: str, count: int, number: int = 0) -> Tally:
    """Read `count` damaged copies of the file, in children of BATCH copies each."""
    tally, whole = Tally("damaged real file read"), reader.file.read_bytes()
    undamaged = in_child(reader.read)
    if undamaged.kind != "ended":
        tally.fault(f"{name}, undamaged: {undamaged.kind}: {undamaged.said[-2000:]}")
    try:
        for start in range(number, number + count, BATCH):
            stop = min(start + BATCH, number + count)
            end = in_child(partial(_read_mutants, reader, whole, name, range(start, stop)), seconds=180)
            if end.kind == "ended":
                refused = int(end.said)
                tally.add("ended with an error message", refused)
                tally.add("read", stop - start - refused)
            else:
                tally.fault(f"{name}, mutations {start} to {stop}: {end.kind}: {end.said[-2000:]}")
    finally:
        reader.file.write_bytes(whole)
    return tally


def _read_mutants(reader: FuzzedReader, whole: bytes, name: str, numbers: range) -> str:
    refused = 0
    for number in numbers:
        reader.file.write_bytes(mutated(whole, numpy_generator(number, f"soak/mutation/{name}")))
        try:
            reader.read()
        except LtdsError:
            refused += 1
        except BaseException as error:
            error.add_note(f"mutation {number} of {name}")
            raise
    return str(refused)


def mutated(whole: bytes, rng: np.random.Generator) -> bytes:
    """One to four changes: bits, bytes, cuts, repeats, numbers and brackets out of place."""
    content = bytearray(whole)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(content) + 1))
        length = int(rng.integers(1, 1 + min(64, max(1, len(content)))))
        match int(rng.integers(7)):
            case 0 if content:
                content[at % len(content)] ^= 1 << int(rng.integers(8))
            case 1:
                content[at : at + length] = rng.bytes(length)
            case 2:
                del content[at:]
            case 3:
                del content[at : at + length]
            case 4:
                content[at:at] = content[at : at + length] * int(rng.integers(1, 9))
            case 5:
                content[at : at + length] = b"\xff" * length
            case 6:
                odd = (b"-1", b"1e999", b"NaN", b"9" * 5000, b"[" * 2000, b"\x00", b'"', b"\r", "Ä".encode("latin-1"))
                content[at:at] = odd[int(rng.integers(len(odd)))]
    return bytes(content)


def warm_up() -> None:
    """What hypothesis prepares at its first use, once here instead of in every child."""
    settings(max_examples=1, database=None)(given(st.binary(), JSON)(lambda content, value: None))()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(string.ascii_letters, max_size=6), inner),
    max_leaves=12,
)


def invent(reader: FuzzedReader, name: str, examples: int) -> Tally:
    """Hypothesis writes the file: any bytes; for JSON also real content with any value in any place."""
    tally, whole = Tally("file invented by hypothesis read"), reader.file.read_bytes()
    end = in_child(partial(_read_invented, reader, whole, examples), seconds=300)
    reader.file.write_bytes(whole)
    if end.kind == "ended":
        tally.add("read, or ended with an error message", int(end.said))
    else:
        tally.fault(f"{name}: {end.kind}: {end.said[-2000:]}")
    return tally


def _read_invented(reader: FuzzedReader, whole: bytes, examples: int) -> str:
    made = 0

    def read(content: bytes) -> None:
        nonlocal made
        made += 1
        reader.file.write_bytes(content)
        with suppress(LtdsError):
            reader.read()

    once = settings(max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    once(given(st.binary(max_size=200))(read))()
    if reader.file.suffix == ".json":
        real = json.loads(whole)
        places = list(_places(real))
        once(given(st.sampled_from(places), JSON)(lambda at, value: read(_replaced(real, at, value))))()
    return str(made)


def _places(value: object, before: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Where a JSON value has entries, all the way down."""
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))[:3]
    else:
        entries = []
    return [place for key, inner in entries for place in [(*before, key), *_places(inner, (*before, key))]]


def _replaced(real: object, place: tuple[object, ...], value: object) -> bytes:
    changed = json.loads(json.dumps(real))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return json.dumps(changed).encode()
