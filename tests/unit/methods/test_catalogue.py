"""Every preset is catalogued, its page says its name, and a step costs what the catalogue says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ltds.core.types import Clock
from ltds.data.manifest import Manifest
from ltds.engine.phases import freeze, start_phase
from ltds.methods.catalogue import CATALOGUE, GROUPS
from ltds.methods.presets import PRESETS
from toy import toy_session

DOCS = Path(__file__).resolve().parents[3] / "docs" / "methods"
BATCH = 8


def test_every_preset_and_nothing_else() -> None:
    assert set(CATALOGUE) == set(PRESETS)
    assert {entry.group for entry in CATALOGUE.values()} == set(GROUPS)
    assert all(entry.citations for entry in CATALOGUE.values())


@pytest.mark.parametrize("name", sorted(set(CATALOGUE) - {f"ltds-{letter}" for letter in "abcdefghijkl"}))
def test_the_page_names_the_preset(name: str) -> None:
    page = DOCS / f"{CATALOGUE[name].page}.md"
    assert f"`{name}`" in page.read_text() or name in page.read_text().splitlines()[0], page


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize(("held_out", "sources"), [("wax", 2), ("", 3)])
def test_networks_and_passes(toy: Manifest, name: str, held_out: str, sources: int) -> None:
    """Counts the images that go through any backbone in the last step."""
    if (name, held_out) == ("equal", ""):
        pytest.skip("with every domain the toy dataset has no class that is rare enough for 'equal'")
    session = toy_session(toy, name, data={"held_out": held_out, "batch_size": BATCH})
    seen: list[int] = []
    networks = [m for m in session.method.modules() if type(m) is type(session.method.backbone)]
    for network in networks:
        network.register_forward_hook(lambda _, images, __: seen.append(len(images[0])))
    for step in range(session.steps):
        scheduled = session.phase_at(step)
        if step == scheduled.start:
            if step:
                start_phase(scheduled, session.method, session.optimizer, seed=0)
            freeze(session.method, scheduled.phase, session.learnable)
    session.method.train()
    seen.clear()
    step = session.steps - 1
    session.method.loss(session.batch(step), Clock(0, step - scheduled.start, scheduled.steps, 2, scheduled.phase.name))
    entry = CATALOGUE[name]
    assert len(networks) == eval(entry.networks, {"K": sources})
    assert sum(seen) / BATCH == eval(entry.passes, {"K": sources})
