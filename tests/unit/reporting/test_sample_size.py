"""How many images a number rests on, when that is too few, and how every format says so."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from ltds.core.runs import RunDirectory
from ltds.evaluation.class_groups import known_mask
from ltds.evaluation.metrics import expected_calibration_error
from ltds.reporting.collection import Collection, collect
from ltds.reporting.formats.csv_table import csv_table
from ltds.reporting.formats.json_record import report_record
from ltds.reporting.formats.latex import latex_table
from ltds.reporting.formats.markdown import markdown_table
from ltds.reporting.formats.terminal import terminal_rows
from ltds.reporting.glossary import METRICS
from ltds.reporting.legend import ABOUT_FEW_IMAGES, IMAGES, legend
from ltds.reporting.result_table import Column, cell_of, main_table, ranked
from ltds.reporting.sample_size import (
    Sample,
    calibration_bias,
    h_width,
    half_width,
    is_uneven,
    over_domains,
    ranking_width,
    sample_of,
    sample_of_parts,
)


def test_half_width_is_wilsons_interval() -> None:
    """For 8 of 10, Wilson's 95 % interval is 49.0 to 94.3 (Brown, Cai and DasGupta 2001 use the same formula)."""
    assert half_width(80, 10) == pytest.approx((94.33 - 49.02) / 2, abs=0.01)
    assert half_width(50, 1000) == pytest.approx(3.09, abs=0.01)
    assert half_width(100, 1000) < half_width(50, 1000)


def test_the_rule() -> None:
    assert Sample(29, 1.0).too_few
    assert not Sample(30, 10.0).too_few
    assert Sample(80, 10.1).too_few
    assert Sample(4, 20.4, "open", 2).reason == (
        "Too few images to trust it: 4 open images of 2 classes; chance alone moves it by about 20 points."
    )
    assert Sample(1, 20.4).reason.startswith("Too few images to trust it: 1 image; chance")


def give_images(path: Path, images: list[list[int]]) -> None:
    run = RunDirectory(path)
    metrics = run.read_metrics()
    metrics["pairs"]["images"] = images
    run.write_metrics(metrics)


@pytest.fixture
def small(make_run, runs: Path) -> Collection:
    """art held out, where class 7 is open: 4 open images in all, 100 of every other class in each domain."""
    for method in ("agg", "dc"):
        for seed in (0, 1):
            path = make_run(method, "art_&_co", seed, 0.6)
            give_images(path, [[100] * 7 + [0], [100] * 7 + [1], [100] * 7 + [3]])
    return collect([runs])


@pytest.mark.parametrize(("parts", "percent"), [([1] * 40, 50), ([1] * 50, 30), ([2] * 30, 50), ([1, 9] * 20, 60)])
def test_the_width_of_a_mean_over_small_classes_is_what_chance_does(parts: list[int], percent: float) -> None:
    """95 % of simulated means lie within the half-width; intervals of single classes would say half of it."""
    rng = np.random.default_rng(0)
    drawn = rng.binomial(parts, percent / 100, (20_000, len(parts))) / parts
    chance = 100 * np.quantile(np.abs(drawn.mean(axis=1) - percent / 100), 0.95)
    sample = sample_of_parts(parts, percent)
    assert sample is not None
    assert sample.images == sum(parts)
    assert sample.half_width == pytest.approx(chance, abs=1.2)


def test_images_behind_each_metric(small: Collection) -> None:
    run = small.runs[0]
    found = {key: sample_of(run, key, 50) for key in METRICS}
    shown = {key: sample.text for key, sample in found.items() if sample}
    assert (shown["acc_u"], shown["macro_u"], shown["acc"], shown["ece"]) == ("700", "700", "2,100", "2,100")
    assert (shown["h_oracle"], shown["auroc"]) == ("4 open of 1 class", "4 open of 1 class")
    assert (shown["h_u_fixed"], shown["auroc_u"]) == ("3 open of 1 class", "3 open of 1 class")
    assert (shown["open_called_unknown"], shown["open_called_unknown_u"]) == ("4 open of 1 class", "3 open of 1 class")
    assert (shown["named_right"], shown["known_called_unknown_u"]) == ("2,100", "700")
    # photo 120 60 30 15 8 4 2 0 and sketch 90 0 40 10 0 5 1 0: one class has more than 100, three have 20 to 100
    assert (shown["many"], shown["medium"], shown["few"]) == ("300", "900", "900")
    assert (shown["named_right_many"], shown["known_called_unknown_few"]) == ("300", "900")
    # 7 + 5 pairs of classes and sources were trained on; the other two of the sources and all of art were not
    assert (shown["seen_pairs"], shown["unseen_pairs"], shown["unseen_pairs_sources"]) == ("1,200", "900", "200")
    acc = found["acc"]
    assert acc is not None
    assert acc.half_width == pytest.approx(half_width(50, 2100)), "three domains of 700 images each"


