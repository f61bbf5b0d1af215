"""The ranks of a run: processes that train one model together, and what they tell each other.

Every exchange is a collective: all ranks take part, in the same order. A rank that has ended, or that does not answer
within the time limit of the process group, is a LostRankError in all others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from ltds.core.errors import TrainingError


class LostRankError(TrainingError):
    """A rank that has ended or does not answer."""


@dataclass(frozen=True)
class Ranks:
    """This process is number `rank` of `world`; number 0 also writes the files. A process alone is 0 of 1.

    `local`: its number among the ranks of its machine.
    """

    rank: int = 0
    world: int = 1
    local: int = 0

    @property
    def alone(self) -> bool:
        return self.world == 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sizes(self, count: int) -> list[int]:
        """How many of `count` items each rank takes: as equal as possible."""
        return [count // self.world + (rank < count % self.world) for rank in range(self.world)]

    def share(self, count: int) -> slice:
        """Which of `count` items this rank takes; the shares of all ranks, in order, are all items."""
        sizes = self.sizes(count)
        start = sum(sizes[: self.rank])
        return slice(start, start + sizes[self.rank])

    def gathered(self, rows: Tensor, count: int) -> Tensor:
        """(count,...) the rows of all ranks in order, of which this rank has its share."""
        if self.alone:
            return rows
        sizes = self.sizes(count)
        longest = max(sizes)
        mine = rows.contiguous()
        if len(mine) < longest:  # collectives need equal sizes
            mine = torch.cat([mine, mine.new_zeros(longest - len(mine), *mine.shape[1:])])
        everything = mine.new_empty(self.world * longest, *mine.shape[1:])
        with _answered():
            dist.all_gather(list(torch.split(everything, longest)), mine)
        if count == len(everything):
            return everything
        return torch.cat([piece[:size] for piece, size in zip(torch.split(everything, longest), sizes, strict=True)])

    def sums(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The sum over ranks of each tensor, in the tensor's memory layout. One message for each type of number."""
        results = [torch.empty_like(tensor) for tensor in tensors]
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            chosen = [i for i, tensor in enumerate(tensors) if tensor.dtype == dtype]
            flat = torch.cat([tensors[i].reshape(-1) for i in chosen])
            with _answered():
                dist.all_reduce(flat)
            pieces = torch.split(flat, [tensors[i].numel() for i in chosen])
            for i, piece in zip(chosen, pieces, strict=True):
                results[i].copy_(piece.view(tensors[i].shape))
        return results

    @torch.no_grad()
    def average_(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its mean over ranks."""
        if self.alone or not tensors:
            return
        for tensor, total in zip(tensors, self.sums(tensors), strict=True):
            tensor.copy_(total.div_(self.world))

    @torch.no_grad()
    def copy_from_first_(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by that of the first rank."""
        for tensor in () if self.alone else tensors:
            sent = tensor.contiguous()
            with _answered():
                dist.broadcast(sent, 0)
            tensor.copy_(sent)

    def told_by_first(self, text: str) -> str:
        """The text that the first rank passes; what the others pass is ignored."""
        if self.alone:
            return text
        content = torch.frombuffer(bytearray(text.encode() or b" "), dtype=torch.uint8)
        length = torch.tensor([len(content)])
        self.copy_from_first_([length])
        content = content if self.first else torch.empty(int(length), dtype=torch.uint8)
        self.copy_from_first_([content])
        return content.numpy().tobytes().decode().strip()

    def tensors_of_first(self, tensors: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
        """The tensors by name that the first rank passes, on this rank's device."""
        if self.alone:
            return dict(tensors)
        header = [[name, str(value.dtype).removeprefix("torch."), list(value.shape)] for name, value in tensors.items()]
        received = {}
        for name, dtype, shape in json.loads(self.told_by_first(json.dumps(header))):
            own = tensors[name].detach().to(device) if self.first else None
            value = own if own is not None else torch.empty(shape, dtype=getattr(torch, dtype), device=device)
            value = value.to(torch.uint8) if value.dtype == torch.bool else value
            value = value.contiguous()
            self.copy_from_first_([value])
            received[name] = value.to(getattr(torch, dtype))
        return received


ALONE = Ranks()


@dataclass(frozen=True)
class RowShare:
    """While a network runs on its share of a batch: the ranks that share it, and the `count` rows of the whole."""

    ranks: Ranks
    count: int


_current: RowShare | None = None


@contextmanager
def sharing(share: RowShare) -> Iterator[None]:
    """Inside the block, `own_rows` and `rows_of_all` are about a batch that is shared out."""
    global _current
    before, _current = _current, share
    try:
        yield
    finally:
        _current = before


def own_rows(rows: Tensor) -> Tensor:
    """Of a tensor with a row for each image of the batch, the rows of this rank; outside of `sharing`, all rows."""
    return rows if _current is None else rows[_current.ranks.share(_current.count)]


def rows_of_all(rows: Tensor) -> Tensor:
    """From the rows of this rank, those of the whole batch, in its order and without a gradient."""
    return rows if _current is None else _current.ranks.gathered(rows.detach(), _current.count)


def current_ranks() -> Ranks:
    """The ranks that share the batch that a network runs on now."""
    return ALONE if _current is None else _current.ranks


@contextmanager
def _answered() -> Iterator[None]:
    """torch raises a RuntimeError for a closed connection and for a time limit alike; only its text differs."""
    try:
        yield
    except RuntimeError as error:
        raise LostRankError(
            f"Expected an answer from every rank, but got: {str(error).strip().splitlines()[0]}. "
            "The last checkpoint is kept: resume the run, with the same number of ranks or another."
        ) from error
