"""Everything that trains or predicts keeps to one device, as it must on a GPU; numbers agree with the CPU's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import ltds
from ltds.data.features import FeatureVectors
from ltds.data.manifest import Manifest
from ltds.engine.fitting import fit_in_training
from ltds.engine.loop import take_step, train
from ltds.engine.start import resume_run
from ltds.engine.step_numbers import StepNumbers
from ltds.nn.resnet import BasicBlock, ResNet
from ltds.nn.small import TinyNet
from other_device import DEVICE, OtherTensor, other_device
from resuming import assert_same_outcome
from toy import recorded, toy_session, trained

# Each method, and presets of it that compute something else.
METHODS = [
    *("agg", "agg-embeddings", "bsce", "equal", "mixstyle", "dc", "crt", "tau-norm", "ncm", "remix", "epi-fcr-bsce"),
    *("cumix", "cumix-embeddings", "daml", "isda", "mldg", "masf", "ltds", "ltds-paper", "ltds-code", "ltds-k"),
    *("boda", "boda-crt"),
]
ON_IT = {"run": {"device": "auto"}}


class Journal:
    """The terms of the loss, step by step."""

    def __init__(self) -> None:
        self.terms: list[Mapping[str, float]] = []

    def step(self, step: int, epoch: int, lr: float, loss: float, terms: Mapping[str, float], seconds: float) -> None:
        self.terms.append(terms)


def test_the_device_refuses_what_a_gpu_refuses() -> None:
    with other_device():
        there, here = torch.ones(3, device=DEVICE), torch.ones(3)
        assert (there + there).device == DEVICE
        assert (there * torch.tensor(2.0)).tolist() == [2, 2, 2], "numbers without dimensions may be anywhere"
        with pytest.raises(RuntimeError, match="expected all tensors on one device"):
            there + here
        with pytest.raises(RuntimeError, match="not supported"):
            there.numpy()
        with pytest.raises(TypeError, match="float64"):
            there.double()
        with pytest.raises(RuntimeError, match="must wait"):
            here.to(DEVICE, non_blocking=True)
        there[1:] += 1
        assert there.cpu().tolist() == [1, 2, 2]


@pytest.mark.parametrize("method", METHODS)
def test_a_run_on_it(toy: Manifest, tmp_path: Path, method: str) -> None:
    on_cpu = toy_session(toy, method)
    wanted = Journal()
    for step in range(2):
        fit_in_training(on_cpu, step)
        take_step(on_cpu, on_cpu.batch(step), step, StepNumbers(wanted))
    with other_device():
        session = toy_session(toy, method, **ON_IT)
        run = recorded(session, tmp_path / "run")
        train(session, run)
        assert all(isinstance(p, OtherTensor) for p in session.method.state_dict().values())
    found = [row["terms"] for row in run.read_journal() if row["kind"] == "step"]
    assert len(found) == session.steps
    assert found[0] == pytest.approx(wanted.terms[0], rel=1e-4)
    assert found[1] == pytest.approx(wanted.terms[1], rel=1e-2), "later steps amplify what is rounded"


@pytest.mark.filterwarnings("ignore:SWAD found no window")
@pytest.mark.parametrize("averaging", ["ema", "swad"])
def test_a_run_on_it_resumes_bit_for_bit(toy: Manifest, tmp_path: Path, averaging: str) -> None:
    groups = {**ON_IT, "averaging": {"name": averaging}}
    with other_device():
        whole, first = (toy_session(toy, "ltds", **groups) for _ in range(2))
        straight, broken = recorded(whole, tmp_path / "straight"), recorded(first, tmp_path / "broken")
        train(whole, straight)
        train(first, broken, stop_after=3)
        resume_run(broken)
    assert_same_outcome(straight, broken)


def test_a_sample_of_classes_and_clipped_gradients(toy: Manifest, tmp_path: Path) -> None:
    with other_device():
        groups = {**ON_IT, "method": {"name": "ltds", "contrast_classes": 3}, "optimizer": {"clip_norm": 1.0}}
        session = toy_session(toy, "ltds", **groups)
        train(session, run := recorded(session, tmp_path / "run"))
    assert sum(row["kind"] == "step" for row in run.read_journal()) == session.steps


@pytest.mark.parametrize("method", ["agg", "ltds", "ncm"])
def test_models_predict_there_as_on_the_cpu(toy: Manifest, tmp_path: Path, method: str) -> None:
    run = trained(toy, tmp_path / "run", method).path
    files = [toy.root / toy.paths[row] for row in toy.rows("test")[:7]]
    wanted = ltds.predict(run, files, device="cpu", nearest=2).predicted
    metrics = ltds.evaluate(run, data=toy.root, split="test", out=tmp_path / "cpu", device="cpu")
    (run / "nearest.npz").unlink()  # computed again, on the device
    with other_device():
        assert ltds.load_model(run).device == DEVICE
        found = ltds.predict(run, files, nearest=2, name_unknowns=method == "ltds").predicted
        again = ltds.evaluate(run, data=toy.root, split="test", out=tmp_path / "there")
        assert again.keys() == metrics.keys()
        assert again["overall"] == pytest.approx(metrics["overall"], abs=1e-4)
        ltds.export(run, tmp_path / "exported", nearest=True)
        exported = ltds.predict(tmp_path / "exported", files, nearest=2).predicted
    for other in (found, exported):
        for one, same in zip(wanted, other, strict=True):
            assert (one.answer.label, one.answer.unknown) == (same.answer.label, same.answer.unknown)
            assert one.answer.score == pytest.approx(same.answer.score, abs=1e-5)
            assert [near.path for near in one.answer.nearest] == [near.path for near in same.answer.nearest]


def test_features_frozen_stages_and_what_is_trained_on_them(toy: Manifest, tmp_path: Path) -> None:
    torch.manual_seed(5)
    weights = {name: tmp_path / f"{name}.safetensors" for name in ("tiny", "resnet10")}
    save_file(TinyNet().state_dict(), weights["tiny"])
    save_file(ResNet(BasicBlock, (1, 1, 1, 1), stem="small", width=8).state_dict(), weights["resnet10"])
    stages = {"name": "resnet10", "stem": "small", "width": 8, "weights": str(weights["resnet10"]), "frozen": 2}
    features = partial(ltds.extract_features, toy, backbone="tiny", weights=weights["tiny"], size=16)
    on_cpu = FeatureVectors.read(features(out=tmp_path / "cpu.npz", device="cpu"), toy)
    with other_device():
        file = features(out=tmp_path / "features.npz")
        np.testing.assert_allclose(FeatureVectors.read(file, toy).values, on_cpu.values, rtol=1e-3)
        for changes in ({"data.features": str(file)}, {"backbone": stages, "data.cached_variants": 2, "data.size": 16}):
            settings = {**changes, "data.batch_size": 8, "schedule.epochs": 1, "schedule.steps_per_epoch": 2}
            run = ltds.train(toy, method="ltds", held_out="wax", out=tmp_path / f"run{len(changes)}", settings=settings)
            answers = ltds.predict(run.path, [toy.root / toy.paths[0]]).predicted
            assert len(answers) == 1


def test_an_estimator_trains_there() -> None:
    sklearn = pytest.importorskip("ltds.sklearn", reason="needs scikit-learn: pip install 'ltds[sklearn]'")
    rng = np.random.default_rng(0)
    X, y, site = rng.normal(size=(60, 4)), np.repeat(["ant", "bee", "cat"], 20), np.arange(60) % 3
    X[:, 0] += 3 * (y == "ant")
    with other_device():
        model = sklearn.LongTailClassifier(max_iter=20, device="auto").fit(X, y, domains=site)
        assert model.model_.device == DEVICE
        assert (model.predict(X) == y)[:20].mean() > 0.8
