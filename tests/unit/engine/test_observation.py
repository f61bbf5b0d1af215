"""What a run writes beside its outcome: features, distances between domains, TensorBoard's event files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from ltds.core.errors import ConfigError
from ltds.data.manifest import Manifest
from ltds.engine import tensorboard
from ltds.engine.features import sample_features, validation_distances
from ltds.engine.loop import train
from ltds.engine.start import resume_run
from ltds.evaluation.features import FeatureTable
from ltds.stats.frechet import frechet_distance
from toy import recorded, toy_config, toy_session


def test_stored_features_are_the_models_own(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, "ltds")
    run = recorded(session, tmp_path / "run")
    train(session, run)
    table = FeatureTable.load(run.features_file)
    assert table is not None
    assert sorted(table.rows) == sorted(toy.rows("test"))
    np.testing.assert_array_equal(table.labels, toy.labels[table.rows])
    np.testing.assert_array_equal(table.domains, toy.domain_ids[table.rows])
    images = {int(row): image for batch, rows in session.images("test") for image, row in zip(batch, rows, strict=True)}
    with torch.no_grad():
        features = session.method.predict(torch.stack([images[int(row)] for row in table.rows])).features
        projected = session.method.to_semantic(features)  # type: ignore[operator]
    np.testing.assert_allclose(table.features, features, rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(table.diagnostics["projected"], projected, rtol=4e-3, atol=1e-3)


def test_views_of_classes_are_cosines_and_distances(toy: Manifest) -> None:
    session = toy_session(toy, "ltds")
    covariance = session.method.augmentation.covariance
    covariance.sigma.copy_(torch.rand(covariance.sigma.shape, generator=torch.Generator().manual_seed(0)))
    assert set(sample_features(session).diagnostics) == {"projected", "embeddings"}, "no covariance was estimated yet"
    covariance.count.fill_(2)
    views = sample_features(session).diagnostics
    np.testing.assert_allclose(np.diag(views["embeddings"]), 1, atol=1e-3)
    sigma = covariance.sigma.numpy()
    assert views["covariances"][0, 3] == pytest.approx(np.linalg.norm(sigma[0] - sigma[3]), rel=1e-3)
    # 'fox', without images, only borrows; its neighbours' mean is nearer to theirs than what it had.
    assert views["updated"].shape == (6, 6)
    assert views["updated"].sum() < views["covariances"].sum()


def test_hidden_open_classes_show_no_embedding(toy: Manifest) -> None:
    session = toy_session(toy, "ltds", method={"hide_open_names": True})
    cosine = sample_features(session).diagnostics["embeddings"]
    assert np.isnan(cosine[5]).all()
    assert np.isfinite(cosine[:5, :5]).all()


def test_distances_are_written_at_the_epochs_asked_for_and_change_nothing(toy: Manifest, tmp_path: Path) -> None:
    plain = recorded(toy_session(toy), tmp_path / "plain")
    train(toy_session(toy), plain)
    session = toy_session(toy, run={"frechet_every": 2})
    assert session.identity == toy_session(toy).identity
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=4)
    resume_run(run)
    (line,) = [row for row in run.read_journal() if row["kind"] == "frechet"]
    assert (line["step"], line["epoch"], list(line["pairs"])) == (4, 1, ["ink|oil"])
    assert line["mean"] == line["pairs"]["ink|oil"] > 0
    assert run.last_checkpoint.read_bytes() == plain.last_checkpoint.read_bytes()
    assert run.read_metrics() == plain.read_metrics()


def test_distances_are_between_validation_features(toy: Manifest) -> None:
    session = toy_session(toy)
    clouds = []
    for domain in ("ink", "oil"):
        wanted = set(toy.rows("val", domain).tolist())
        images = [i for batch, rows in session.images("val") for i, r in zip(batch, rows, strict=True) if r in wanted]
        session.method.eval()
        with torch.no_grad():
            clouds.append(session.method.predict(torch.stack(images)).features.numpy())
    assert validation_distances(session)["ink|oil"] == pytest.approx(frechet_distance(*clouds), rel=1e-4)


def test_event_files_hold_the_journal_once_after_a_resume(toy: Manifest, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra 'tensorboard'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    session = toy_session(toy, run={"tensorboard": True, "frechet_every": 1, "checkpoint_every": 2})
    assert session.identity == toy_session(toy, run={"checkpoint_every": 2}).identity
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=4)
    lost = tensorboard.EventFile(run.path, 4)  # a process that went on to step 5 and was switched off there
    lost.write({"kind": "step", "step": 5, "loss": 99.0})
    lost.close()
    resume_run(run)
    events = EventAccumulator(str(run.path)).Reload()
    assert {"step/loss", "step/lr", "step/terms/classification", "frechet/mean"} <= set(events.Tags()["scalars"])
    rows = [row for row in run.read_journal() if row["kind"] == "step"]
    found = events.Scalars("step/loss")
    assert [event.step for event in found] == [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [event.value for event in found] == pytest.approx([row["loss"] for row in rows])
    assert [event.step for event in events.Scalars("validation/accuracy")] == [2, 4, 6]
    assert not any(math.isclose(event.value, 99.0) for event in found)


def test_scalars_are_numbers_and_nothing_else() -> None:
    row = {"kind": "validation", "step": 2, "epoch": 0, "split": "val", "accuracy": 0.5, "best": True}
    found = dict(tensorboard.scalars({**row, "per_domain": {"ink": 0.25, "oil": None}}))
    assert found == {"validation/accuracy": 0.5, "validation/per_domain/ink": 0.25}


def test_a_missing_package_is_said_before_anything_is_written(toy: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard, "find_spec", lambda name: None)
    assert toy_config(toy, run={"tensorboard": True}).run.tensorboard
    with pytest.raises(ConfigError, match=r"pip install 'ltds\[tensorboard\]'"):
        toy_session(toy, run={"tensorboard": True})
