"""Backbones under autocast. A module of its own, because `torch.compiler.disable` loads torch's compiler: a second."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ltds.nn.networks import backbones_of


class BackboneAutocast:
    """Runs the backbones of a method under autocast: products in bfloat16, features out in float32.

    Weights, their gradients and the optimizer stay float32; so do losses, statistics and prototypes, which see features
    only. Hooks, and not a new `forward`, so that a copy of the method has its own.
    """

    def __init__(self, method: nn.Module) -> None:
        self._entered: dict[int, list[torch.autocast]] = {}  # by thread: autocast belongs to one
        self._hooks: list[RemovableHandle] = []
        for backbone in backbones_of(method).values():
            self._hooks.append(backbone.register_forward_pre_hook(self.enter))
            self._hooks.append(backbone.register_forward_hook(self.leave, always_call=True))

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def enter(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        device = next((x.device.type for x in arguments if isinstance(x, Tensor)), "cpu")
        # Its cache of cast weights would outlive an inner step, which uses other weights.
        context = torch.autocast(device, torch.bfloat16, cache_enabled=False)
        self._entered.setdefault(threading.get_ident(), []).append(context)
        context.__enter__()  # type: ignore[no-untyped-call]

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def leave(self, module: nn.Module, arguments: tuple[Any, ...], output: Any) -> Any:
        contexts = self._entered[threading.get_ident()]
        contexts.pop().__exit__(None, None, None)
        if not contexts:
            del self._entered[threading.get_ident()]
        return output.float() if isinstance(output, Tensor) else output
