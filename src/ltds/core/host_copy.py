"""A copy of a tensor in the memory of the host, which a GPU is asked for only where the tensor has changed."""

from __future__ import annotations

from torch import Tensor


class HostCopy:
    """What a buffer on a GPU holds, for decisions on the host.

    It is fetched again after anybody but the owner of this copy has changed the buffer or replaced it, as loading a
    checkpoint does: torch counts the changes of a tensor, also those made through its views.
    """

    def __init__(self) -> None:
        self._buffer: Tensor | None = None
        self._version = -1
        self._values: Tensor | None = None

    def of(self, buffer: Tensor) -> Tensor:
        """The values of the buffer; the buffer itself where it is in the memory of the host."""
        if buffer.device.type == "cpu":
            return buffer
        if self._values is None or self._buffer is not buffer or self._version != buffer._version:
            self.keep(buffer, buffer.cpu())
        assert self._values is not None
        return self._values

    def keep(self, buffer: Tensor, values: Tensor) -> None:
        """Take these for the values that the buffer has now."""
        self._buffer, self._version, self._values = buffer, buffer._version, values

    def __reduce__(self) -> tuple[type[HostCopy], tuple[()]]:
        """A copied module has other buffers: it starts without values."""
        return HostCopy, ()
