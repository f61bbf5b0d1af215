"""Outputs of frozen stages, computed once for each image and for a few fixed random crops of it, kept on disk.

`<root>/.cache/frozen/<setup>-<variant>-<images>.npy` holds float16 values (files, ...), read row by row in training.
`setup` is a hash of the manifest, the network and the transform, `images` one of the image files' sizes and times.
Variant 0 is the evaluation transform of every image; variants 1, 2, ... are draws of the training transform for
training images, the same in every run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.errors import DataError, expected
from ltds.core.files import DiskFullError, atomic
from ltds.core.progress import SILENT, Progress
from ltds.core.rng import generator
from ltds.data.cache import ImageCache, image_files_state
from ltds.data.inputs import Rows
from ltds.data.manifest import Manifest
from ltds.data.prefetch import prefetch
from ltds.data.read_at import ArrayOnDisk
from ltds.data.transforms import EvalTransform, TrainTransform

BATCH = 64


@dataclass(frozen=True)
class ActivationSource:
    """What turns images into activations: a network with the hash of its weights, and two transforms."""

    network: Callable[[Tensor], Tensor]
    checksum: str
    evaluate: EvalTransform
    train: TrainTransform


class ActivationInputs:
    """Cached activations as network inputs: training draws a variant of each image, evaluation takes variant 0."""

    def __init__(self, checksum: str, values: list[ArrayOnDisk], positions: list[Rows]) -> None:
        self.checksum = checksum
        self._values, self._positions = values, positions

    @classmethod
    def open(
        cls,
        manifest: Manifest,
        images: ImageCache,
        source: ActivationSource,
        variants: int = 1,
        *,
        dtype: type[np.floating] = np.float16,
        progress: Progress = SILENT,
    ) -> ActivationInputs:
        """The activations of this manifest; those that are not on disk are computed first."""
        state = image_files_state(manifest)
        opened = [_Variant(manifest, state, images, source, number, dtype) for number in range(variants)]
        values = [variant.read() if variant.is_current() else variant.compute(progress) for variant in opened]
        return cls(manifest.checksum, values, [variant.positions for variant in opened])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the activations of an image."""
        return self._values[0].shape[1:]

    def training(self, batch: Rows, share: Rows, seed: int, step: int) -> Tensor:
        """Variants are drawn for the whole batch, so that an image's does not depend on who computes it."""
        drawn = torch.randint(len(self._values), (len(batch),), generator=generator(seed, "variants", step))
        return self._take(batch[share], drawn.numpy()[share])

    def evaluation(self, rows: Rows) -> Tensor:
        return self._take(rows, np.zeros(len(rows), dtype=np.int64))

    def _take(self, rows: Rows, variants: Rows) -> Tensor:
        out = np.empty((len(rows), *self.shape), dtype=np.float32)
        for variant in np.unique(variants):
            at = np.flatnonzero(variants == variant)
            out[at] = self._values[variant][self._positions[variant][rows[at]]]
        return torch.from_numpy(out)


class _Variant:
    """One way to cut all images: its file, and the position in it of each row of the manifest (-1: not there)."""

    def __init__(
        self,
        manifest: Manifest,
        state: str,
        images: ImageCache,
        source: ActivationSource,
        number: int,
        dtype: type[np.floating],
    ) -> None:
        """`state`: of the files of the images, which tells whether they have changed."""
        self.images, self.source, self.number, self.dtype = images, source, number, np.dtype(dtype)
        self.rows, self.positions = _distinct(manifest, manifest.rows("train") if number else np.arange(len(manifest)))
        self.random = source.train.draw(len(manifest), generator(0, "cached variant", number)) if number else None
        transform = source.train if number else source.evaluate
        setup = f"{manifest.checksum} {images.size} {source.checksum} {transform} {self.dtype}"
        self.folder = manifest.root / ".cache" / "frozen"
        self.name = f"{hashlib.sha256(setup.encode()).hexdigest()[:16]}-{number}"
        self.file = self.folder / f"{self.name}-{state[:16]}.npy"

    def is_current(self) -> bool:
        try:
            return len(self.read()) == len(self.rows)
        except (OSError, ValueError, EOFError):
            return False

    def read(self) -> ArrayOnDisk:
        return ArrayOnDisk(self.file)

    def compute(self, progress: Progress) -> ArrayOnDisk:
        """Write the file, delete those of image files that have changed since, and open it."""
        try:
            self._write(progress)
        except (OSError, DiskFullError) as error:
            rule = "a folder that can be written to, with room for the outputs of the frozen stages"
            remedy = "Free some space, or freeze more stages: later ones are smaller."
            raise DataError(expected(f"'{self.folder}'", rule, f"'{error}'", remedy)) from error
        for old in self.folder.glob(f"{self.name}-*.npy"):
            if old != self.file:
                old.unlink(missing_ok=True)
        return self.read()

    def _write(self, progress: Progress) -> None:
        title = "Computing frozen stages" + (f", variant {self.number}" if self.number else "")
        with progress.track(title, len(self.rows)) as advance, atomic(self.file) as stream:
            for first, values in self._batches():
                if first == 0:
                    header = {"descr": self.dtype.str, "fortran_order": False}
                    np.lib.format.write_array_header_1_0(
                        stream, {**header, "shape": (len(self.rows), *values.shape[1:])}
                    )
                stream.write(values.tobytes())
                advance(len(values))

    def _batches(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """(position of the first, activations) of all images in order; images are cut in advance."""
        starts = range(0, len(self.rows), BATCH)
        for start, pixels in zip(starts, prefetch(self._pixels, starts, threads=1, window=2), strict=True):
            with np.errstate(over="ignore"):
                values = self.source.network(pixels).cpu().numpy().astype(self.dtype)
            if not np.isfinite(values).all():
                got = "NaN or a number beyond the range of half precision"
                remedy = "Check backbone.weights, or freeze another number of stages."
                raise DataError(expected("the outputs of the frozen stages", "finite", got, remedy))
            yield start, values

    def _pixels(self, start: int) -> Tensor:
        rows = self.rows[start : start + BATCH]
        pixels = self.images.pixels(rows)
        if self.random is None:
            return self.source.evaluate.apply_pixels(pixels)
        return self.source.train.apply_pixels(pixels, self.random[torch.from_numpy(rows)])


def _distinct(manifest: Manifest, rows: Rows) -> tuple[Rows, Rows]:
    """The first row of each image file among `rows`, and for every row of the manifest its position among those."""
    order: dict[str, int] = {}
    firsts = []
    for row in rows.tolist():
        path = os.path.normpath(manifest.paths[row])
        if path not in order:
            order[path] = len(order)
            firsts.append(row)
    positions = [order.get(os.path.normpath(path), -1) for path in manifest.paths]
    return np.array(firsts, dtype=np.int64), np.array(positions, dtype=np.int64)
