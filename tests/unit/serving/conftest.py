"""A server with a small model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ltds
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.serving.limits import ServeLimits
from ltds.serving.server import PredictionServer, make_server
from raw_http import running
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
    with running(make_server(model, port=0, nearest=3, top=3, limits=limits)) as server:
        yield server
