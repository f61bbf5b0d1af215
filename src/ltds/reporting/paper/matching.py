"""The paper's number for a cell of our tables, if the runs are on one of the paper's datasets."""

from __future__ import annotations

from ltds.reporting.dataset import Dataset
from ltds.reporting.paper.tables import AVERAGE, METRIC_KEYS, paper_preset, preset_averages, rows
from ltds.reporting.result_table import Column, average_of

# Name of a dataset -> the table with results on it. PACS-ODG is one dataset for each order of its sources.
# The name is enough: builders give a different name to a dataset built with other settings or lists.
TABLES = {"awa2-lts": "2", "imagenet-lts": "3"} | {f"pacs-odg-{o}": "S5" for o in ("cps-a", "pac-s", "acs-p", "spa-c")}
_PRINTED = {key: name for name, key in METRIC_KEYS.items()}


def printed_value(dataset: Dataset, label: str, column: Column) -> float | None:
    """The printed number in percent; None on another dataset, or if the paper has no such number.

    The paper's average is used only if ours is over the same domains.
    """
    table, metric = paper_table(dataset.name), _PRINTED.get(column.metric.key)
    if table is None or metric is None:
        return None
    preset = paper_preset(dataset.rows[label][0].method)
    numbers = [n for n in rows(table) if n.held_out != AVERAGE]
    if column.group == average_of(dataset):
        same = {_domain(n.held_out) for n in numbers} == {_domain(name) for name in dataset.held_out_only}
        return preset_averages(table, metric).get(preset) if same else None
    wanted = (preset, metric, _domain(column.group))
    return next((n.value for n in numbers if (n.preset, n.metric, _domain(n.held_out)) == wanted), None)


def paper_table(dataset: str) -> str | None:
    """The paper's table on this dataset, by the name in the manifest; None if it is not one of the paper's."""
    return TABLES.get(dataset.casefold().replace("_", "-"))


def _domain(name: str) -> str:
    """One spelling for both: the paper's "Art" is art_painting in the files of PACS."""
    return name.casefold().removesuffix("_painting")
