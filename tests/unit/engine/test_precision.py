"""Half precision: inside backbones only, decided once, kept on resume, left out of exports."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ltds
from ltds.core.errors import ConfigError
from ltds.data.manifest import Manifest
from ltds.engine import load as engine_load
from ltds.engine import precision as engine_precision
from ltds.engine.loop import train
from ltds.engine.precision import AMX_CODE, amx_works, choose_precision, has_bfloat16, probe
from ltds.engine.start import resume_run
from ltds.evaluation.table import PredictionTable
from ltds.nn.precision import compute_in
from resuming import assert_same_outcome, stop_and_resume
from toy import recorded, toy_session

HALF = {"precision": "bfloat16", "threads": 1, "device": "cpu"}
CPU = torch.device("cpu")


def seen_dtypes(method: nn.Module) -> dict[str, set[torch.dtype]]:
    """The types of the outputs of convolutions, and of what backbone and classifier return, filled while it runs."""
    seen: dict[str, set[torch.dtype]] = {"convolution": set(), "features": set(), "logits": set()}

    def watch(module: nn.Module, name: str) -> None:
        module.register_forward_hook(lambda module, arguments, output: seen[name].add(output.dtype))

    for module in method.modules():
        if isinstance(module, nn.Conv2d):
            watch(module, "convolution")
    watch(method.get_submodule("backbone"), "features")
    watch(method.get_submodule("classifier"), "logits")
    return seen


@pytest.mark.parametrize("name", ["agg", "ltds"])
def test_bfloat16_inside_the_backbone_float32_outside(toy: Manifest, tmp_path: Path, name: str) -> None:
    session = toy_session(toy, name, run=HALF)
    seen = seen_dtypes(session.method)
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=2)
    assert seen["convolution"] == {torch.bfloat16}
    assert seen["features"] == seen["logits"] == {torch.float32}
    for key, value in session.method.state_dict().items():
        assert value.dtype in (torch.float32, torch.float64, torch.int64, torch.bool), key
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in session.method.parameters())
    assert run.read_environment()["precision"] == "bfloat16"


def test_the_loss_is_that_of_float32_up_to_rounding(toy: Manifest, tmp_path: Path) -> None:
    losses = []
    for precision in ("float32", "bfloat16"):
        session = toy_session(toy, "ltds", run={**HALF, "precision": precision})
        run = recorded(session, tmp_path / precision)
        train(session, run, stop_after=1)
        losses.append(next(iter(run.read_journal()))["loss"])
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_resume_is_exact(toy: Manifest, tmp_path: Path) -> None:
    stop_and_resume(toy, tmp_path, "ltds", 3, run=HALF)


def test_what_auto_chose_is_kept_on_resume(toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def choice(*_: Any) -> str:
        asked.append("asked")
        return "bfloat16"

    monkeypatch.setattr(engine_precision, "has_bfloat16", lambda _: True)
    monkeypatch.setattr(engine_precision, "probe", choice)
    settings = {"precision": "auto", "threads": 1, "device": "cpu"}
    whole, first = (toy_session(toy, "agg", run=settings) for _ in range(2))
    straight, broken = recorded(whole, tmp_path / "straight"), recorded(first, tmp_path / "broken")
    train(whole, straight)
    train(first, broken, stop_after=3)
    monkeypatch.setattr(engine_precision, "probe", lambda *_: "float32")  # another machine, or a busy one
    resume_run(broken)
    assert asked == ["asked"] * 2
    assert broken.read_environment()["precision"] == "bfloat16"
    assert broken.read_config()["run"]["precision"] == "auto"
    assert_same_outcome(straight, broken)


def test_auto_without_hardware_for_it_is_float32() -> None:
    def inputs() -> torch.Tensor:
        raise AssertionError("nothing is probed")

    if not has_bfloat16(CPU):
        assert choose_precision("auto", nn.Identity(), CPU, inputs) == "float32"
    assert choose_precision("bfloat16", nn.Identity(), CPU, inputs) == "bfloat16"
    assert choose_precision("auto", nn.Identity(), torch.device("meta"), inputs) == "float32"


def test_a_backbone_that_learns_nothing_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_precision, "has_bfloat16", lambda device: True)
    frozen = nn.Linear(4, 4).requires_grad_(False)
    assert choose_precision("auto", frozen, CPU, lambda: torch.ones(2, 4)) == "float32"
    assert choose_precision("auto", nn.Identity(), CPU, lambda: torch.ones(2, 4)) == "float32"


def test_a_processor_whose_amx_fails_is_not_used(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = recorded(toy_session(toy, "agg", run=HALF), tmp_path / "run")
    monkeypatch.setattr(engine_precision, "amx_works", lambda: False)
    assert not has_bfloat16(CPU)
    assert toy_session(toy, "agg", run={**HALF, "precision": "auto"}).precision == "float32"
    with pytest.raises(ConfigError, match=r"AMX fails in torch.*Compute in float32") as asked:
        toy_session(toy, "agg", run=HALF)
    assert asked.value.settings == ("run.precision=float32",)
    with pytest.raises(ConfigError, match="ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16"):
        resume_run(broken)


def test_amx_is_tried_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_precision, "_cpu_has", lambda capability: True)
    for code, works in (("pass", True), ("import os; os.kill(os.getpid(), 4)", False), (AMX_CODE, True)):
        monkeypatch.setattr(engine_precision, "AMX_CODE", code)
        amx_works.cache_clear()
        assert amx_works() is works
    amx_works.cache_clear()


def test_a_probe_leaves_the_backbone_as_it_is(toy: Manifest) -> None:
    backbone = toy_session(toy, "agg").method.backbone
    before = copy.deepcopy(backbone.state_dict())
    assert probe(backbone, torch.ones(4, 3, 16, 16)) in ("float32", "bfloat16")
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())
    assert all(p.grad is None for p in backbone.parameters())


def test_a_model_predicts_as_its_run_was_evaluated_and_exports_float32(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_load, "has_bfloat16", lambda _: True)
    session = toy_session(toy, "agg", run=HALF)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    table = PredictionTable.load(run.predictions_file("test"))
    files = [toy.root / toy.paths[row] for row in table.rows[:5]]
    model = ltds.load_model(run.path, device="cpu")
    half = torch.from_numpy(model.logits(files))
    torch.testing.assert_close(half, torch.from_numpy(table.logits[:5]), rtol=1e-2, atol=1e-2)
    model.export(tmp_path / "out", check=files)
    exported = ltds.load_model(tmp_path / "out", device="cpu")
    whole = torch.from_numpy(exported.logits(files))
    compute_in("float32", model.method)
    torch.testing.assert_close(whole, torch.from_numpy(model.logits(files)), rtol=1e-5, atol=1e-5)
    assert not torch.equal(whole, half)
    monkeypatch.setattr(engine_load, "has_bfloat16", lambda _: False)  # imitated: correct, but many times slower
    elsewhere = ltds.load_model(run.path, device="cpu")
    torch.testing.assert_close(torch.from_numpy(elsewhere.logits(files)), whole, rtol=1e-5, atol=1e-5)


def test_an_error_inside_a_backbone_leaves_autocast_off() -> None:
    method = nn.ModuleDict({"backbone": nn.Linear(3, 2)})
    compute_in("bfloat16", method)
    with pytest.raises(RuntimeError):
        method["backbone"](torch.ones(2, 5))
    assert not torch.is_autocast_enabled("cpu")
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
