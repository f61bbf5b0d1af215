"""One request: three fixed addresses, nothing of the file system behind them."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from ltds.serving.answers import RefusedImageError
from ltds.serving.hosts import is_allowed, is_same_origin

if TYPE_CHECKING:
    from ltds.serving.server import PredictionServer

PIECE = 2**16
IMAGE = "application/octet-stream"  # a page of another origin cannot send this without asking first, and is told no
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",
}


class _RefusedError(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers


class PredictionHandler(BaseHTTPRequestHandler):
    """GET / is the page, GET /about what it says of the model, POST /predict an image file to an answer."""

    server: PredictionServer
    protocol_version = default_request_version = "HTTP/1.0"  # one request for each connection, always with headers

    def setup(self) -> None:
        super().setup()
        seconds = self.server.limits.seconds
        self.connection.settimeout(seconds)
        self._watch = threading.Timer(seconds, self._give_up)  # also for a request that drips in byte by byte
        self._watch.daemon = True
        self._watch.start()

    def finish(self) -> None:
        self._watch.cancel()
        with suppress(OSError):
            super().finish()

    def do_GET(self) -> None:
        self._respond({"/": self._page, "/about": self._about}, other={"/predict": "POST"})

    def do_POST(self) -> None:
        self._respond({"/predict": self._predict}, other={"/": "GET", "/about": "GET"})

    def _refuse_method(self) -> None:
        self._respond({}, other={"/": "GET", "/about": "GET", "/predict": "POST"})

    def _respond(self, routes: dict[str, Any], other: dict[str, str]) -> None:
        try:
            self._check_host()
            if self.path in other:
                raise _RefusedError(
                    405, f"Expected {other[self.path]}, but got {self.command[:20]}.", Allow=other[self.path]
                )
            if self.path not in routes:
                raise _RefusedError(404, "Expected '/', '/about' or '/predict'. There is nothing else here.")
            routes[self.path]()
        except _RefusedError as refusal:
            self._send_json(refusal.status, {"error": str(refusal)}, **refusal.headers)
            drain(self.connection)
        except (ConnectionError, TimeoutError):
            pass  # the visitor has left
        except Exception:  # what went wrong inside is for whoever runs the server, not for the visitor
            print(traceback.format_exc(), file=sys.stderr)
            self._send_json(500, {"error": "The server failed on this image; its terminal says how."})

    def _check_host(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not is_allowed(hosts[0], self.server.names):
            raise _RefusedError(421, "Expected the address that this server was started with in the header Host.")
        if not is_same_origin(self.headers.get("Origin"), hosts[0]):
            raise _RefusedError(403, "Expected a request from this server's own page.")

    def _page(self) -> None:
        page = self.server.page
        self._send(200, page.content, "text/html; charset=utf-8", {"Content-Security-Policy": page.policy})

    def _about(self) -> None:
        self._send_json(200, self.server.answerer.about())

    def _predict(self) -> None:
        content = self._body()
        self._watch.cancel()  # from here on, time is the server's own
        try:
            answer = self.server.answerer.answer(content)
        except RefusedImageError as error:
            raise _RefusedError(422, f"This image was not taken: {error}.") from error
        self._send_json(200, answer)

    def _body(self) -> bytes:
        """The image file. Nothing is read before its length is known to be allowed."""
        if self.headers.get_content_type() != IMAGE:
            raise _RefusedError(415, f"Expected the content of an image file as {IMAGE}.")
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) != 1 or "Transfer-Encoding" in self.headers or not _is_number(lengths[0]):
            raise _RefusedError(411, "Expected one header Content-Length with the number of bytes.")
        length, most = int(lengths[0]), self.server.limits.most_bytes
        if length > most:
            raise _RefusedError(413, f"This image has {length / 1e6:.1f} MB; at most {most / 1e6:g} MB are taken.")
        content = self.rfile.read(length)
        if len(content) < length:
            raise _RefusedError(400, f"Expected {length} bytes, but got {len(content)}.")
        return content

    def _send_json(self, status: int, content: dict[str, Any], **headers: str) -> None:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        self._send(status, text.encode(), "application/json", headers)

    def _send(self, status: int, content: bytes, kind: str, headers: dict[str, str]) -> None:
        with suppress(OSError):
            self.send_response(status)
            for name, value in {
                **HEADERS,
                **headers,
                "Content-Type": kind,
                "Content-Length": str(len(content)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library finds wrong with a request before any of the above is called."""
        self._send_json(int(code), {"error": f"Expected a request of HTTP, but got: {message or 'something else'}."})

    def version_string(self) -> str:
        return "ltds"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written down about visitors."""

    def _give_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


for _method in ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
    setattr(PredictionHandler, f"do_{_method}", PredictionHandler._refuse_method)


def drain(connection: socket.socket) -> None:
    """Read a little of what a refused visitor still sends: closing at once would cut off the refusal, too."""
    end = time.monotonic() + 1
    with suppress(OSError):
        connection.settimeout(0.2)
        while time.monotonic() < end and connection.recv(PIECE):
            pass


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12
