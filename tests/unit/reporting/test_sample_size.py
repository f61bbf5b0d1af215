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
from ltds.reporting.collection import Collection, collect
from ltds.reporting.formats.csv_table import csv_table
from ltds.reporting.formats.json_record import report_record
from ltds.reporting.formats.latex import latex_table
from ltds.reporting.formats.markdown import markdown_table
from ltds.reporting.formats.terminal import terminal_rows
from ltds.reporting.glossary import METRICS
from ltds.reporting.legend import ABOUT_FEW_IMAGES, IMAGES, legend
from ltds.reporting.result_table import Column, cell_of, main_table, ranked
from ltds.reporting.sample_size import Sample, _of_parts, half_width, is_uneven, over_domains, sample_of


def test_half_width_is_wilsons_interval() -> None:
    """For 8 of 10, Wilson's 95 % interval is 49.0 to 94.3 (Brown, Cai and DasGupta 2001 use the same formula)."""
    assert half_width(80, 10) == pytest.approx((94.33 - 49.02) / 2, abs=0.01)
    assert half_width(50, 1000) == pytest.approx(3.09, abs=0.01)
    assert half_width(100, 1000) < half_width(50, 1000)


def test_the_rule() -> None:
    assert Sample(29, 1.0).too_few
    assert not Sample(30, 10.0).too_few
    assert Sample(80, 10.1).too_few
    assert Sample(4, 20.4, "open").reason == (
        "Too few images to trust it: 4 open images; chance alone moves it by about 20 points."
    )


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
    sample = _of_parts(parts, percent)
    assert sample is not None
    assert sample.images == sum(parts)
    assert sample.half_width == pytest.approx(chance, abs=1.2)


def test_images_behind_each_metric(small: Collection) -> None:
    run = small.runs[0]
    found = {key: sample_of(run, key, 50) for key in METRICS}
    shown = {key: sample.text for key, sample in found.items() if sample}
    assert (shown["acc_u"], shown["macro_u"], shown["acc"], shown["ece"]) == ("700", "700", "2,100", "2,100")
    assert (shown["h_oracle"], shown["auroc"], shown["h_u_fixed"]) == ("4 open", "4 open", "3 open")
    # photo 120 60 30 15 8 4 2 0 and sketch 90 0 40 10 0 5 1 0: one class has more than 100, three have 20 to 100
    assert (shown["many"], shown["medium"], shown["few"]) == ("300", "900", "900")
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
    assert over_domains([(run, Sample(4, 9.0, "open"))], "h_oracle") == Sample(4, 9.0, "open")
    assert over_domains([(run, Sample(4, 9.0, "open"))], "h_u_fixed") == Sample(3, 9.0, "open")


def test_h_on_four_open_images_is_marked_in_every_format(small: Collection) -> None:
    table = main_table(small.datasets[0])
    assert table.images == ("700", "2,100", "4 open")
    assert [cell.too_few for cell in table.rows[0][1]] == [False, False, True]
    assert {ABOUT_FEW_IMAGES, IMAGES} <= set(legend([table]))
    text = markdown_table(small)
    assert "| agg | **60.0 ± 0.0** | **50.0 ± 0.0** | 40.0 ± 0.0‡ |" in text
    assert "| *Test images* | 700 | 2,100 | 4 open |" in text
    assert "- ‡ too few images to trust the number: fewer than 30" in text
    assert "40.0{\\scriptsize\\,$\\pm$\\,0.0}$^\\ddagger$ &" in latex_table(small)
    assert "\\midrule Test images & 700 & 2,100 & 4 open &" in latex_table(small)
    rows = {(r["method"], r["metric"]): r for r in csv.DictReader(io.StringIO(csv_table(small)))}
    h, acc_u = rows["agg", "h_oracle"], rows["agg", "acc_u"]
    assert (h["images"], h["images_kind"], h["too_few_images"]) == ("4", "open", "yes")
    assert (acc_u["images"], acc_u["images_kind"], acc_u["too_few_images"]) == ("700", "known", "no")
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
