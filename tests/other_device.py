"""A device with its own memory, for machines without a GPU: real numbers, and an error where a GPU would refuse.

Its tensors hold their numbers in the memory of the host, but only operations of the device reach them. An operation on
tensors of two devices fails, as on any GPU; so do float64, which Apple's GPUs do not have, and two things that torch
gets wrong on them: a copy that does not wait for its source, and BatchNorm's gradients behind a convolution whose
numbers lie channels last. `waited` names the operations that made the host wait for the device. What a GPU rounds or
lacks otherwise is not seen here.

Torch calls the device "lazy": it knows this name, has no operations for it, and computes its gradients in the thread
that asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("lazy", 0)
HOST = torch.device("cpu")
COPIES = {"_to_copy", "copy_"}
# Operations whose result, or the size of whose result, the host has to know: it waits for them.
WAITING = {
    "_local_scalar_dense",
    "is_nonzero",
    "equal",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_dim",
    "bincount",
}
PREFETCHING = ("data.loading", "data.activations", "engine.predict_files", "engine.extraction", "engine.indexing")
# A GPU takes indices from the host, too.
MIXED = COPIES | {"index", "index_put", "index_put_", "_index_put_impl_"}


waited: list[str] = []


class OtherTensor(Tensor):
    """A tensor on the device; `inner` are its numbers."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> OtherTensor:
        if inner.dtype == torch.float64:
            raise TypeError("Apple's GPUs have no float64")
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined,no-any-return]
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device=DEVICE,
        )

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"on {DEVICE}: {self.inner}"

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, arguments: Any = (), more: Any = None) -> Any:
        return _compute(operation, arguments, more or {})


def _compute(operation: Any, arguments: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """The operation on the numbers; its result is on the device if its arguments are, or if it is asked for there."""
    tensors = [leaf for leaf in tree_leaves((arguments, more)) if isinstance(leaf, Tensor)]
    name, asked = operation.overloadpacket.__name__, more.get("device")
    there = any(isinstance(tensor, OtherTensor) for tensor in tensors)
    if not there and asked != DEVICE:
        return operation(*arguments, **more)
    if there and name not in MIXED and any(t.dim() and not isinstance(t, OtherTensor) for t in tensors):
        found = ", ".join(f"{tuple(t.shape)} on {t.device}" for t in tensors)
        raise RuntimeError(f"{name}: expected all tensors on one device, but got {found}")
    if name in COPIES and (more.get("non_blocking") or arguments[2:3] == (True,)):
        raise RuntimeError("a copy to Apple's GPUs must wait: its source may be gone before it is read")
    if name == "convolution" and torch.is_grad_enabled() and any(map(_channels_last, arguments[:2])):
        raise RuntimeError("Apple's GPUs compute BatchNorm's gradients wrong in this layout: expected NCHW")
    if there and (name in WAITING or asked not in (None, DEVICE) or _chooses(name, arguments)):
        waited.append(name)
    given = {**more, "device": HOST} if asked == DEVICE else more
    result = operation(*tree_map(_inner, arguments), **tree_map(_inner, given))
    if there and asked not in (None, DEVICE):
        return result
    if name == "copy_" and not isinstance(arguments[0], OtherTensor):
        return arguments[0]
    result = tree_map(_outer, result)
    return return_and_correct_aliasing(operation, arguments, more, result) if there else result


def _channels_last(tensor: Tensor) -> bool:
    return not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


def _chooses(name: str, arguments: tuple[Any, ...]) -> bool:
    """Whether it takes the places where a mask is true: the host must know how many they are."""
    indices = arguments[1] if name.startswith(("index", "_index_put")) and isinstance(arguments[1], list) else ()
    return any(isinstance(i, Tensor) and i.dtype == torch.bool for i in indices)


def _inner(value: Any) -> Any:
    return value.inner if isinstance(value, OtherTensor) else value


def _outer(value: Any) -> Any:
    if not isinstance(value, Tensor) or isinstance(value, OtherTensor):
        return value
    with torch.inference_mode(False):  # a view of a tensor with gradients must not be one without
        return OtherTensor(value)


class _Operations(TorchDispatchMode):
    """Makes tensors on the device where they are asked for."""

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), more: Any = None) -> Any:
        return _compute(operation, arguments, more or {})


class _Functions(TorchFunctionMode):
    """What torch would compute before it asks a dispatch mode."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), more: Any = None) -> Any:
        more = dict(more or {})
        if function in (torch.tensor, torch.as_tensor, torch.asarray) and more.get("device") == DEVICE:
            return function(*arguments, **{**more, "device": HOST}).to(DEVICE)
        if function in (Tensor.__getitem__, Tensor.__setitem__) and isinstance(arguments[1], list):
            arguments = (arguments[0], torch.tensor(arguments[1]), *arguments[2:])
        return function(*arguments, **more)


@contextmanager
def other_device() -> Iterator[torch.device]:
    """Everything that chooses a device takes this one, in this thread: batches are made in it, too."""
    with pytest.MonkeyPatch.context() as patch, _Functions(), _Operations():
        patch.setattr("ltds.engine.device._choose_device", lambda name: HOST if name == "cpu" else DEVICE)
        for module in PREFETCHING:
            patch.setattr(f"ltds.{module}.prefetch", _in_this_thread)
        patch.setattr(torch, "autocast", _autocast)
        waited.clear()
        yield DEVICE


def _in_this_thread(make: Callable[[Any], Any], items: Any, **_: Any) -> Iterator[Any]:
    return map(make, items)


_torch_autocast = torch.autocast


def _autocast(device: str, *arguments: Any, **more: Any) -> Any:
    """Torch knows no autocast for the device."""
    return nullcontext() if device == DEVICE.type else _torch_autocast(device, *arguments, **more)
