"""CartoonGAN against its own pictures, CycleGAN's published layout, files old and wrong, images of any size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from ltds.core.errors import ConfigError, DataError
from ltds.data.styles import STYLES, load_style
from ltds.data.styles.cartoongan import CartoonGenerator
from ltds.data.styles.cyclegan import CycleGenerator

WEIGHTS = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "weights" / "cartoongan"
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def cyclegan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file in the published layout, written by name and shape alone: it shares no code with the generator."""
    draw = torch.Generator().manual_seed(0)
    shapes = {"1": (64, 3, 7, 7), "4": (128, 64, 3, 3), "7": (256, 128, 3, 3), "19": (256, 128, 3, 3)}
    shapes |= {"22": (128, 64, 3, 3), "26": (3, 64, 7, 7)}
    shapes |= {f"{block}.conv_block.{part}": (256, 256, 3, 3) for block in range(10, 19) for part in (1, 5)}
    weights = {}
    for name, shape in shapes.items():
        outputs = shape[1] if name in ("19", "22") else shape[0]  # transposed ones store inputs first
        weights[f"model.{name}.weight"] = torch.randn(shape, generator=draw) * 0.02
        weights[f"model.{name}.bias"] = torch.randn(outputs, generator=draw) * 0.02
    file = tmp_path_factory.mktemp("weights") / "latest_net_G.pth"
    torch.save(weights, file)
    return file


@pytest.mark.parametrize("name", ["Hayao", "Shinkai"])
def test_cartoongan_reproduces_its_own_pictures(name: str) -> None:
    if not WEIGHTS.is_dir():
        pytest.skip(f"no CartoonGAN weights in {WEIGHTS}")
    known = np.load(WEIGHTS / "expected_128.npz")
    image = torch.from_numpy(known["input_uint8"]).permute(2, 0, 1)[None].float() / 255
    style = load_style(name.lower(), WEIGHTS / f"{name}_net_G_float.pth", CPU)
    assert_close(style(image)[0].permute(1, 2, 0), torch.from_numpy(known[name]), atol=2e-3, rtol=0)


def test_cartoongan_has_the_published_names() -> None:
    found = {name: tuple(value.shape) for name, value in CartoonGenerator().state_dict().items()}
    assert len(found) == 2 * (1 + 2 * 2 + 8 * 2 + 2 * 2 + 1) + 2 * (3 + 8 * 2 + 2)
    assert found["conv01_1.weight"] == (64, 3, 7, 7)
    assert found["conv03_2.bias"] == (256,)
    assert found["in11_2.scale"] == (256,)
    assert found["deconv01_1.weight"] == (256, 128, 3, 3)
    assert found["in13_1.shift"] == (64,)
    assert found["deconv03_1.weight"] == (3, 64, 7, 7)


def test_cyclegan_reads_the_published_layout(cyclegan_file: Path) -> None:
    style = load_style("vangogh", cyclegan_file, CPU)
    image = torch.rand(1, 3, 16, 20, generator=torch.Generator().manual_seed(1))
    made = style(image)
    network = CycleGenerator()
    network.load_state_dict(torch.load(cyclegan_file, weights_only=True))
    with torch.no_grad():
        assert_close(made, network.model(image * 2 - 1) / 2 + 0.5)
    assert made.std() > 0.01


def test_old_cyclegan_files_with_running_statistics(cyclegan_file: Path, tmp_path: Path) -> None:
    weights = torch.load(cyclegan_file, weights_only=True)
    for layer in ("model.2", "model.10.conv_block.2", "model.23"):
        weights |= {f"{layer}.running_mean": torch.rand(64), f"{layer}.running_var": torch.rand(64)}
        weights[f"{layer}.num_batches_tracked"] = torch.tensor(7)
    torch.save(weights, tmp_path / "old.pth")
    image = torch.rand(2, 3, 12, 12)
    old, new = (load_style("ukiyoe", file, CPU)(image) for file in (tmp_path / "old.pth", cyclegan_file))
    assert torch.equal(old, new)


def test_halves_and_safetensors(cyclegan_file: Path, tmp_path: Path) -> None:
    weights = {name: value.half() for name, value in torch.load(cyclegan_file, weights_only=True).items()}
    torch.save(weights, tmp_path / "half.pth")
    save_file(weights, tmp_path / "half.safetensors")
    image = torch.rand(1, 3, 12, 12)
    one, two = (load_style("vangogh", tmp_path / f"half.{kind}", CPU)(image) for kind in ("pth", "safetensors"))
    assert one.dtype == torch.float32
    assert torch.equal(one, two)


@pytest.mark.parametrize("size", [(1, 1), (5, 7), (8, 8), (13, 30)])
def test_images_of_any_size(cyclegan_file: Path, size: tuple[int, int]) -> None:
    made = load_style("vangogh", cyclegan_file, CPU)(torch.rand(1, 3, *size))
    assert made.shape == (1, 3, *size)
    assert made.min() >= 0
    assert made.max() <= 1
    assert made.isfinite().all()


def test_wrong_files_are_named(cyclegan_file: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"got no 'conv01_1.weight', .*an unknown 'model.1.weight'.*CartoonGAN-Test"):
        load_style("hayao", cyclegan_file, CPU)
    with pytest.raises(DataError, match="nothing there"):
        load_style("hayao", tmp_path / "absent.pth", CPU)
    weights = torch.load(cyclegan_file, weights_only=True)
    torch.save({**weights, "model.1.weight": torch.zeros(32, 3, 7, 7)}, tmp_path / "narrow.pth")
    with pytest.raises(DataError, match=r"'model.1.weight' of shape \(32, 3, 7, 7\) instead of \(64, 3, 7, 7\)"):
        load_style("vangogh", tmp_path / "narrow.pth", CPU)
    torch.save({**weights, "model.1.bias": torch.full((64,), float("nan"))}, tmp_path / "nan.pth")
    with pytest.raises(DataError, match=r"NaN or inf in 'model.1.bias'"):
        load_style("vangogh", tmp_path / "nan.pth", CPU)
    for name, content in (("cut.pth", cyclegan_file.read_bytes()[:5000]), ("no.safetensors", b"nonsense")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match="Download it again"):
            load_style("vangogh", tmp_path / name, CPU)
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(DataError, match="state dict"):
        load_style("vangogh", tmp_path / "list.pth", CPU)


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("code from a weight file ran",)


def test_no_code_in_a_file_of_weights_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"model.1.weight": Trap()}, tmp_path / "trap.pth")
    with pytest.raises(DataError, match="a file of tensors"):
        load_style("vangogh", tmp_path / "trap.pth", CPU)
    assert capsys.readouterr().out == ""


def test_weights_only_where_they_belong(cyclegan_file: Path) -> None:
    with pytest.raises(ConfigError, match="given no weights"):
        load_style("classical:oil", cyclegan_file, CPU)
    with pytest.raises(ConfigError, match=r"style 'hayao' to be given its weights, but got none.*argument 'weights'"):
        load_style("hayao", None, CPU)
    with pytest.raises(ConfigError, match="Did you mean 'shinkai'"):
        load_style("shinkay", None, CPU)
    assert {"hayao", "shinkai", "vangogh", "ukiyoe"} < STYLES.keys()
