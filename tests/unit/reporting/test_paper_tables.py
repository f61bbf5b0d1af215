"""The paper's numbers: as printed, their averages, and where the paper disagrees with itself."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from ltds.core.errors import ConfigError
from ltds.reporting import result_table
from ltds.reporting.glossary import METRICS
from ltds.reporting.paper.layout import TABLES, csv_text, layout, markdown, paper_json, plain_text
from ltds.reporting.paper.tables import (
    AVERAGE,
    METRIC_KEYS,
    NOTES,
    RESULTS,
    SETTINGS,
    averages,
    by_paper_preset,
    preset_averages,
    rows,
    settings,
)

PAPER = Path(__file__).resolve().parents[3].parent / "shared" / "paper.tex"
LABELS = {"2": "awa2", "3": "imagenet", "4": "awa2_ablation", "S2": "awa2-embedding", "S3": "awa2-ratio", "S5": "pacs"}

# The averages of Table 2, computed independently of this package.
AWA2 = {
    "agg": (26.64, 31.76, 37.78), "crt": (29.12, 34.20, 38.40), "bsce": (30.32, 35.82, 40.48),
    "equal": (29.60, 34.98, 39.24), "remix": (26.12, 31.36, 36.56), "epi-fcr": (28.30, 34.88, 40.04),
    "mixstyle": (30.60, 35.72, 40.74), "cumix": (29.14, 34.80, 39.30), "daml": (16.62, 21.30, 27.60),
    "daml-warmup": (31.42, 36.16, 42.54), "mixstyle-bsce": (32.36, 38.38, 42.42),
    "epi-fcr-bsce": (30.80, 37.28, 41.22), "ltds": (35.82, 41.96, 44.60),
}  # fmt: skip


@pytest.mark.parametrize(("place", "metric"), [(0, "Acc-U"), (1, "Acc"), (2, "H")])
def test_averages_of_table_2(place: int, metric: str) -> None:
    assert preset_averages("2", metric) == {preset: values[place] for preset, values in AWA2.items()}


@pytest.mark.parametrize("table", LABELS)
def test_every_number_stands_in_the_paper_in_this_order(table: str) -> None:
    if not PAPER.is_file():
        pytest.skip("needs the paper's source beside the repository: shared/paper.tex")
    source = PAPER.read_text()
    body = source[source.index(f"\\label{{tab:{LABELS[table]}}}") :]
    body = body[body.index("\\midrule") : body.index("\\end{tabular}")]
    values = [
        None if word == "-" else float(word) for word in re.findall(r"(?<![\w.])\d+\.\d(?!\w)|(?<=& )-(?= &)", body)
    ]
    if table == "4":  # a dash there is a part left out, not a number
        values = [value for value in values if value is not None]
    assert [number.value for number in rows(table)] == values


def test_sizes_and_keys() -> None:
    sizes = {"2": 13 * 15, "3": 10 * 15, "4": 12 * 3, "S2": 7 * 3, "S3": 6 * 3, "S5": 6 * 15}
    assert {table: len(rows(table)) for table in RESULTS} == sizes
    for table in RESULTS:
        numbers = rows(table)
        assert {number.table for number in numbers} == {table}
        assert len({(n.label, n.held_out, n.metric) for n in numbers}) == len(numbers)
        assert {number.metric for number in numbers} <= METRIC_KEYS.keys()
        assert all(number.value is None or 5 < number.value < 85 for number in numbers)
    assert set(METRIC_KEYS.values()) <= METRICS.keys()
    assert result_table.AVERAGE == AVERAGE


def printed(preset: str, metric: str, table: str, held_out: str = AVERAGE, setting: str | None = None) -> float | None:
    """The number as printed, in percent; None if the table has no such row, or a dash."""
    wanted = [n for n in rows(table) if (n.preset, n.metric, n.held_out) == (preset, metric, held_out)]
    (value,) = [n.value for n in wanted if setting is None or n.setting == setting] or [None]
    return value


def test_printed_numbers() -> None:
    assert printed("ltds", "Acc-U", "2", "Original") == 49.4
    assert printed("daml", "H", "2", "Ukiyoe") == 36.0
    assert printed("daml", "H", "3", "Ukiyoe") is None  # the paper has no such row
    assert printed("agg", "Acc", "S5") is None  # a dash
    assert printed("mixstyle", "H-U", "S5") == 47.1
    assert printed("ltds-d", "Acc", "4") == 40.0
    assert printed("agg-embeddings", "Acc-U", "S2", setting="GloVe") == 27.0
    assert printed("agg", "H", "S3", setting="ratio 10") == 20.7


def test_the_printed_averages_agree_but_for_row_j() -> None:
    """Table 4's row a is Agg of table 2 and row j is Ours: equal to one decimal, except Acc-U of j."""
    for metric in ("Acc-U", "Acc", "H"):
        assert printed("ltds-a", metric, "4") == pytest.approx(preset_averages("2", metric)["agg"], abs=0.051)
    assert printed("ltds-j", "Acc-U", "4") == 35.7
    assert printed("ltds", "Acc-U", "S2", setting="BERT") == printed("ltds", "Acc-U", "S3", setting="ratio 78") == 35.7
    assert preset_averages("2", "Acc-U")["ltds"] == 35.82
    assert all(any("35.82" in note and "35.7" in note for note in NOTES[table]) for table in ("2", "4", "S2", "S3"))
    for metric in ("Acc", "H"):
        assert printed("ltds-j", metric, "4") == pytest.approx(preset_averages("2", metric)["ltds"], abs=0.051)


