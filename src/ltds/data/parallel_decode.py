"""Images decoded into files of raw pixels, by several processes.

Threads would not help: for small images most of the time is spent in Python code, of which one thread runs at a time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from ltds.core.errors import DataError
from ltds.core.parallel import run_chunks
from ltds.core.progress import Advance, ignore_progress
from ltds.data.decode import decoded


@dataclass(frozen=True)
class DecodeJob:
    """Images to decode, their shorter sides at most `size`, and the file for their pixels, one after the other."""

    images: list[str]
    size: int
    file: str


@dataclass(frozen=True)
class DecodedImages:
    """(h,w) of each image that could be decoded, and a sentence for each that could not."""

    shapes: list[tuple[int, int]]
    problems: list[str]


def decode_to_file(job: DecodeJob, advance: Advance) -> DecodedImages:
    """Write the pixels of the job's images to its file. After a problem the file is of no use."""
    shapes: list[tuple[int, int]] = []
    problems: list[str] = []
    with open(job.file, "wb") as stream:
        for image in job.images:
            try:
                pixels = decoded(image, job.size)
            except DataError as error:
                problems.append(str(error))
            else:
                shapes.append((pixels.height, pixels.width))
                stream.write(pixels.tobytes())
            advance()
    return DecodedImages(shapes, problems)


def decode_in_parallel(jobs: Sequence[DecodeJob], workers: int, advance: Advance) -> list[DecodedImages]:
    """The results of all jobs, in their order, by this process and `workers - 1` more; the files are safe on disk.

    This process repeats the jobs in which a worker met problems: it may know more image formats than a fresh process
    does, or have other limits, if the user's script set them.
    """
    results: dict[int, DecodedImages] = {}
    flushed: list[Future[None]] = []
    with ThreadPoolExecutor(1, thread_name_prefix="ltds-flush") as disk:  # waits for the disk while others decode
        for number, result in run_chunks(decode_to_file, jobs, workers, advance, take_part=True):
            results[number] = decode_to_file(jobs[number], ignore_progress) if result.problems else result
            flushed.append(disk.submit(_flush, jobs[number].file))
        for flush in flushed:
            flush.result()
    return [results[number] for number in range(len(jobs))]


def _flush(file: str) -> None:
    with open(file, "r+b") as stream:  # Windows and some network disks flush no file that is open for reading only
        os.fsync(stream.fileno())