def test_an_average_over_domains_counts_every_image_once(make_run, runs: Path) -> None:
    """photo and sketch held out in turn: a held-out domain is tested on all of its images, here twice as many."""
    give_images(make_run("agg", "photo", 0, 0.6), [[20] * 8, [10] * 8, [10] * 8])
    give_images(make_run("agg", "sketch", 0, 0.6), [[10] * 8, [20] * 8, [10] * 8])
    found = collect([runs])
    one, two = (Sample(100, 6.0), Sample(300, 8.0))
    parts = list(zip(found.runs, (one, two), strict=True))
    photo, sketch = (int(known_mask(run.task).sum()) for run in found.runs)
    assert (photo, sketch) == (8, 8), "no class is in one of these domains alone"
    assert over_domains(parts, "acc_u") == Sample(20 * 8 + 20 * 8, 5.0)
    assert over_domains(parts, "acc") == Sample((20 + 20 + 10) * 8, 7.0)
    assert over_domains([], "acc") is None
    table = main_table(found.datasets[0])
    shown = {(column.group, column.metric.key): text for column, text in zip(table.columns, table.images, strict=True)}
    assert shown["photo", "acc"] == shown["sketch", "acc"] == "320"
    assert shown["Average", "acc"] == "400"
    assert (shown["photo", "acc_u"], shown["Average", "acc_u"]) == ("160", "320")


def test_an_average_of_h_counts_known_and_open_images(small: Collection) -> None:
    run = small.runs[0]
    assert over_domains([(run, Sample(4, 9.0, "open"))], "h_oracle") == Sample(4, 9.0, "open", 1)
    assert over_domains([(run, Sample(4, 9.0, "open"))], "h_u_fixed") == Sample(3, 9.0, "open", 1)
    assert over_domains([(run, Sample(4, 9.0, "open"))], "open_called_unknown_u") == Sample(3, 9.0, "open", 1)


def test_more_open_than_known_images(make_run, runs: Path) -> None:
    """Known images are the smaller kind: they limit H and AUROC, but the share of open images called unknown does not
    rest on them."""
    give_images(make_run("agg", "art_&_co", 0, 0.6), [[1] * 7 + [0], [1] * 7 + [0], [1] * 7 + [90]])
    (run,) = collect([runs]).runs
    found = {metric: sample_of(run, metric, 50) for metric in ("h_u_fixed", "auroc_u", "open_called_unknown_u")}
    assert [sample.text for sample in found.values() if sample] == ["7 known", "7 known", "90 open of 1 class"]
    rejected = found["open_called_unknown_u"]
    assert rejected is not None
    assert rejected.half_width == half_width(50, 90)
    assert over_domains([(run, rejected)], "open_called_unknown_u") == rejected


@pytest.mark.parametrize("images", [[[9] * 7 + [0]] * 3, [[0] * 7 + [9]] * 3], ids=["no open", "no known"])
def test_samples_without_open_or_without_known_images(make_run, runs: Path, images: list[list[int]]) -> None:
    give_images(make_run("agg", "art_&_co", 0, 0.6), images)
    (run,) = collect([runs]).runs
    has_open = bool(images[0][7])
    for metric in ("h_oracle", "h_fixed", "auroc", "oscr_u"):
        assert sample_of(run, metric, 50) is None
    assert (sample_of(run, "open_called_unknown", 50) is None) == (not has_open)
    for metric in ("named_right_u", "known_called_unknown_few", "ece"):
        assert (sample_of(run, metric, 50) is None) == has_open


def spread_of(values: np.ndarray) -> float:
    """What 95 % of the values lie within, in points to either side of their mean."""
    return 100 * float(np.quantile(np.abs(values - values.mean()), 0.95))


