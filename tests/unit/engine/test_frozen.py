"""Frozen stages: the same steps as the whole network with those stages frozen, without computing them again."""

from __future__ import annotations

import copy
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from image_tensors import cached_image
from ltds.core.errors import CheckpointError, ConfigError
from ltds.core.runs import RunDirectory
from ltds.data.activations import ActivationInputs, ActivationSource
from ltds.data.cache import ImageCache
from ltds.data.manifest import Manifest
from ltds.data.transforms import EvalTransform, TrainTransform
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.predict_files import predict_files
from ltds.engine.start import resume_run, train_new_run
from ltds.evaluation.table import PredictionTable
from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.nn.frozen import FrozenNetwork
from ltds.nn.networks import backbones_of
from ltds.nn.resnet import BasicBlock, ResNet
from resuming import stop_and_resume
from toy import recorded, toy_config, toy_session

LAYERS = {"name": "resnet10", "stem": "small", "width": 8}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A network whose BatchNorms have seen images."""
    torch.manual_seed(3)
    network = ResNet(BasicBlock, (1, 1, 1, 1), stem="small", width=8)
    network(torch.randn(16, 3, 16, 16))
    file = tmp_path_factory.mktemp("weights") / "resnet10.safetensors"
    save_file(network.state_dict(), file)
    return str(file)


def frozen(weights: str, stages: int = 2) -> dict[str, object]:
    return {**LAYERS, "weights": weights, "frozen": stages}


def source_of(weights: str, stages: int) -> ActivationSource:
    network = FrozenNetwork(BackboneSettings(**frozen(weights, stages)), stages)  # type: ignore[arg-type]
    return ActivationSource(network, network.checksum, EvalTransform(16), TrainTransform(16))


@pytest.mark.parametrize("stages", [1, 3])
def test_a_step_is_that_of_the_whole_network_with_these_stages_frozen(toy: Manifest, weights: str, stages: int) -> None:
    session = toy_session(toy, backbone=frozen(weights, stages))
    whole = build_backbone(BackboneSettings(**LAYERS, weights=weights)).train()  # type: ignore[arg-type]
    for name, module in whole.named_children():
        if name in ("conv1", "bn1", *(f"layer{i}" for i in range(1, stages + 1))):
            module.eval().requires_grad_(False)
    whole.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    cache = ImageCache.open(toy, session.config.data.decoded_side)
    exact = ActivationInputs.open(toy, cache, source_of(weights, stages), dtype=np.float32)
    batch = session.batch(0)
    rows = batch.rows.numpy()
    images = EvalTransform(16)([cached_image(cache, row) for row in rows])
    method = session.method.train()
    twin = copy.deepcopy(method)
    twin.backbone = whole

    def loss_and_gradient(inputs: torch.Tensor, model: torch.nn.Module) -> tuple[float, torch.Tensor]:
        clock = _clock(session)
        total = model.loss(replace(batch, images=inputs), clock).total  # type: ignore[operator]
        total.backward()
        grads = [p.grad.flatten() for p in model.backbone.parameters() if p.grad is not None]  # type: ignore
        return total.item(), torch.cat(grads)

    expected, gradient = loss_and_gradient(images, twin)
    for inputs, tolerance in ((exact.evaluation(rows), 1e-6), (batch.images, 2e-3)):
        method.zero_grad()
        got, found = loss_and_gradient(inputs, method)
        assert got == pytest.approx(expected, rel=tolerance)
        if inputs is not batch.images:  # rounding to half precision moves some values over the kinks of ReLU
            torch.testing.assert_close(found, gradient, rtol=tolerance, atol=tolerance)


def _clock(session):  # type: ignore[no-untyped-def]
    from ltds.core.types import Clock

    return Clock(0, 0, session.steps, 2, "main")


@pytest.mark.parametrize("method", ["agg", "ltds"])
def test_runs_resume_exactly_and_their_models_predict_from_images(
    toy: Manifest, tmp_path: Path, weights: str, method: str
) -> None:
    config = toy_config(toy, method, backbone=frozen(weights), data={"cached_variants": 3})
    straight = RunDirectory(tmp_path / "straight")
    train_new_run(straight, config, toy)
    session = toy_session(toy, method, backbone=frozen(weights), data={"cached_variants": 3})
    broken = recorded(session, tmp_path / "broken")
    train(session, broken, stop_after=3)
    resume_run(broken)
    assert straight.best_checkpoint.read_bytes() == broken.best_checkpoint.read_bytes()
    table = PredictionTable.load(straight.predictions_file("test"))
    model = load_model(straight.path, device="cpu")
    paths = [toy.root / toy.paths[row] for row in table.rows]
    np.testing.assert_allclose(model.logits(paths), table.logits, rtol=1e-3, atol=1e-3)


def test_files_go_through_the_frozen_stages_in_batches(
    toy: Manifest, tmp_path: Path, weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path / "run")
    train_new_run(run, toy_config(toy, backbone=frozen(weights)), toy)
    model = load_model(run.path, device="cpu")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    files = [toy.root / toy.paths[row] for row in toy.rows("test")[:9]]
    batches: list[tuple[int, str]] = []
    compute = FrozenNetwork.__call__

    def counted(network: FrozenNetwork, images: torch.Tensor) -> torch.Tensor:
        batches.append((len(images), threading.current_thread().name))
        return compute(network, images)

    monkeypatch.setattr(FrozenNetwork, "__call__", counted)
    found = predict_files(model, [*files[:2], broken, *files[2:]], batch_size=4)
    here = threading.current_thread().name
    assert batches == [(3, here), (4, here), (2, here)], "networks in two threads would compete for the same cores"
    assert [row.file for row in found.skipped] == [broken]
    assert [row.file for row in found.predicted] == files
    for row, alone in zip(found.predicted, model.predict(files, batch_size=1), strict=True):
        assert dict(row.answer.classes) == pytest.approx(dict(alone.classes), abs=1e-3)
    batches.clear()
    model.logits(2 * files)
    assert batches == [(16, here), (2, here)], "outputs of the first layers of many images take too much memory"


def test_variants_are_fixed_draws_and_each_step_picks_among_them(toy: Manifest, weights: str) -> None:
    cache = ImageCache.open(toy, 18)
    source = source_of(weights, 2)
    inputs = ActivationInputs.open(toy, cache, source, 3, dtype=np.float32)
    rows = np.repeat(toy.rows("train")[:2], 40)
    share = np.arange(len(rows))
    drawn = inputs.training(rows, share, 0, 5)
    assert torch.equal(drawn, inputs.training(rows, share, 0, 5))
    assert not torch.equal(drawn, inputs.training(rows, share, 0, 6))
    assert torch.equal(drawn[10:30], inputs.training(rows, share[10:30], 0, 5)), "a rank computes its share alike"
    different = torch.unique(drawn[:40].flatten(1), dim=0)
    assert len(different) == 3
    plain = inputs.evaluation(rows[:1])
    assert (different == plain.flatten(1)).all(1).sum() == 1, "variant 0 is the image without augmentation"
    fewer = ActivationInputs.open(toy, cache, source, 2, dtype=np.float32).training(rows, share, 0, 5)
    assert len(torch.unique(torch.cat([fewer, drawn])[:, :].flatten(1), dim=0)) == 6, "more variants keep the first"


def test_the_cache_is_built_once_and_again_when_an_image_or_a_weight_changes(
    toy: Manifest, tmp_path: Path, weights: str
) -> None:
    from toy import write_dataset

    own = write_dataset(tmp_path / "own")
    calls = 0
    source = source_of(weights, 2)

    def counted(images: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += len(images)
        return source.network(images)

    def opened(checksum: str = source.checksum) -> None:
        ActivationInputs.open(own, ImageCache.open(own, 18), replace(source, network=counted, checksum=checksum))

    opened()
    assert calls == len(own)
    opened()
    assert calls == len(own)
    image = own.root / own.paths[0]
    image.write_bytes((own.root / own.paths[1]).read_bytes())
    opened()
    assert calls == 2 * len(own)
    (file,) = (own.root / ".cache" / "frozen").iterdir()
    opened("another network")
    assert calls == 3 * len(own)
    file.write_bytes(file.read_bytes()[:1000])
    opened()
    assert calls == 4 * len(own), "a damaged file is computed again"


def test_settings_that_do_not_fit_are_refused(toy: Manifest, tmp_path: Path, weights: str) -> None:
    with pytest.raises(ConfigError, match=r"Expected backbone.weights for a backbone that stays as it is"):
        toy_config(toy, backbone={"name": "resnet10", "frozen": 2})
    with pytest.raises(ConfigError, match=r"data.cached_variants only with frozen stages, but got 3"):
        toy_config(toy, data={"cached_variants": 3})
    file = tmp_path / "tiny.safetensors"
    save_file({}, file)
    with pytest.raises(CheckpointError):
        toy_session(toy, backbone={"name": "tiny", "frozen": 1, "weights": str(file)})


def test_a_run_does_not_go_on_with_other_frozen_weights(toy: Manifest, tmp_path: Path, weights: str) -> None:
    file = tmp_path / "weights.safetensors"
    file.write_bytes(Path(weights).read_bytes())
    session = toy_session(toy, backbone=frozen(str(file)))
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=2)
    save_file(ResNet(BasicBlock, (1, 1, 1, 1), stem="small", width=8).state_dict(), file)
    with pytest.raises(CheckpointError, match=r"pretrained weights that .* was started with.*holds others now"):
        resume_run(run)
    environment = run.read_environment()
    del environment["files"]  # as with weights that come with a package
    run.write_environment(environment)
    with pytest.raises(CheckpointError, match=r"frozen network that .* was started with.*other weights"):
        resume_run(run)


def test_frozen_batchnorm_and_weights_stay_untouched(toy: Manifest, tmp_path: Path, weights: str) -> None:
    from safetensors.torch import load_file

    run = RunDirectory(tmp_path / "run")
    train_new_run(run, toy_config(toy, backbone=frozen(weights)), toy)
    kept, before = load_file(run.frozen_weights), load_file(weights)
    assert kept.keys() == {k for k in before if k.startswith(("conv1", "bn1", "layer1", "layer2"))}
    assert all(torch.equal(kept[name], before[name]) for name in kept)


@pytest.mark.parametrize("method", ["agg", "ltds", "epi-fcr"])
def test_fixed_statistics_stay_through_a_run_that_is_stopped_and_resumed(
    toy: Manifest, weights: str, tmp_path: Path, method: str
) -> None:
    """Also in the networks of single domains, which are copies, and in the inner step of ltds."""
    backbone = {**LAYERS, "weights": weights, "batchnorm": "fixed"}
    gentle = {"optimizer": {"lr": 0.003}, **({"method": {"inner_lr": 0.003}} if method == "ltds" else {})}
    session = stop_and_resume(toy, tmp_path, method, 3, backbone=backbone, **gentle)
    given = build_backbone(BackboneSettings(**backbone)).state_dict()  # type: ignore[arg-type]
    for name, network in backbones_of(session.method).items():
        state = network.state_dict()
        for key in (key for key in given if "running_" in key):
            assert torch.equal(state[key], given[key]), f"{name}.{key}"
        assert not torch.equal(state["bn1.weight"], given["bn1.weight"]), "scales learn"
    model = load_model(RunDirectory(tmp_path / "straight").path)
    assert torch.equal(dict(model.method.named_buffers())["backbone.bn1.running_mean"], given["bn1.running_mean"])
