"""Raw HTTP requests, byte by byte, for the tests of the server."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ltds.serving.server import PredictionServer


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)  # type: ignore[no-any-return]


def connected(server: PredictionServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=30)


def read_reply(connection: socket.socket) -> Reply:
    content = b""
    while piece := connection.recv(65536):
        content += piece
    head, _, body = content.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    return Reply(int(lines[0].split()[1]), headers, body)


def raw(server: PredictionServer, content: bytes) -> Reply:
    """What the server says to these bytes."""
    with connected(server) as connection:
        connection.sendall(content)
        return read_reply(connection)


def request(
    server: PredictionServer, method: str = "GET", path: str = "/", body: bytes | None = None, **headers: str
) -> Reply:
    """A request as a browser sends it; `headers` replace or, empty, remove the usual ones."""
    all_headers = {"Host": f"127.0.0.1:{server.server_port}"}
    if body is not None:
        all_headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(len(body))}
    all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in all_headers.items() if value)]
    return raw(server, "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))


@contextmanager
def running(server: PredictionServer) -> Iterator[PredictionServer]:
    """The server answers in a thread while the block runs."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def until(server: PredictionServer, status: int) -> None:
    """Ask for the page until the answer has this status, for at most a minute."""
    end = time.monotonic() + 60
    while (answer := request(server).status) != status:
        assert time.monotonic() < end, f"{answer} instead of {status} for a minute"
        time.sleep(0.05)
