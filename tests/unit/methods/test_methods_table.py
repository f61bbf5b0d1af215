"""The table of methods: every entry is complete, its page names it, and a step costs what the entry says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import BaseModel

from ltds.core.task import Task
from ltds.core.types import Batch, Clock, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine.build import build_method
from ltds.engine.config import resolve
from ltds.engine.phases import freeze, start_phase
from ltds.engine.semantics import load_embeddings
from ltds.methods.base import Method
from ltds.methods.entry import GROUPS, OUTSIDE
from ltds.methods.registry import METHODS, find_method, list_methods
from ltds.methods.table import domains, long_tail, paper
from ltds.semantics.embeddings import ClassEmbeddings
from toy import toy_session

DOCS = Path(__file__).resolve().parents[3] / "docs" / "methods"
BATCH = 8


def test_every_entry_is_complete_and_named_once() -> None:
    assert len(METHODS) == len(long_tail.ENTRIES) + len(domains.ENTRIES) + len(paper.ENTRIES)
    assert list_methods() == tuple(METHODS.values())
    assert {entry.group for entry in METHODS.values()} == set(GROUPS)
    assert all(entry.summary and entry.citations and entry.page for entry in METHODS.values())


def test_presets_set_what_their_papers_say() -> None:
    settings = {name: entry.settings for name, entry in METHODS.items()}
    weights = settings["cumix-scratch"]["weights"]
    assert {name: 6.1 * weight for name, weight in weights.items()} == pytest.approx(
        {"samples": 3, "features": 3, "images": 0.1}
    )
    assert settings["agg-embeddings"] == {"z2s": 0.1}
    assert settings["ltds-k"] == {"single_prototype": True}
    assert settings["ltds-l"] == {"neighbour_weights": "none"}
    assert settings["ltds-code"]["align_to_semantics"] is False
    assert settings["ltds-code"]["slow_weights_in_meta_test"] is True
    assert settings["ltds-e"]["weights"] == {"s2s": 0.0, "s2z": 0.0, "augmentation": 0.0}


def test_every_setting_of_every_method_has_a_description() -> None:
    def undescribed(model: type[BaseModel], prefix: str) -> list[str]:
        missing = [prefix + name for name, field in model.model_fields.items() if not field.description]
        for name, field in model.model_fields.items():
            if isinstance(field.default, BaseModel):
                missing += undescribed(type(field.default), f"{prefix}{name}.")
        return missing

    configs = {entry.method.Config for entry in METHODS.values()}
    assert [name for config in configs for name in undescribed(config, f"{config.__name__}.")] == []


class Silent(Method):
    """Says nothing.

    And has more to say.
    """

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        raise NotImplementedError


def test_a_class_from_outside_gets_an_entry_from_its_docstring() -> None:
    entry = find_method("test_methods_table:Silent")
    assert entry.method.__name__ == "Silent"
    assert (entry.name, entry.summary, entry.group) == ("test_methods_table:Silent", "Says nothing.", OUTSIDE)
    assert [entry.page, entry.networks, entry.passes] == [""] * 3
    assert not entry.settings
    assert not entry.citations


@pytest.mark.parametrize("name", sorted(set(METHODS) - {f"ltds-{letter}" for letter in "abcdefghijkl"}))
def test_the_page_names_the_method(name: str) -> None:
    page = DOCS / f"{METHODS[name].page}.md"
    assert f"`{name}`" in page.read_text() or name in page.read_text().splitlines()[0], page


@pytest.mark.parametrize("name", METHODS)
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
    entry = METHODS[name]
    assert len(networks) == eval(entry.networks, {"K": sources})
    assert sum(seen) / BATCH == eval(entry.passes, {"K": sources})


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_rebuilt_from_its_settings_its_task_and_a_file_of_embeddings(
    toy: Manifest, tmp_path: Path, name: str
) -> None:
    """Nothing else of the dataset is needed: the rebuilt method takes the weights and predicts the same."""
    session = toy_session(toy, name)
    trained = session.method.eval()
    config, task = resolve(session.config.to_dict()), Task.from_dict(session.task.to_dict())
    embeddings = None
    if trained.uses_embeddings(config.method):
        given = load_embeddings(session.config, toy, session.task)
        assert given is not None
        np.savez(tmp_path / "embeddings.npz", class_names=np.array(given.names), vectors=given.vectors.numpy())
        embeddings = ClassEmbeddings.from_table(tmp_path / "embeddings.npz")
    rebuilt = build_method(config, task, embeddings).eval()
    rebuilt.load_state_dict(trained.state_dict())
    images = session.batch(0).images
    with torch.no_grad():
        assert torch.equal(rebuilt.predict(images).logits, trained.predict(images).logits)
    for (path, ours), (_, theirs) in zip(rebuilt.named_buffers(), trained.named_buffers(), strict=True):
        assert torch.equal(ours, theirs), path
