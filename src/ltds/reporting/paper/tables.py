"""The numbers printed in Gu et al., ECCV 2022, as data: tables 1 to 4 and S1 to S5.

Printed numbers are stored as printed. `averages` are computed from them, and `NOTES` says where tables disagree.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ltds.core.errors import ConfigError
from ltds.core.registry import find

AVERAGE = "Average"

# Table -> its file and what it shows.
RESULTS: dict[str, tuple[str, str]] = {
    "2": ("awa2_lts.csv", "AWA2-LTS, each domain held out"),
    "3": ("imagenet_lts.csv", "ImageNet-LTS, each domain held out"),
    "4": ("ablations.csv", "AWA2-LTS, ablations of LT-DS"),
    "S2": ("embeddings.csv", "AWA2-LTS, class embeddings"),
    "S3": ("imbalance.csv", "AWA2-LTS, imbalance ratios"),
    "S5": ("pacs_odg.csv", "PACS-ODG, each domain held out"),
}
SETTINGS: dict[str, str] = {
    "1": "datasets",
    "S1": "hyper-parameters of LT-DS",
    "S4": "classes of each domain of PACS-ODG",
}

# The paper's metric -> its name in metrics.json. We read its H as the best of a grid of thresholds on test labels.
METRIC_KEYS = {"Acc-U": "acc_u", "Acc": "acc", "H": "h_oracle", "H-U": "h_u_oracle"}

_35_7 = "The five domains of table 2 average to Acc-U 35.82 for Ours; tables 4 (row j), S2 and S3 print 35.7."
NOTES: dict[str, tuple[str, ...]] = {
    "2": ("Averages are computed from the printed domains.", _35_7),
    "3": ("Averages are computed from the printed domains.",),
    "4": (_35_7,),
    "S2": (_35_7,),
    "S3": (_35_7,),
    "S5": ("Averages are the printed ones; no value where the paper prints none.",),
}


@dataclass(frozen=True)
class PublishedNumber:
    """One printed number in percent; None where the table has a dash.

    `method` is the paper's name, `preset` ours; `setting` distinguishes several rows of one preset; `group` is the
    paper's group of methods (LT, DG).
    """

    table: str
    dataset: str
    group: str
    method: str
    setting: str
    preset: str
    held_out: str
    metric: str
    value: float | None

    @property
    def label(self) -> str:
        """The printed name of the row, with the setting if the name does not contain it."""
        return f"{self.method}: {self.setting}" if self.setting and self.setting not in self.method else self.method


@dataclass(frozen=True)
class PublishedSetting:
    """One printed setting, as text; `ours` is the dotted name of our corresponding setting, or empty."""

    table: str
    row: str
    column: str
    value: str
    ours: str


@cache
def rows(table: str) -> tuple[PublishedNumber, ...]:
    """The numbers of a table of results, in printed order."""
    file, _ = find("table of results", table, RESULTS)
    return tuple(PublishedNumber(value=float(value) if value else None, **row) for row, value in _numbers(file))


def settings(table: str) -> tuple[PublishedSetting, ...]:
    """The entries of a table of settings, in printed order."""
    find("table of settings", table, SETTINGS)
    return tuple(PublishedSetting(**row) for row in _read("settings.csv") if row["table"] == table)


@cache
def averages(table: str) -> Mapping[str, Mapping[str, float]]:
    """Row's label -> metric -> mean over the held-out domains, or the printed average if there is one."""
    by_label: dict[str, dict[str, list[float | None]]] = {}
    has_average = any(number.held_out == AVERAGE for number in rows(table))
    for number in rows(table):
        if (number.held_out == AVERAGE) == has_average:
            by_label.setdefault(number.label, {}).setdefault(number.metric, []).append(number.value)
    return {
        label: {m: mean for m, v in values.items() if (mean := _mean(v)) is not None}
        for label, values in by_label.items()
    }


def paper_preset(name: str) -> str:
    """The name of a method in the paper's tables: its form for training from scratch belongs to the same row."""
    return name.removesuffix("-scratch")


def by_paper_preset(means: Mapping[str, float | None]) -> dict[str, float]:
    """Our numbers by the names of the paper's tables; rows without a number are left out.

    Where a method has a row in both of its forms, the one for training from scratch counts, in any order of rows.
    """
    known = {name: mean for name, mean in means.items() if mean is not None}
    scratch_last = sorted(known, key=lambda name: name != paper_preset(name))
    return {paper_preset(name): known[name] for name in scratch_last}


def preset_averages(table: str, metric: str) -> dict[str, float]:
    """Our preset -> the paper's average in percent, for tables with one row for each preset."""
    labels = {number.label: number.preset for number in rows(table)}
    if len(set(labels.values())) < len(labels):
        raise ConfigError(f"Expected a table with one row for each preset, but got {table}. Use averages('{table}').")
    means = averages(table)
    return {preset: means[label][metric] for label, preset in labels.items() if preset and metric in means[label]}


def _mean(values: list[float | None]) -> float | None:
    """The mean, rounded to 6 digits; None if a value is missing."""
    known = [value for value in values if value is not None]
    return round(statistics.fmean(known), 6) if len(known) == len(values) else None


def _numbers(file: str) -> Iterator[tuple[dict[str, str], str]]:
    """The names in each line, and its number as text."""
    for row in _read(file):
        value = row.pop("value")
        yield row, value


def _read(file: str) -> list[dict[str, str]]:
    return list(csv.DictReader((files(__package__) / file).read_text(encoding="utf-8").splitlines()))
