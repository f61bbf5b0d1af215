"""A host copy of a buffer is fetched once, and again after every change that its owner did not make."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn

from ltds.core.host_copy import HostCopy
from other_device import other_device, waited


class Counter(nn.Module):
    """A buffer and its copy."""

    count: Tensor

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3, device=device))
        self.host_count = HostCopy()

    def seen(self) -> list[float]:
        return self.host_count.of(self.count).tolist()


def test_it_is_fetched_once() -> None:
    with other_device() as device:
        counter = Counter(device)
        assert counter.seen() == counter.seen() == [0, 0, 0]
        assert waited == ["_to_copy"]


def test_what_the_owner_changes_is_not_fetched() -> None:
    with other_device() as device:
        counter = Counter(device)
        values = counter.host_count.of(counter.count)
        waited.clear()
        counter.count[1] = 5
        values[1] = 5
        counter.host_count.keep(counter.count, values)
        assert counter.seen() == [0, 5, 0]
        assert waited == []
        assert counter.count.tolist() == [0, 5, 0]


def load(counter: Counter) -> None:
    counter.load_state_dict({"count": torch.ones(3)})


def assign(counter: Counter) -> None:
    counter.load_state_dict({"count": torch.ones(3, device=counter.count.device)}, assign=True)


def write_through_a_view(counter: Counter) -> None:
    counter.count.view(3, 1)[:, 0] += 1


def write_into_the_state(counter: Counter) -> None:
    """As averages of weights do."""
    counter.state_dict()["count"].copy_(torch.ones(3))


def move(counter: Counter) -> None:
    device = counter.count.device
    counter.cpu()
    counter.count += 1
    counter.to(device)


@pytest.mark.parametrize("change", [load, assign, write_through_a_view, write_into_the_state, move])
def test_what_others_change_is_fetched_again(change: object) -> None:
    with other_device() as device:
        counter = Counter(device)
        counter.seen()
        change(counter)  # type: ignore[operator]
        assert counter.seen() == [1, 1, 1]


def test_a_copied_module_has_a_copy_of_its_own() -> None:
    counter = Counter(torch.device("cpu"))
    kept = counter.host_count
    kept.keep(counter.count, torch.ones(3))
    for other in (copy.deepcopy(counter), pickle.loads(pickle.dumps(counter))):
        assert vars(other.host_count) == vars(HostCopy())


def test_in_the_memory_of_the_host_nothing_is_copied() -> None:
    counter = Counter(torch.device("cpu"))
    assert counter.host_count.of(counter.count) is counter.count
