"""What every test may ask for."""

from __future__ import annotations

import pytest

from ltds.data.manifest import Manifest
from toy import write_dataset


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """Six classes, three domains, two splits of the tail: small enough to train in a second."""
    return write_dataset(tmp_path_factory.mktemp("toy"))
