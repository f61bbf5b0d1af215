"""The server by raw requests: right answers, and nothing for those who ask for something else."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import re
import socket
import struct
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import ltds
from ltds.core.errors import CheckpointError, ConfigError, DataError
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.serving import server as server_module
from ltds.serving.answers import Answerer
from ltds.serving.hosts import is_allowed, is_loopback, is_same_origin
from ltds.serving.limits import ServeLimits, limits_of
from ltds.serving.server import PredictionServer, make_server, serve
from raw_http import connected, raw, read_reply, request, running, until
from toy import recorded, toy_session, write_linked_dataset


def picture(toy: Manifest, row: int = 0) -> bytes:
    return (toy.root / toy.paths[row]).read_bytes()


def test_the_answer_is_that_of_predict(toy: Manifest, model: ltds.Model, server: PredictionServer) -> None:
    for row in toy.rows("test")[::7]:
        content = picture(toy, int(row))
        reply = request(server, "POST", "/predict", content)
        assert reply.status == 200, reply.body
        (wanted,) = model.predict([content], top=3, nearest=3)
        answer = reply.json
        assert answer["label"] == wanted.label
        assert answer["unknown"] == wanted.unknown
        assert (answer["confidence"], answer["score"]) == (wanted.confidence, wanted.score)
        assert [(c["class"], c["probability"]) for c in answer["classes"]] == list(wanted.classes)
        for near, image in zip(answer["nearest"], wanted.nearest, strict=True):
            assert (near["path"], near["class"], near["domain"]) == (image.path, image.label, image.domain)
            kind, _, data = near["picture"].partition(",")
            assert kind == "data:image/jpeg;base64"
            assert base64.b64decode(data) == model.training_index().thumbnail(image.row)


def test_the_page_and_what_it_says(server: PredictionServer, model: ltds.Model) -> None:
    page = request(server)
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    text = page.body.decode()
    assert re.findall(r"https?://", text) == [], "nothing comes from elsewhere"
    about = request(server, path="/about").json
    assert about["classes"] == ["ant", "bee", "cat", "dog", "elk"]  # 'fox' is open
    assert (about["threshold"], about["nearest"], about["most_bytes"]) == (model.threshold, 3, 200_000)
    for reply in (page, request(server, path="/nothing")):
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["Server"] == "ltds"


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/page.html",
        "/nearest.npz",
        "/model.json",
        "file:///etc/passwd",
        "http://127.0.0.1/",
        "/predict/../page.html",
        "/about?x",
        "*",
        "/%00",
    ],
)
def test_there_is_nothing_but_three_addresses(server: PredictionServer, path: str) -> None:
    for method, body in (("GET", None), ("POST", b"x")):
        reply = request(server, method, path, body)
        assert reply.status == 404
        assert b"root:" not in reply.body
        assert reply.json["error"].startswith("Expected")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT"])
def test_wrong_methods(server: PredictionServer, method: str) -> None:
    reply = request(server, method, "/predict", b"")
    assert (reply.status, reply.headers["Allow"]) == (405, "POST")
    assert "Access-Control-Allow-Origin" not in reply.headers


def test_get_and_post_are_not_exchanged(server: PredictionServer, toy: Manifest) -> None:
    assert request(server, "GET", "/predict").status == 405
    assert request(server, "POST", "/", picture(toy)).status == 405
    assert request(server, "BREW", "/").status == 501


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "a@127.0.0.1", ""]
)
def test_a_strange_host_is_refused(server: PredictionServer, toy: Manifest, host: str) -> None:
    assert request(server, Host=host).status == 421
    assert request(server, "POST", "/predict", picture(toy), Host=host).status == 421


def test_two_hosts_are_refused(server: PredictionServer) -> None:
    assert raw(server, b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n").status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8000", "192.168.1.7:80"])
def test_own_addresses_are_taken(server: PredictionServer, host: str) -> None:
    assert request(server, path="/about", Host=host).status == 200


def test_names_of_hosts() -> None:
    assert is_allowed("lab:8000", ["Lab"])
    assert not is_allowed("lab.example", ["lab"])
    assert not any(
        is_allowed(host) for host in ("localhost:x", "[::1", "a/localhost", "localhost/", "localhost#", ":80")
    )
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert is_same_origin(None, "localhost:8000")
    assert not is_same_origin("null", "localhost:8000")


def test_the_page_behind_a_proxy_with_https(server: PredictionServer, toy: Manifest) -> None:
    def status(origin: str, host: str = "192.168.1.7") -> int:
        return request(server, "POST", "/predict", picture(toy), Origin=origin, Host=host).status

    assert status("https://192.168.1.7") == status("HTTPS://LocalHost:8443", "localhost:8443") == 200
    for other in (
        "https://evil.example",
        "https://192.168.1.7:8443",
        "https://192.168.1.7.evil.example",
        "ftp://192.168.1.7",
    ):
        assert status(other) == 403
    assert status("https://evil.example", "evil.example") == 421, "a name that points here, but is not allowed"


def test_pages_of_others_cannot_ask(server: PredictionServer, toy: Manifest) -> None:
    own = f"http://127.0.0.1:{server.server_port}"
    for origin, status in (("http://evil.example", 403), ("null", 403), ("http://127.0.0.1:1", 403), (own, 200)):
        assert request(server, "POST", "/predict", picture(toy), Origin=origin).status == status
    # What a page of another origin can send without asking first:
    for kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded", ""):
        assert request(server, "POST", "/predict", picture(toy), Content_Type=kind).status == 415


def test_lengths(server: PredictionServer, toy: Manifest) -> None:
    content = picture(toy)
    too_long = request(server, "POST", "/predict", b"x" * 300_000)
    assert (too_long.status, too_long.json["error"]) == (413, "This image has 0.3 MB; at most 0.2 MB are taken.")
    assert request(server, "POST", "/predict", content, Content_Length="99999999999").status == 413
    for wrong in ("", "-1", "1e3", "0x10", "12, 12", "١٢"):
        assert request(server, "POST", "/predict", content, Content_Length=wrong).status == 411
    assert request(server, "POST", "/predict", content, Transfer_Encoding="chunked").status == 411
    with connected(server) as connection:
        head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        head += f"Content-Length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content[:50])
        connection.shutdown(socket.SHUT_WR)
        assert read_reply(connection).status == 400


def test_bad_images_are_refused_in_words(server: PredictionServer, toy: Manifest) -> None:
    stream = io.BytesIO()
    Image.new("1", (600, 600)).save(stream, "PNG")
    size = struct.pack(">II", 60_000, 60_000)  # in the header of a small file
    header = b"IHDR" + size + bytes([1, 0, 0, 0, 0])
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    bomb += struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    cases = {
        b"": "not an image that can be read",
        b"no image": "not an image that can be read",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n": "not an image that can be read",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>": "not an image that can be read",
        picture(toy)[:80]: "not taken",
        stream.getvalue(): "0.4 million pixels; at most 0.25 million are taken",
        bomb: "too many pixels; at most 0.25 million are taken",
    }
    for content, part in cases.items():
        reply = request(server, "POST", "/predict", content)
        assert reply.status == 422, reply.body
        assert part in reply.json["error"]
        assert "/" not in reply.json["error"], "no path of this machine"
    assert request(server, "POST", "/predict", picture(toy)).status == 200, "the server lives on"


def test_garbage_is_no_http(server: PredictionServer) -> None:
    assert raw(server, b"\x16\x03\x01\x02\x00\x01\r\n\r\n").status == 400
    assert raw(server, b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: a\r\n" % i for i in range(300)) + b"\r\n").status == 431
    assert raw(server, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n").status == 414


def test_slow_and_many_visitors_do_not_stop_it(model: ltds.Model, toy: Manifest) -> None:
    limits = ServeLimits(most_bytes=200_000, most_pixels=250_000, connections=4, seconds=6)
    with running(make_server(model, port=0, limits=limits)) as server:
        idle = [connected(server) for _ in range(4)]  # all that it listens to at a time
        for connection in idle:
            connection.sendall(b"POST /predict HTTP/1.1\r\nHost: loc")
        until(server, 503)
        for _ in range(3):  # who sends an image gets the answer, too, and no reset in the middle of it
            busy = request(server, "POST", "/predict", bytes(190_000))
            assert (busy.status, busy.json) == (503, {"error": "The server is busy. Try again in a moment."})
            assert (busy.headers["Retry-After"], busy.headers["Content-Type"]) == ("1", "application/json")
        idle[0].sendall(b"alhost")
        assert idle[1].recv(10) == b"", "it gives up on them"
        for connection in idle:
            connection.close()
        until(server, 200)
        assert request(server, "POST", "/predict", picture(toy)).status == 200


def test_several_at_once_get_their_own_answers(toy: Manifest, model: ltds.Model) -> None:
    rows = [int(row) for row in toy.rows("test")[::18][:3]]
    wanted = [model.predict([picture(toy, row)])[0].score for row in rows]
    found: dict[int, float] = {}
    with running(make_server(model, port=0)) as server:

        def ask(i: int) -> None:
            found[i] = request(server, "POST", "/predict", picture(toy, rows[i])).json["score"]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(rows))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [found[i] for i in range(len(rows))] == wanted


def test_an_error_inside_tells_the_visitor_nothing(
    server: PredictionServer, toy: Manifest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object, **more: object) -> None:
        raise RuntimeError("secret /root/path")

    monkeypatch.setattr(server.answerer.model, "predict", fail)
    reply = request(server, "POST", "/predict", picture(toy))
    assert reply.status == 500
    assert b"secret" not in reply.body
    assert "secret" in capsys.readouterr().err


def test_addresses_and_limits_that_cannot_be(model: ltds.Model, server: PredictionServer) -> None:
    with pytest.raises(ConfigError, match="another program listens there") as refused:
        make_server(model, port=server.server_port)
    assert refused.value.arguments == ("port=0",)
    with pytest.raises(ConfigError, match="an address of this machine"):
        make_server(model, host="203.0.113.7", port=0)
    for megabytes in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="'max_mb' to be a finite number above 0"):
            limits_of(megabytes, 5.0)
    for megapixels in (0.0, 900.0, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="max_megapixels"):
            limits_of(1.0, megapixels)
    assert limits_of(2, 3) == ServeLimits(most_bytes=2_000_000, most_pixels=3_000_000)


def test_serve_says_where_and_stops_on_interrupt(
    model: ltds.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: PredictionServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PredictionServer, "serve_forever", interrupt)
    said: list[str] = []
    serve(model, port=0, host="0.0.0.0", say=said.append)
    assert said[0].startswith("Nearest training images: ")
    assert "no password" in said[1]
    assert re.fullmatch(r"Open http://0\.0\.0\.0:\d+/ and drop images there\. Stop with Ctrl-C\.", said[2])
    assert said[3] == "Stopped."
    model.export(tmp_path / "model")
    said.clear()
    ltds.serve(tmp_path / "model", port=0, say=said.append)
    assert "are not shown" in said[0]
    assert len(said) == 3


def test_it_serves_without_nearest_images_if_these_were_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, data = write_linked_dataset(tmp_path)
    run = recorded(session := toy_session(data), tmp_path / "run")
    train(session, run)
    images.root.rename(tmp_path / "moved")
    started: list[int] = []
    monkeypatch.setattr(PredictionServer, "serve_forever", lambda self: started.append(self.answerer.nearest))
    said: list[str] = []
    serve(run.path, port=0, say=said.append)
    assert started == [0]
    assert said[0].startswith("Nearest training images are not shown. Expected the training images of 'toy' in ")
    assert f"its link '{data.root / 'source'}' leads to '{images.root}', where nothing is any more." in said[0]
    assert said[1].startswith("Open http://")
    for asked in ({"nearest": 2}, {"data": data.root}):
        with pytest.raises(DataError, match="none can be read") as refused:
            serve(run.path, port=0, **asked)
        assert refused.value.arguments == (), "no advice to name the dataset, which is where it was"
    (tmp_path / "moved" / "manifest.json").unlink()
    with pytest.raises(
        CheckpointError, match=r"moved' has no manifest.json. .* \(a folder of images is not enough"
    ) as no:
        serve(run.path, port=0, data=tmp_path / "moved")
    assert no.value.arguments == ("data",)
    (data.root / "source").unlink()
    (data.root / "source").symlink_to(tmp_path / "moved")
    serve(run.path, port=0, say=said.append)
    assert started == [0, 3], "the advice works"


def test_the_reason_for_unknown_has_numbers_that_differ(toy: Manifest, model: ltds.Model) -> None:
    content = picture(toy)
    (wanted,) = model.predict([content])
    limits = limits_of(1, 1)
    for above, known in ((2e-3, False), (3e-7, False), (0.0, True)):
        answerer = Answerer(model, limits, top=1, threshold=wanted.score + above, nearest=0)
        reason = answerer.answer(content)["reason"]
        shown = re.fullmatch(r"score ([0-9.]+), below ([0-9.]+)", reason)
        assert (reason == "") == known
        assert known or (shown and float(shown[1]) < float(shown[2]))


@pytest.mark.parametrize(("threshold", "said"), [(-math.inf, None), (math.inf, 2.0), (0.5, 0.5), (-3.0, -3.0)])
def test_about_is_json_for_every_threshold(model: ltds.Model, threshold: float, said: float | None) -> None:
    with make_server(model, port=0, threshold=threshold) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        body = request(server, path="/about").body
        thread.join()
    assert json.loads(body, parse_constant=pytest.fail)["threshold"] == said


def test_a_dataset_without_nearest_images_is_refused(
    model: ltds.Model, toy: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PredictionServer, "serve_forever", lambda self: None)
    with pytest.raises(ConfigError, match=r"argument 'data' only where .* but got it with nearest=0") as refused:
        serve(model, port=0, nearest=0, data=toy.root)
    assert refused.value.arguments == ("nearest=3",)


def test_a_model_of_features_cannot_be_served(toy: Manifest, tmp_path: Path) -> None:
    file = tmp_path / "f.npz"
    ltds.write_features(file, np.random.default_rng(0).normal(size=(len(toy), 8)), toy.paths)
    quick = {"data.batch_size": 8, "schedule.epochs": 1, "schedule.steps_per_epoch": 1}
    run = ltds.train(toy, method="agg", held_out="wax", out=tmp_path / "run", features=file, settings=quick)
    with pytest.raises(DataError, match="Expected a model of images"):
        serve(run.path, port=0)


def test_a_visitor_for_whom_no_thread_starts_takes_no_place(model: ltds.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ServeLimits(most_bytes=200_000, most_pixels=250_000, connections=2, seconds=6)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with make_server(model, port=0, limits=limits) as server, monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        for _ in range(40):
            with pytest.raises(RuntimeError, match="new thread"):
                server.process_request(None, ("127.0.0.1", 1))
        patch.undo()
        assert [server._free.acquire(blocking=False) for _ in range(3)] == [True, True, False]
        patch.setattr(threading.Thread, "start", start)
        for _ in range(40):
            with pytest.raises(RuntimeError, match="new thread"):
                server.process_request(None, ("127.0.0.1", 1))


@pytest.mark.parametrize(("system", "shared"), [("posix", True), ("nt", False)])
def test_two_servers_never_have_one_port(monkeypatch: pytest.MonkeyPatch, system: str, shared: bool) -> None:
    """On Windows the option that lets a server start again at once also lets a second one take the port."""
    code = compile(Path(server_module.__file__).read_text(encoding="utf-8"), server_module.__file__, "exec")
    names: dict[str, Any] = {"__name__": "server_there"}
    monkeypatch.setattr(os, "name", system)
    exec(code, names)
    monkeypatch.undo()
    assert names["PredictionServer"].allow_reuse_address == shared
    assert not names["PredictionServer"].allow_reuse_port