@pytest.mark.parametrize(
    ("known", "opened", "a", "b"),
    [(2000, 40, 0.8, 0.1), (2000, 40, 0.8, 0.5), (60, 60, 0.5, 0.5), (50, 900, 0.2, 0.9), (2000, 100, 0.9, 0.05)],
)
def test_the_width_of_h_is_what_chance_does(known: int, opened: int, a: float, b: float) -> None:
    """Against simulated test sets. Where the shares are not known, the width is at least as large."""
    rng = np.random.default_rng(1)
    right, rejected = rng.binomial(known, a, 40_000) / known, rng.binomial(opened, b, 40_000) / opened
    drawn = np.divide(2 * right * rejected, right + rejected, out=np.zeros(40_000), where=right + rejected > 0)
    h = 2 * a * b / (a + b)
    width = h_width(100 * h, known, opened, (a, b))
    assert width == pytest.approx(spread_of(drawn), rel=0.15)
    assert h_width(100 * h, known, opened) >= width - 0.05


def test_the_width_of_h_at_its_ends() -> None:
    assert h_width(0, 2000, 40, (0.8, 0.0)) == pytest.approx(2 * half_width(0, 40))
    assert h_width(0, 2000, 40, (0.0, 0.0)) == pytest.approx(2 * half_width(0, 2000))
    assert h_width(0, 2000, 40) == pytest.approx(2 * half_width(0, 40))
    assert h_width(100, 2000, 40) == h_width(100, 2000, 40, (1.0, 1.0)) < 10


@pytest.mark.parametrize("metric", ["h_fixed", "h_u_fixed"])
def test_h_fixed_uses_its_own_shares(make_run, runs: Path, metric: str) -> None:
    end = "_u" if metric == "h_u_fixed" else ""
    shares = {f"named_right{end}": 0.8, f"open_called_unknown{end}": 0.1}
    images = [[0] * 8, [0] * 8, [300] * 7 + [40]]
    for place, summary in enumerate(({}, shares)):
        give_images(make_run("agg", "art_&_co", place, 0.6, summary=summary), images)
    without, found = (sample_of(run, metric, 17.8) for run in collect([runs]).runs)
    assert found is not None
    assert without is not None
    assert found.half_width == h_width(17.8, 2100, 40, (0.8, 0.1))
    assert without.half_width == h_width(17.8, 2100, 40)


@pytest.mark.parametrize(("known", "opened"), [(2000, 40), (40, 2000), (50, 50)])
def test_the_width_of_a_ranking_holds_for_any_scores(known: int, opened: int) -> None:
    """Also where the scores of one kind form two clusters around those of the other: some win all pairs."""
    rng = np.random.default_rng(2)
    small, large = min(known, opened), max(known, opened)
    for share in (0.5, 0.8):
        clusters = rng.random((4000, small)) < share  # above every image of the other kind, or below
        drawn = clusters.mean(axis=1)
        assert spread_of(drawn) <= ranking_width(100 * share, small) + 0.7, "an interval of few images has steps"
    ranks = [np.argsort(np.argsort(rng.random(known + opened)))[:known].sum() for _ in range(2000)]
    without_signal = (np.array(ranks) - known * (known - 1) / 2) / (known * opened)
    assert spread_of(without_signal) < ranking_width(50, small)
    assert large >= small
    assert ranking_width(100, small) == half_width(100, small) > 0


@pytest.mark.parametrize(("images", "mean"), [(50, 16.3), (100, 11.6), (200, 8.2), (1000, 3.7)])
def test_few_images_raise_the_ece_of_a_calibrated_model(images: int, mean: float) -> None:
    """The figures of docs/metrics.md, for confidences spread evenly from 20 % to 100 %, and the bound for any."""
    rng = np.random.default_rng(3)

    def measured(confidence: np.ndarray) -> float:
        drawn = [expected_calibration_error(c, rng.random(images) < c) for c in confidence]
        return 100 * float(np.mean([one for one in drawn if one is not None]))

    assert measured(rng.uniform(0.2, 1, (1000, images))) == pytest.approx(mean, abs=0.4)
    bins = (np.arange(15) + 0.5) / 15
    worst = measured(np.clip(rng.choice(bins, (1000, images)) * 0.2 + 0.4, 0.4, 0.6))
    assert worst < calibration_bias(images)
    assert measured(rng.uniform(0, 1, (1000, images))) < calibration_bias(images)


