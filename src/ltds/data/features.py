"""Precomputed features instead of images: one vector per manifest row, of any modality."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_arrays
from ltds.core.errors import DataError, expected
from ltds.core.files import atomic
from ltds.core.matching import match_names
from ltds.data.manifest import Manifest

LAYOUT = "Expected layout: an .npz with 'features' (N,D) and 'paths' (N), the paths as in manifest.csv."

LARGEST = int(np.finfo(np.float16).max)


@dataclass(frozen=True, eq=False)
class FeatureVectors:
    """values (rows of the manifest, D) float32, finite; `provenance`: how they were computed, if the file says so."""

    values: NDArray[np.float32]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        return int(self.values.shape[1])

    @property
    def network(self) -> Mapping[str, Any]:
        """The network that computed them, as `FrozenNetwork.to_dict` describes it; empty where that is not known."""
        network = self.provenance.get("network")
        return network if isinstance(network, dict) else {}

    @classmethod
    def read(cls, file: Path, manifest: Manifest) -> FeatureVectors:
        """The vectors of a file, in the order of the manifest's rows."""
        features, paths, provenance = _arrays(file)
        _refuse_two_vectors(features, paths, file)
        rows = _rows_by_path(paths, manifest.paths, file)
        values = np.ascontiguousarray(features[rows], dtype=np.float32)
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            got = f"NaN or infinity for '{manifest.paths[row]}'"
            raise DataError(expected(f"the features in '{file}'", "finite", got, "Compute them again."))
        return cls(values, provenance)


def write_features(
    file: str | Path,
    features: NDArray[np.floating],
    paths: Sequence[str | os.PathLike[str]],
    provenance: Mapping[str, Any] | None = None,
) -> None:
    """Write a file of feature vectors of your own, to train on instead of images.

        ltds.write_features("vectors.npz", vectors, manifest.paths)
        ltds.train(manifest, features="vectors.npz", method="ltds", held_out="sketch", out="runs/sketch")

    Args:
        file: The file, named *.npz.
        features: An array (N,D), a vector for each image. It is stored in half precision, which keeps the file small.
        paths: The N images that the vectors belong to, in any order, as the dataset's manifest names them.
        provenance: How the vectors were computed, as JSON values.
    """
    names = _texts(paths)
    _require_fitting(Path(file), np.shape(features), names)
    columns = {"features": _in_half_precision(features, names), "paths": np.asarray(names)}
    if provenance:
        columns["provenance"] = np.asarray(json.dumps(provenance))
    with atomic(Path(file)) as stream:
        np.savez(stream, **columns)  # type: ignore[arg-type]


def _texts(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    names = [os.fspath(path) if isinstance(path, str | os.PathLike) else path for path in paths]
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        got, remedy = f"{wrong!r} ({type(wrong).__name__})", "Name the images as manifest.csv does."
        raise DataError(expected("the paths of features", "texts", got, remedy))
    return names


def _require_fitting(file: Path, shape: tuple[int, ...], names: Sequence[str]) -> None:
    """Raise where no one could read the file that would be written."""
    if file.suffix != ".npz":
        raise DataError(expected("the file for the features", "named *.npz", f"'{file}'", "Give the file this ending."))
    if len(shape) != 2 or shape[1] == 0:
        remedy = "Give a vector of numbers for each path."
        raise DataError(expected("the features", "an array (N,D)", f"an array {shape}", remedy))
    if shape[0] != len(names):
        got, remedy = f"{shape[0]} vectors for {len(names)} paths", "Give a vector for each path."
        raise DataError(expected("the features", "as many as the paths", got, remedy))


def _in_half_precision(features: NDArray[np.floating], paths: Sequence[str]) -> NDArray[np.float16]:
    with np.errstate(over="ignore"):  # refused below
        halves = np.asarray(features, np.float16)
    if not np.isfinite(halves).all():
        first = tuple(np.argwhere(~np.isfinite(halves))[0])
        rule = f"numbers that half precision can hold, from -{LARGEST} to {LARGEST}"
        got = f"{np.asarray(features)[first]:g} for '{paths[first[0]]}'"
        raise DataError(expected("the features", rule, got, "Scale them, or compute them again."))
    return halves


def _arrays(file: Path) -> tuple[NDArray[np.floating], list[str], dict[str, Any]]:
    try:
        archive = read_arrays(file)
        features, paths = archive["features"], archive["paths"]
        provenance = json.loads(str(archive["provenance"])) if "provenance" in archive else {}
    except FileNotFoundError as error:
        raise DataError(expected(f"'{file}'", "a file of features", "nothing: it does not exist", LAYOUT)) from error
    except (OSError, KeyError, ValueError, RecursionError) as error:
        raise DataError(expected(f"'{file}'", "a file of features", f"'{error}'", LAYOUT)) from error
    if features.ndim != 2 or not np.issubdtype(features.dtype, np.floating) or features.shape[1] == 0:
        got = f"an array {features.shape} of {features.dtype}"
        raise DataError(expected(f"'features' in '{file}'", "an array (N,D) of floats", got, LAYOUT))
    if paths.ndim != 1 or len(paths) != len(features) or paths.dtype.kind != "U":
        got = f"an array {paths.shape} of {paths.dtype}"
        raise DataError(expected(f"'paths' in '{file}'", f"{len(features)} texts", got, LAYOUT))
    return features, paths.tolist(), provenance if isinstance(provenance, dict) else {}


def _refuse_two_vectors(features: NDArray[np.floating], paths: list[str], file: Path) -> None:
    """Raise where a path has two different vectors; images that a test repeats may have the same one twice."""
    first: dict[str, int] = {}
    for row, path in enumerate(paths):
        before = first.setdefault(path, row)
        if before != row and not np.array_equal(features[before], features[row], equal_nan=True):
            got, remedy = f"two different ones for '{path}'", "Write each path once."
            raise DataError(expected(f"the vectors in '{file}'", "one for each path", got, remedy))


def _rows_by_path(paths: list[str], wanted: Sequence[str], file: Path) -> NDArray[np.int64]:
    """For each wanted path the row of the file: the same path, or else the only one with the same last parts.

    No other wanted path may have the same ending: A/cat/1.jpg and B/cat/1.jpg are two images,
    and cat/1.jpg could be either.
    """
    depth = 1 + min((path.count("/") for path in paths), default=0)
    rows = match_names(paths, wanted, lambda path: _last_parts(path, depth))
    missing = [path for path, row in zip(wanted, rows, strict=True) if row is None]
    if missing:
        got = f"none for {len(missing)} of {len(wanted)} images, such as '{missing[0]}'"
        raise DataError(f"Expected '{file}' to have a vector for every image of the dataset, but got {got}. {LAYOUT}")
    return np.array(rows, dtype=np.int64)


def _last_parts(path: str, depth: int) -> str:
    return "/".join(path.split("/")[-depth:])
