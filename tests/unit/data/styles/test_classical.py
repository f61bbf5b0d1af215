"""Classical styles: what each promises, on real photographs where they are at hand, and on awkward images."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ltds.data.decode import decode
from ltds.data.styles import STYLES, Filter, classical, filters

PHOTOS = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "pacs96" / "PACS" / "photo"
CLASSICAL = {name: style.apply for name, style in STYLES.items() if isinstance(style, Filter)}


@pytest.fixture(scope="module")
def photos() -> Tensor:
    """(7,3,96,96): a photograph of each class of PACS."""
    if not PHOTOS.is_dir():
        pytest.skip(f"no PACS photographs in {PHOTOS}")
    files = [sorted(folder.glob("*.jpg"))[7] for folder in sorted(PHOTOS.iterdir())]
    return torch.from_numpy(np.stack([decode(file, 96) for file in files])).permute(0, 3, 1, 2).float() / 255


@pytest.fixture(scope="module")
def drawing() -> Tensor:
    """(1,3,64,64): a bright disc on a dark ground, with noise."""
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
    disc = ((x - 32) ** 2 + (y - 32) ** 2 < 400).float()
    noise = 0.02 * torch.randn(3, 64, 64, generator=torch.Generator().manual_seed(0))
    colour = torch.tensor([0.8, 0.6, 0.4]).view(3, 1, 1) * disc + 0.2
    return (colour + noise).clamp(0, 1)[None]


def test_there_are_the_promised_ones() -> None:
    assert {f"classical:{name}" for name in ("cartoon", "pencil", "oil", "poster")} <= CLASSICAL.keys()


@pytest.mark.parametrize("name", CLASSICAL)
def test_any_size_keeps_its_shape_and_range(name: str) -> None:
    for size in ((1, 1), (5, 7), (33, 50)):
        for images in (torch.zeros(1, 3, *size), torch.ones(2, 3, *size), torch.rand(1, 3, *size)):
            made = CLASSICAL[name](images.clone())
            assert made.shape == images.shape
            assert made.isfinite().all()
            assert made.min() >= -1e-6
            assert made.max() <= 1 + 1e-6


@pytest.mark.parametrize("name", CLASSICAL)
def test_no_chance_no_company_no_trace(name: str, drawing: Tensor) -> None:
    before = drawing.clone()
    made = CLASSICAL[name](drawing)
    assert torch.equal(made, CLASSICAL[name](drawing))
    assert torch.equal(drawing, before)  # the input is left as it was
    pair = CLASSICAL[name](torch.cat([drawing, drawing.flip(3)]))
    assert_close(pair[:1], made, atol=1e-4, rtol=0)


def test_styles_are_strong_and_distinct(photos: Tensor) -> None:
    made = {name: style(photos) for name, style in CLASSICAL.items()}
    from_original = {name: (image - photos).abs().mean().item() for name, image in made.items()}
    assert min(from_original.values()) > 0.05, from_original
    apart = {pair: (made[pair[0]] - made[pair[1]]).abs().mean().item() for pair in combinations(made, 2)}
    assert min(apart.values()) > 0.08, apart


def test_what_is_shown_stays_where_it_is(photos: Tensor) -> None:
    """Coarse brightness follows the photograph in every style, so that a class can still be told."""
    coarse = torch.nn.functional.avg_pool2d(filters.luminance(photos), 8).flatten(1)
    for name, style in CLASSICAL.items():
        made = torch.nn.functional.avg_pool2d(filters.luminance(style(photos)), 8).flatten(1)
        likeness = [torch.corrcoef(torch.stack(pair))[0, 1].item() for pair in zip(coarse, made, strict=True)]
        assert min(likeness) > 0.6, (name, likeness)


def test_cartoon_is_flat_and_outlined(drawing: Tensor) -> None:
    made = classical.cartoon(drawing)
    inside = (..., slice(26, 38), slice(26, 38))
    assert made[inside].std(dim=(2, 3)).max() < 0.5 * drawing[inside].std(dim=(2, 3)).max()
    row = filters.luminance(made)[0, 0, 32]
    assert row[6:14].min() < 0.6 * row[0:5].mean()  # a line darker than the dark ground, where the disc begins


def test_pencil_is_grey_and_hatches_the_dark(drawing: Tensor) -> None:
    made = classical.pencil(drawing)
    assert (made.amax(1) - made.amin(1)).max() < 0.03
    ground, disc = made[..., :8, :8], made[..., 26:38, 26:38]
    assert disc.mean() > ground.mean() + 0.2
    assert ground.std() > disc.std()


def test_oil_calms_patches_and_keeps_rims(drawing: Tensor) -> None:
    painted = filters.paint(drawing, 4)
    assert painted[..., 26:38, 26:38].std() < drawing[..., 26:38, 26:38].std()
    steps = painted[0, 0, 32].diff().abs()
    assert steps.max() > 0.4  # the rim is as steep as before: 0.8 within two pixels
    ramp = torch.linspace(0, 1, 32).expand(1, 3, 32, 32)
    assert_close(filters.paint(torch.full_like(ramp, 0.3), 4), torch.full_like(ramp, 0.3))


def test_poster_prints_with_its_inks_only(photos: Tensor) -> None:
    made = classical.poster(photos)
    inks = torch.tensor(classical.INKS)
    distance = torch.cdist(made.permute(0, 2, 3, 1).reshape(-1, 3), inks).amin(1)
    assert (distance < 0.05).float().mean() > 0.6  # the rest are the soft edges of dots and lines
    assert torch.unique(torch.cdist(made.permute(0, 2, 3, 1).reshape(-1, 3), inks).argmin(1)).numel() >= 8


def test_woodcut_has_two_tones(photos: Tensor) -> None:
    grey = filters.luminance(classical.woodcut(photos))
    assert ((grey < 0.25) | (grey > 0.65)).float().mean() > 0.6


def test_smooth_is_the_guided_filter() -> None:
    """Against windows taken one by one (He et al. 2010, guide = image)."""
    image = torch.rand(1, 1, 7, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    padded = np.pad(image[0, 0].numpy(), 1, mode="edge")

    def windows(array: np.ndarray) -> np.ndarray:
        return np.array([[array[i : i + 3, j : j + 3] for j in range(6)] for i in range(7)])

    mean, variance = windows(padded).mean((2, 3)), windows(padded).var((2, 3))
    gain = variance / (variance + 0.1**2)
    offset = mean - gain * mean
    over = [windows(np.pad(field, 1, mode="edge")).mean((2, 3)) for field in (gain, offset)]
    wanted = over[0] * image[0, 0].numpy() + over[1]
    assert_close(filters.smooth(image, 1, 0.1)[0, 0], torch.from_numpy(wanted))


def test_paint_takes_the_calmest_sector() -> None:
    """Against the weighted mean and variance of each sector, pixel by pixel."""
    image = torch.rand(1, 3, 5, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    kernels = filters._sectors(2, image)[:, 0].numpy()
    assert_close(kernels.sum((1, 2)), np.ones(8))
    padded = np.pad(image[0].numpy(), ((0, 0), (2, 2), (2, 2)), mode="edge")
    for i, j in ((0, 0), (2, 3), (4, 4)):
        patch = padded[:, i : i + 5, j : j + 5]
        means = np.array([(patch * kernel).sum((1, 2)) for kernel in kernels])
        spread = np.array([((patch - m[:, None, None]) ** 2 * k).sum() for m, k in zip(means, kernels, strict=True)])
        weights = (1e-4 + spread) ** -4.0
        wanted = (weights[:, None] * means).sum(0) / weights.sum()
        assert_close(filters.paint(image, 2)[0, :, i, j], torch.from_numpy(wanted))