def test_ece_is_marked_where_chance_may_add_ten_points(make_run, runs: Path) -> None:
    for place, images in enumerate((374, 376)):
        give_images(make_run("agg", "photo", place, 0.6), [[images, *[0] * 7], [0] * 8, [0] * 8])
    fewer, more = (sample_of(run, "ece", 5.0) for run in collect([runs]).runs)
    assert fewer is not None
    assert more is not None
    assert (fewer.images, fewer.too_few, more.images, more.too_few) == (374, True, 376, False)


def test_h_on_four_open_images_is_marked_in_every_format(small: Collection) -> None:
    table = main_table(small.datasets[0])
    assert table.images == ("700", "2,100", "4 open of 1 class")
    assert [cell.too_few for cell in table.rows[0][1]] == [False, False, True]
    assert {ABOUT_FEW_IMAGES, IMAGES} <= set(legend([table]))
    text = markdown_table(small)
    assert "| agg | **60.0 ± 0.0** | **50.0 ± 0.0** | 40.0 ± 0.0‡ |" in text
    assert "| *Test images* | 700 | 2,100 | 4 open of 1 class |" in text
    assert "- ‡ too few images to trust the number: fewer than 30" in text
    assert "40.0{\\scriptsize\\,$\\pm$\\,0.0}$^\\ddagger$ &" in latex_table(small)
    assert "\\midrule Test images & 700 & 2,100 & 4 open of 1 class &" in latex_table(small)
    rows = {(r["method"], r["metric"]): r for r in csv.DictReader(io.StringIO(csv_table(small)))}
    h, acc_u = rows["agg", "h_oracle"], rows["agg", "acc_u"]
    names = ("images", "images_kind", "too_few_images", "open_classes")
    assert [h[name] for name in names] == ["4", "open", "yes", "1"]
    assert [acc_u[name] for name in names] == ["700", "known", "no", ""]
    assert float(acc_u["images_half_width"]) == pytest.approx(half_width(60, 700), abs=0.001)
    cells = json.loads(json.dumps(report_record(small)))["datasets"][0]["cells"]
    marked = {c["metric"]: (c["images"]["images"], c["too_few_images"]) for c in cells if c["images"]}
    assert (marked["h_oracle"], marked["acc_u"]) == ((4, True), (700, False))
    assert terminal_rows(small)[1][0][4] == "40.0 ± 0.0‡"


def test_a_value_of_too_few_images_is_never_the_best(small: Collection) -> None:
    column = Column("art_&_co", METRICS["h_oracle"])
    cells = [cell_of(small.datasets[0], label, column) for label in ("agg", "dc")]
    assert [cell.mark for cell in ranked(cells, True)] == ["", ""]


def test_runs_without_counts_are_not_marked(make_run, runs: Path) -> None:
    path = make_run("agg")
    give_images(path, [])
    found = collect([runs])
    table = main_table(found.datasets[0])
    assert table.images == ("", "", "")
    assert IMAGES not in legend([table])
    assert "Test images" not in markdown_table(found)
    assert not any(cell.too_few for _, cells in table.rows for cell in cells)


def test_macro_stands_beside_acc_where_test_images_are_uneven(make_run, runs: Path) -> None:
    path = make_run("agg")
    give_images(path, [[50] * 8, [50] * 8, [50] * 7 + [2]])
    assert not is_uneven(collect([runs]).runs)  # 150 of each but the last, which has 102; 50 of each in photo
    give_images(path, [[50] * 7 + [2], [50] * 8, [50] * 8])
    assert is_uneven(collect([runs]).runs)  # in photo, which is held out
    give_images(path, [[500] + [50] * 7, [50] * 8, [50] * 8])
    found = collect([runs])
    assert is_uneven(found.runs)
    table = main_table(found.datasets[0])
    assert [column.metric.name for column in table.columns] == ["Acc-U", "Macro-U", "Acc", "Macro", "H oracle"]
    accuracy = found.runs[0].metrics.pairs.accuracy[0]
    assert table.rows[0][1][1].mean == pytest.approx(100 * np.mean(accuracy))