def test_the_averages_of_pacs_are_those_of_its_domains() -> None:
    for label, means in averages("S5").items():
        for metric, mean in means.items():
            found = [n for n in rows("S5") if (n.label, n.metric) == (label, metric) and n.held_out != AVERAGE]
            assert mean == pytest.approx(statistics.fmean(n.value or 0 for n in found), abs=0.051)
    assert "Acc" not in averages("S5")["Agg"]


def test_questions_without_an_answer_are_refused() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'S5'"):
        rows("S55")
    with pytest.raises(ConfigError, match="one row for each preset"):
        preset_averages("S3", "Acc")


def test_settings() -> None:
    found = {(entry.row, entry.column): entry for entry in settings("S1")}
    assert len(found) == 14 * 2
    assert (found["tau", "ImageNet-LTS"].value, found["tau", "ImageNet-LTS"].ours) == ("1/50", "method.temperature")
    assert (found["B", "AWA2-LTS"].value, found["w_mte", "AWA2-LTS"].value) == ("48", "0.3")
    assert [e.value for e in settings("S4") if e.column == "training classes"] == ["0,1,3", "0,2,4", "1,2,5", ""]
    with pytest.raises(ConfigError, match="table of settings"):
        settings("2")


def test_layout_and_text_fit_the_terminal() -> None:
    shown = layout("2")
    assert [heading for heading, _ in shown.groups] == ["Original", "Hayao", "Shinkai", "Vangogh", "Ukiyoe", AVERAGE]
    assert shown.rows[1][0] == ("LT", "cRT", "crt")
    assert " ".join(shown.rows[1][1]) == (
        "30.4 29.1 34.8 23.5 33.6 38.9 34.7 35.8 39.6 28.6 35.8 43.0 28.4 36.7 35.7 29.12 34.20 38.40"
    )
    for table in TABLES:
        for width in (80, 120, 1000):
            body = [line for line in plain_text(table, width).splitlines() if line not in shown.notes]
            assert max(map(len, body)) <= width
    assert plain_text("2", 1000).count("cRT") == 1
    assert plain_text("2", 80).count("cRT") == 3
    assert set(TABLES) == RESULTS.keys() | SETTINGS.keys()


def test_of_two_forms_the_one_for_training_from_scratch_counts() -> None:
    for names in (["daml", "daml-scratch", "agg"], ["agg", "daml-scratch", "daml"]):
        means = {"daml": 10.0, "daml-scratch": 20.0, "agg": 30.0}
        assert by_paper_preset({name: means[name] for name in names}) == {"daml": 20.0, "agg": 30.0}, names
    assert by_paper_preset({"daml": 10.0, "daml-scratch": None, "agg": None}) == {"daml": 10.0}


def test_other_formats() -> None:
    table = markdown("S5").splitlines()
    assert table[4].split("|")[2:6] == [" Agg ", " agg ", " 51.4 ", f" {result_table.MISSING} "]
    assert {line.count("|") for line in table if line.startswith("|")} == {19}
    assert [row["value"] for row in csv.DictReader(io.StringIO(csv_text("S5")))][:3] == ["51.4", "", "38.8"]
    assert json.loads(paper_json("S5"))[1] == {
        "table": "S5", "dataset": "PACS-ODG", "group": "", "method": "Agg", "setting": "", "preset": "agg",
        "held_out": "Art", "metric": "Acc", "value": None,
    }  # fmt: skip
    assert json.loads(paper_json("1"))[0]["value"] == "5"


def test_reading_is_light() -> None:
    code = (
        "import sys; from ltds.reporting.paper.tables import averages; averages('2'); "
        "print([m for m in ('torch', 'numpy', 'pydantic', 'matplotlib') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
