"""The server: bounded in how many it listens to, on this machine only unless asked otherwise."""

from __future__ import annotations

import errno
import json
import os
import socket
import socketserver
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ltds.core.errors import ConfigError, LtdsError, expected
from ltds.core.progress import SILENT, Progress, Say
from ltds.data.manifest import Manifest
from ltds.engine.load import load_model
from ltds.engine.model import Model
from ltds.serving.answers import Answerer, nearest_shown
from ltds.serving.handler import HEADERS, PredictionHandler, drain
from ltds.serving.hosts import is_loopback
from ltds.serving.limits import ServeLimits, limits_of
from ltds.serving.page import read_page

REFUSED_AT_ONCE = 32  # visitors beyond the limit who get a sentence; still more are cut off


class PredictionServer(ThreadingHTTPServer):
    """Listens from the moment it is made; `serve_forever` answers, `shutdown` and `server_close` end it."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = os.name == "posix"  # on Windows a second server would get the same port
    allow_reuse_port = False

    def __init__(self, address: tuple[str, int], answerer: Answerer, limits: ServeLimits, names: Iterable[str]) -> None:
        self.answerer, self.limits, self.names = answerer, limits, frozenset(names)
        self.page = read_page()
        self._free = threading.BoundedSemaphore(limits.connections)
        self._refusing = threading.BoundedSemaphore(REFUSED_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, PredictionHandler)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        name = host.decode() if isinstance(host, bytes | bytearray) else str(host)
        return f"http://{f'[{name}]' if ':' in name else name}:{port}/"

    def server_bind(self) -> None:
        """As the standard library does, without asking a name server for this machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            with _released_on_error(self._free):
                super().process_request(request, client_address)
            return
        if self._refusing.acquire(blocking=False):
            with _released_on_error(self._refusing):
                threading.Thread(target=self._refuse, args=(request,), daemon=True).start()
            return
        self.shutdown_request(request)

    def _refuse(self, request: socket.socket) -> None:
        """Say that the server is busy; in a thread, because a visitor may take time to read it."""
        try:
            with suppress(OSError):
                request.settimeout(1)
                request.sendall(_busy())
                request.shutdown(socket.SHUT_WR)
                drain(request)
            self.shutdown_request(request)
        finally:
            self._refusing.release()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A visitor who leaves in the middle is no error."""


@contextmanager
def _released_on_error(place: threading.Semaphore) -> Iterator[None]:
    """Give a place back that no thread took, because none could be started."""
    try:
        yield
    except BaseException:
        place.release()
        raise


def _busy() -> bytes:
    """The refusal: as the handler would send it, but without reading the request."""
    body = json.dumps({"error": "The server is busy. Try again in a moment."}).encode()
    headers = {**HEADERS, "Retry-After": "1", "Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = ["HTTP/1.0 503 Service Unavailable", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def make_server(
    model: Model,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    top: int = 5,
    threshold: float | None = None,
    nearest: int = 0,
    limits: ServeLimits | None = None,
    allow_host: Iterable[str] = (),
) -> PredictionServer:
    """A server that listens at this address; port 0 takes a free one."""
    limits = limits or ServeLimits()
    answerer = Answerer(model, limits, top=top, threshold=threshold, nearest=nearest)
    try:
        return PredictionServer((host, port), answerer, limits, [host, *allow_host])
    except OSError as error:
        raise _cannot_listen(host, port, error) from error


def serve(
    model: str | Path | Model,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    top: int = 5,
    threshold: float | None = None,
    nearest: int | None = None,
    data: str | Path | Manifest | None = None,
    max_mb: float = 20,
    max_megapixels: float = 50,
    allow_host: Iterable[str] = (),
    device: str = "auto",
    trust: Iterable[str] = (),
    progress: Progress = SILENT,
    say: Say = print,
) -> None:
    """Open a local page to drop images on; it shows their classes, or "unknown". Runs until Ctrl-C.

        ltds.serve("runs/first")

    Args:
        model: A run, a model directory, or what `load_model` returned.
        host: With an address other than 127.0.0.1, other machines can use the model.
        port: Port of the page.
        top: How many of the most probable classes to show.
        threshold: Say "unknown" if the score is below this number, instead of the model's own threshold.
        nearest: How many of the most similar training images to show; by default three, if their features or the
            dataset can be found (`Model.training_index`).
        data: The dataset that the model was trained on, for `nearest`, if it was moved after training.
        max_mb: Larger image files are refused.
        max_megapixels: Larger images are refused.
        allow_host: Names by which browsers may reach the server.
        device: "auto" (a GPU if there is one), "cpu", "cuda" or "mps".
        trust: Modules outside ltds that the model needs and that may be imported.
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
        say: Called with the address of the page.
    """
    if data is not None and nearest == 0:
        raise ConfigError(
            "Expected argument 'data' only where nearest training images are shown, but got it with nearest=0: the "
            "dataset serves nothing else. Show some, or leave one of them out.",
            arguments=["nearest=3"],
        )
    limits = limits_of(max_mb, max_megapixels)
    loaded = model if isinstance(model, Model) else load_model(model, device=device, trust=trust)
    shown = 3 if nearest is None and data is not None else nearest_shown(loaded, nearest)
    server = make_server(
        loaded, host=host, port=port, top=top, threshold=threshold, nearest=shown, limits=limits, allow_host=allow_host
    )
    try:
        if shown:
            say(_with_nearest(server, loaded, data, asked=nearest is not None or data is not None, progress=progress))
        elif nearest is None:
            say("Nearest training images are not shown: neither their features nor the dataset was found.")
        if not is_loopback(host):
            say("Everyone who can reach this machine can use the model: there is no password.")
        say(f"Open {server.url} and drop images there. Stop with Ctrl-C.")
        server.serve_forever()
    except KeyboardInterrupt:
        say("Stopped.")
    finally:
        server.server_close()


def _with_nearest(
    server: PredictionServer, model: Model, data: str | Path | Manifest | None, *, asked: bool, progress: Progress
) -> str:
    """Find the training images, and say so; where nobody asked for them, the server can do without."""
    try:
        return f"Nearest training images: {len(model.training_index(data, progress)):,} are known."
    except LtdsError as error:
        if asked:
            raise
        server.answerer.nearest = 0
        return f"Nearest training images are not shown. {error}"


def _cannot_listen(host: str, port: int, error: OSError) -> ConfigError:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        remedy = "Use 127.0.0.1 for this machine alone, or 0.0.0.0 for all of its networks."
        return ConfigError(expected("argument 'host'", "an address of this machine", f"'{host}'", remedy))
    got = "another program listens there" if error.errno == errno.EADDRINUSE else f"the system says: {error.strerror}"
    return ConfigError(
        f"Expected to be able to listen at port {port} of {host}, but {got}. Choose another port; 0 takes a free one.",
        arguments=["port=0"],
    )
