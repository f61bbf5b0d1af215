"""The recorded runs of a study in results/: which of them are comparable, and their averages and differences."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ltds.evaluation.significance import PairedDifference, paired_difference
from ltds.methods.registry import METHODS

ROOT = Path(__file__).parents[1]
RULED = ("h_fixed", "h_u_fixed")  # their rule has changed: metrics of version 5 have it with its smallest threshold
Cell = tuple[str, str, int]  # dataset, held-out domain, seed
Average = tuple[float | None, float | None, int]  # mean, standard deviation over seeds, seeds


@dataclass(frozen=True)
class Study:
    """The runs of one file in results/, or of several: NAME, or NAME+NAME."""

    name: str
    runs: list[dict[str, Any]]

    @classmethod
    def read(cls, name: str, names: Mapping[str, str] | None = None) -> Study:
        """`names`: rows that get another name here, by their new name."""
        files = [ROOT / "results" / f"{file}.json" for file in name.split("+")]
        runs = [run for file in files for run in json.loads(file.read_text(encoding="utf-8"))["runs"]]
        new = {row: called for called, row in (names or {}).items()}
        runs = [run | {"row": new.get(run["row"], run["row"]), "summary": _numbers(run)} for run in runs]
        cells = Counter((run["row"], run["data"], run["held_out"], run["seed"]) for run in runs)
        twice = [cell for cell, count in cells.items() if count > 1]
        if twice:
            raise ValueError(f"{name} has several runs of {twice[0]}: give a row another name, or record each run once")
        return cls(name, runs)

    @property
    def records(self) -> str:
        """A link to each file, as text of a page."""
        first, *others = self.name.split("+")
        return ", ".join([f"[every run](RESULTS/{first}.json)", *(f"[{name}](RESULTS/{name}.json)" for name in others)])

    def only(self, rows: list[str]) -> Study:
        """These rows, on the held-out domains that all of them have, without seeds that lack one of these.

        Other averages could not be compared.
        """
        has = {row: {(r["data"], r["held_out"]) for r in self.runs if r["row"] == row} for row in rows}
        if missing := [row for row, places in has.items() if not places]:
            raise ValueError(f"{self.name} has no row '{missing[0]}'")
        common = set.intersection(*has.values())
        if not common:
            raise ValueError(f"{self.name} has no held-out domain that all of {', '.join(rows)} have")
        runs = [r for r in self.runs if r["row"] in rows and (r["data"], r["held_out"]) in common]
        study = Study(self.name, runs)
        for row in rows:
            study = study._whole_seeds(row)
        return study

    def shared_domains(self) -> Study:
        """Where rows are datasets: the held-out domains that all methods of a row have, or one would count for more."""
        has: dict[str, dict[str, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
        for run in self.runs:
            data, method = data_and_method(run)
            has[run["row"]][method].add((data, run["held_out"]))
        common = {row: set.intersection(*by_method.values()) for row, by_method in has.items()}
        runs = [run for run in self.runs if (data_and_method(run)[0], run["held_out"]) in common[run["row"]]]
        return Study(self.name, runs)

    def rows(self) -> list[str]:
        """Best first, by the first metric of the paper."""
        names = dict.fromkeys(run["row"] for run in self.runs)
        return sorted(names, key=lambda row: -(self.average(row, "acc_u")[0] or 0))

    def values(self, row: str, metric: str) -> dict[Cell, float]:
        """In percent; undefined ones left out. Where the rule of a number has changed, those by the latest rule."""
        latest = self.rule(row, metric)
        return {
            (run["data"], run["held_out"], run["seed"]): 100 * run["summary"][metric]
            for run in self._with(row, metric)
            if metric not in RULED or version(run) == latest
        }

    def rule(self, row: str, metric: str) -> int:
        """The latest rule by which this row has the number; 0 if no record says it."""
        return max(map(version, self._with(row, metric)), default=0)

    def _with(self, row: str, metric: str) -> list[dict[str, Any]]:
        """The runs of the row that have the number."""
        return [run for run in self.runs if run["row"] == row and run["summary"].get(metric) is not None]

    def _whole_seeds(self, row: str) -> Study:
        """Without the runs of this row whose seed lacks a held-out domain; all of them if every seed does.

        What a table shows of the row then rests on the same runs: its averages, domains and differences agree.
        """
        has: dict[int, set[tuple[str, str]]] = defaultdict(set)
        for run in self.runs:
            if run["row"] == row:
                has[run["seed"]].add((run["data"], run["held_out"]))
        needed = set().union(*has.values())
        whole = {seed for seed, places in has.items() if places == needed} or set(has)
        return Study(self.name, [run for run in self.runs if run["row"] != row or run["seed"] in whole])

    def average(self, row: str, metric: str) -> Average:
        """Mean over the held-out domains; its standard deviation over seeds; the seeds that have all domains.

        None where no seed has all: a mean over other domains could not be compared with the rest of its row or column.
        """
        needed = {(run["data"], run["held_out"]) for run in self.runs if run["row"] == row}
        by_seed: dict[int, dict[tuple[str, str], float]] = defaultdict(dict)
        for (data, held_out, seed), value in self.values(row, metric).items():
            by_seed[seed][data, held_out] = value
        whole = [statistics.mean(values.values()) for values in by_seed.values() if values.keys() == needed]
        if not whole:
            return None, None, 0
        return statistics.mean(whole), statistics.stdev(whole) if len(whole) > 1 else None, len(whole)

    def difference(self, first: str, second: str, metric: str) -> PairedDifference | None:
        """The first row minus the second where both have the number, over held-out domains and seeds; None: nowhere.

        Without an interval for one seed, which says nothing about other seeds. Datasets that share a domain, such as
        the same images with other open classes, are no further domains.
        """
        ours, theirs = self.values(first, metric), self.values(second, metric)
        groups: dict[str, list[float]] = defaultdict(list)
        for data, held_out, seed in sorted(ours.keys() & theirs.keys()):
            groups[held_out].append(ours[data, held_out, seed] - theirs[data, held_out, seed])
        found = paired_difference(groups)
        one_seed = len({seed for _, _, seed in ours.keys() & theirs.keys()}) == 1
        return replace(found, low=None, high=None) if found is not None and one_seed else found

    def knows_open_names(self, row: str) -> bool:
        """Whether embeddings of open classes took part in training a run of this row."""
        return any(_knows_open_names(run) for run in self.runs if run["row"] == row)

    def held_out(self) -> list[str]:
        return list(dict.fromkeys(run["held_out"] for run in self.runs))


def _numbers(run: dict[str, Any]) -> dict[str, float | None]:
    """Its metrics, and the validation accuracy of the weights that were kept."""
    return {"validation": run.get("validation", {}).get("accuracy"), **run["summary"]}


def version(run: dict[str, Any]) -> int:
    """Of the rules that its metrics were computed by; older records do not say it."""
    return run.get("metrics_version") or 0


def data_and_method(run: dict[str, Any]) -> tuple[str, str]:
    """Where rows are datasets, a run's data is DATASET/METHOD."""
    data, _, method = run["data"].partition("/")
    return data, method


def _knows_open_names(run: dict[str, Any]) -> bool:
    """As the run says; an older record does not, but the settings of its method do, and whether classes were open."""
    if "knows_open_names" in run:
        return bool(run["knows_open_names"])
    if not run["open_images"]:
        return False
    name = run["row"] if run["row"] in METHODS else run.get("method")
    if name not in METHODS:
        return False
    method, preset = METHODS[name].method, METHODS[name].settings
    settings = method.Config.model_validate(preset)
    return method.uses_embeddings(settings) and not getattr(settings, "hide_open_names", False)
