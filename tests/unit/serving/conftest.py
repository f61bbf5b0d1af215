"""A server with a small model."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import ltds
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.serving.limits import ServeLimits
from ltds.serving.server import PredictionServer, make_server
from toy import recorded, toy_session


@pytest.fixture(scope="session")
def model(toy: Manifest, tmp_path_factory: pytest.TempPathFactory) -> ltds.Model:
    session = toy_session(toy)
    run = recorded(session, tmp_path_factory.mktemp("served") / "run")
    train(session, run)
    return ltds.load_model(run.path)


@pytest.fixture(scope="session")
def server(model: ltds.Model) -> Iterator[PredictionServer]:
    limits = ServeLimits(most_bytes=200_000, most_pixels=250_000, connections=4, seconds=2)
    server = make_server(model, port=0, nearest=3, top=3, limits=limits)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
