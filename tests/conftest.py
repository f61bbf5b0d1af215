"""What every test may ask for."""

from __future__ import annotations

import pytest
import torch

from ltds.data.manifest import Manifest
from toy import write_dataset

torch.set_num_threads(1)  # several tests run at once, and two threads on small tensors only get in each other's way


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """Six classes, three domains, two splits of the tail: small enough to train in a second."""
    return write_dataset(tmp_path_factory.mktemp("toy"))
