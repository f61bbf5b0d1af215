"""Runs that were stored before their preset got a new setting mean what they meant when they were trained."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ltds.data.manifest import Manifest
from ltds.engine.config import as_stored, resolve
from ltds.engine.identity import identity
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.start import resume_run
from toy import recorded, toy_config, toy_session

OLD = {"epi-fcr": "average_domains", "daml": "only_known_classes"}


@pytest.mark.parametrize(("name", "added"), OLD.items())
def test_a_run_without_the_setting_is_the_variant_from_scratch(toy: Manifest, name: str, added: str) -> None:
    old = toy_config(toy, f"{name}-scratch").to_dict()
    old["method"]["name"] = name
    del old["method"][added]
    read = resolve(as_stored(old))
    assert read.method == toy_config(toy, f"{name}-scratch").method
    assert resolve(as_stored(toy_config(toy, name).to_dict())) == toy_config(toy, name), "a new run says it itself"
    assert identity(read, toy) != identity(toy_config(toy, name), toy)


def test_a_method_without_such_a_setting_is_left_alone(toy: Manifest) -> None:
    tables = toy_config(toy, "ltds").to_dict()
    assert as_stored(tables) == tables
    assert resolve(as_stored({"data": {"root": "x"}})).method_name == "agg"


def test_an_old_run_resumes_and_its_model_has_all_outputs(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, "daml", method={"only_known_classes": False})
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=2)
    text = run.config_file.read_text()
    assert "only_known_classes = false\n" in text
    run.config_file.write_text(text.replace("only_known_classes = false\n", ""))
    resume_run(run)
    model = load_model(run.path)
    with torch.no_grad():
        logits = model.method.predict(session.batch(0).images).logits
    assert torch.isfinite(logits).all()
