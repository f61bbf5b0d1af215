"""TrainingIndex: the features of the training images of a model, to show which of them an image is most like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_arrays
from ltds.core.errors import CheckpointError
from ltds.core.files import atomic
from ltds.core.runs import NEAREST_FILE
from ltds.evaluation.arrays import unit_rows

FORMAT = 1
BLOCK = 2**24  # similarities that are computed at once


@dataclass(frozen=True)
class NearestImage:
    """A training image and how similar it is: the cosine of the features, 1 for equal directions.

    `path` is relative to the folder of the dataset; `row` is its place in the index.
    """

    path: str
    label: str
    domain: str
    similarity: float
    row: int


@dataclass(frozen=True, eq=False)
class TrainingIndex:
    """features (N,D) float16, of length 1; paths, class names and domains (N,).

    `thumbnails`: the small JPEG files of all images, one after the other; that of image i ends at `ends[i]`, and has no
    bytes where there is no picture. `model_checksum`: of the model whose features these are.
    """

    features: NDArray[np.float16]
    paths: NDArray[np.str_]
    labels: NDArray[np.str_]
    domains: NDArray[np.str_]
    thumbnails: NDArray[np.uint8]
    ends: NDArray[np.int64]
    model_checksum: str  # "fingerprint" in the file

    def __len__(self) -> int:
        return len(self.paths)

    def search(self, features: NDArray[np.float32], count: int) -> list[tuple[NearestImage, ...]]:
        """For each row of `features` (M,D) the `count` most similar training images, ties in the order of the index."""
        if features.shape[1:] != self.features.shape[1:]:
            raise CheckpointError(
                f"Expected features of length {self.features.shape[1]}, as '{NEAREST_FILE}' has, but the model "
                f"computes {features.shape[1:]}. Delete '{NEAREST_FILE}': it belongs to another model."
            )
        height = max(1, BLOCK // max(1, len(self)))
        found: list[tuple[NearestImage, ...]] = []
        for start in range(0, len(features), height):
            similarity = _unit(features[start : start + height]) @ self._known
            order = np.argsort(-similarity.round(6), axis=1, kind="stable")[:, :count]
            found += [tuple(self._image(i, row[i]) for i in best) for row, best in zip(similarity, order, strict=True)]
        return found

    @cached_property
    def _known(self) -> NDArray[np.float32]:
        """(D,N) the features in the precision of the search; many searches follow each other."""
        return self.features.astype(np.float32).T

    def thumbnail(self, row: int) -> bytes | None:
        """The picture of an image as a JPEG file; None where there is none."""
        start = int(self.ends[row - 1]) if row else 0
        return self.thumbnails[start : int(self.ends[row])].tobytes() or None

    def save(self, file: Path) -> None:
        with atomic(file) as stream:
            np.savez(stream, **self._columns())

    @classmethod
    def load(cls, file: Path) -> TrainingIndex:
        try:
            stored = read_arrays(file)
            if int(stored.pop("format")) != FORMAT:
                raise ValueError("another format")
            index = cls(model_checksum=str(stored.pop("fingerprint")), **stored)
            index._require_consistent()
            return index
        except (OSError, LookupError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"Expected '{file}' to hold the features of training images, but got {type(error).__name__}: {error}. "
                "Delete it; it is made again if the dataset can be found."
            ) from error

    def _image(self, row: int, similarity: float) -> NearestImage:
        return NearestImage(
            str(self.paths[row]), str(self.labels[row]), str(self.domains[row]), float(similarity), int(row)
        )

    def _columns(self) -> dict[str, Any]:
        columns = {name: getattr(self, name) for name in ("features", "paths", "labels", "domains")}
        pictures = {"thumbnails": self.thumbnails, "ends": self.ends}
        return {**columns, **pictures, "fingerprint": np.asarray(self.model_checksum), "format": np.asarray(FORMAT)}

    def _require_consistent(self) -> None:
        """Whether the arrays fit together, as `save` wrote them: the file may come from a stranger."""
        n = len(self.features)
        texts = (self.paths, self.labels, self.domains)
        if self.features.ndim != 2 or self.features.dtype != np.float16 or not n:
            raise ValueError(f"features {self.features.shape} of {self.features.dtype}")
        if any(column.shape != (n,) or column.dtype.kind != "U" for column in texts):
            raise ValueError("paths, labels and domains that do not fit the features")
        ends = self.ends
        if self.thumbnails.dtype != np.uint8 or self.thumbnails.ndim != 1 or ends.shape != (n,) or ends.dtype != "i8":
            raise ValueError("damaged thumbnails")
        if ends[0] < 0 or (np.diff(ends) < 0).any() or ends[-1] != len(self.thumbnails):
            raise ValueError("damaged thumbnails")


def make_index(
    features: NDArray[np.float32],
    names: Sequence[tuple[str, str, str]],
    pictures: Sequence[bytes],
    model_checksum: str,
) -> TrainingIndex:
    """An index of images with these features (N,D): path, class and domain of each, and its JPEG file, or b""."""
    paths, labels, domains = (np.array(column, dtype=np.str_) for column in zip(*names, strict=True))
    ends = np.cumsum([len(picture) for picture in pictures], dtype=np.int64)
    content = np.frombuffer(b"".join(pictures), np.uint8)
    return TrainingIndex(_unit(features).astype(np.float16), paths, labels, domains, content, ends, model_checksum)


def _unit(features: NDArray[np.float32]) -> NDArray[np.float32]:
    return unit_rows(features).astype(np.float32)
