"""The tables of README.md and docs/, written from results/*.json.

    python benchmarks/tables.py            # or: make tables

A table stands between two comments; the first says what it shows:

    <!-- table: pacs_odg_features columns=acc_u,acc,h_u_fixed rows=ltds,agg against=ltds paper=S5 -->
    ...
    <!-- end of table -->

columns: metrics as in metrics.json. rows: which, in this order; without it all, the best first. against: one more
column, the difference to this row on the first metric, paired over held-out domains and seeds. by=held_out: one column
for each held-out domain. paper: the paper's table, for one more column and, from six shared methods on, for a sentence
on how similar the two orders are. first=data: rows are datasets, not methods, on the held-out domains that all of
their methods have. short=yes: the columns alone, with one line below them; for a first page that links to the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ltds.core.files import write_text
from ltds.evaluation.significance import agreement, paired_difference
from ltds.methods.registry import METHODS
from ltds.reporting.glossary import METRICS
from ltds.reporting.open_names import about_names, marked
from ltds.reporting.paper.tables import METRIC_KEYS, by_paper_preset, paper_preset, preset_averages

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"<!-- table: (?P<words>[^>]*?) -->\n(?P<text>.*?)<!-- end of table -->", re.DOTALL)
NOT_IN_REPORTS = {
    "h_softmax5": "H 5th percentile",
    "h_u_softmax5": "H-U 5th percentile",
    "h_u_best": "Limit of H-U fixed",
}
INTERVAL = "Intervals: none for one seed, too narrow for few domains ([statistics](DOCS/statistics.md))."
ORDERED = 6  # with fewer methods in both tables, a rank correlation says nothing
RULED = ("h_fixed", "h_u_fixed")  # their rule has changed: metrics of version 5 have it with its smallest threshold
Cell = tuple[str, str, int]  # dataset, held-out domain, seed
Average = tuple[float | None, float | None, int]  # mean, standard deviation over seeds, seeds


@dataclass(frozen=True)
class Study:
    """The runs of one file in results/."""

    name: str
    runs: list[dict[str, Any]]

    @classmethod
    def read(cls, name: str) -> Study:
        return cls(name, json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))["runs"])

    def only(self, rows: list[str]) -> Study:
        """These rows, on the held-out domains that all of them have: other averages could not be compared."""
        has = [{(r["data"], r["held_out"]) for r in self.runs if r["row"] == row} for row in rows]
        common = set.intersection(*has)
        runs = [r for r in self.runs if r["row"] in rows and (r["data"], r["held_out"]) in common]
        return Study(self.name, runs)

    def shared_domains(self) -> Study:
        """Where rows are datasets: the held-out domains that all methods of a row have, or one would count for more."""
        has: dict[str, dict[str, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
        for run in self.runs:
            data, method = _data_and_method(run)
            has[run["row"]][method].add((data, run["held_out"]))
        common = {row: set.intersection(*by_method.values()) for row, by_method in has.items()}
        runs = [run for run in self.runs if (_data_and_method(run)[0], run["held_out"]) in common[run["row"]]]
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
            if metric not in RULED or _version(run) == latest
        }

    def rule(self, row: str, metric: str) -> int:
        """The latest rule by which this row has the number; 0 if no record says it."""
        return max(map(_version, self._with(row, metric)), default=0)

    def _with(self, row: str, metric: str) -> list[dict[str, Any]]:
        """The runs of the row that have the number."""
        return [run for run in self.runs if run["row"] == row and run["summary"].get(metric) is not None]

    def whole_seeds(self, row: str) -> Study:
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

    def knows_open_names(self, row: str) -> bool:
        """Whether embeddings of open classes took part in training a run of this row."""
        return any(_knows_open_names(run) for run in self.runs if run["row"] == row)

    def held_out(self) -> list[str]:
        return list(dict.fromkeys(run["held_out"] for run in self.runs))


def _version(run: dict[str, Any]) -> int:
    """Of the rules that its metrics were computed by; older records do not say it."""
    return run.get("metrics_version") or 0


def _data_and_method(run: dict[str, Any]) -> tuple[str, str]:
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


def table(study: Study, options: dict[str, str]) -> str:
    """The Markdown of one block."""
    columns, short = options["columns"].split(","), "short" in options
    compared = options.get("first", "method") == "method"
    given = options["rows"].split(",") if options.get("rows") else []
    if compared:
        study = study.only(given or study.rows())
        for row in given or study.rows():
            study = study.whole_seeds(row)
    else:
        study = study.shared_domains()
    rows = given or study.rows()  # the best first, by what the table shows
    heads, texts = _by_domain(study, rows, columns) if options.get("by") else _averages(study, rows, columns, compared)
    if short:
        heads, texts = heads[: len(columns)], {row: cells[: len(columns)] for row, cells in texts.items()}
    if options.get("against"):
        heads.append(f"{_name(columns[0])}: `{options['against']}` minus this (95 %)")
        for row in rows:
            texts[row].append(_difference(study, options["against"], row, columns[0]))
    published = _published(options["paper"], columns) if options.get("paper") else {}
    if published:
        heads.append(f"paper: {' / '.join(published)}")
        for row in rows:
            texts[row].append(_printed(means.get(paper_preset(row)) for means in published.values()))
    lines = [f"| {options.get('first', 'method')} | {' | '.join(heads)} |", "|:--|" + "--:|" * len(heads)]
    names = {row: f"`{row}`" for row in rows}
    informed = [names[row] for row in rows if compared and study.knows_open_names(row)]
    lines += [f"| {marked(names[row], informed)} | {' | '.join(texts[row])} |" for row in rows]
    notes = [INTERVAL] if options.get("against") else []
    notes.append(_order(study, rows, published))
    if compared:
        notes += [_rules(study, rows, column) for column in columns if column in RULED][:1]
    sizes = _short_sizes(study, rows) if short else _sizes(study, rows)
    basis = " ".join(filter(None, [sizes, *notes]))
    about = [about_names(["ltds"])] if informed else []  # what a study marks is ltds, by any name
    return "\n".join([*lines, "", basis, *about, ""])


def _averages(
    study: Study, rows: list[str], columns: list[str], compared: bool
) -> tuple[list[str], dict[str, list[str]]]:
    cells = {column: {row: study.average(row, column) for row in rows} for column in columns}
    texts: dict[str, list[str]] = {row: [] for row in rows}
    for column, of_rows in cells.items():
        best = _best(study, column, of_rows) if compared else set()
        for row, (mean, spread, _) in of_rows.items():
            texts[row].append(_text(mean, spread, bold=row in best))
    for row in rows:
        texts[row].append(str(cells[columns[0]][row][2]))
    return [*(_name(c) for c in columns), "seeds"], texts


def _best(study: Study, column: str, cells: dict[str, Average]) -> set[str]:
    """The rows with the highest number as printed, which may be several. One seed may be chance.

    So a row of one seed is best only where all have one. Where the rule of a number has changed, only rows by the
    latest rule.
    """
    seeds = {row: count for row, (_, _, count) in cells.items() if count}
    enough = min(2, max(seeds.values(), default=0))
    rules = {row: study.rule(row, column) for row in seeds}
    latest = [row for row in seeds if column not in RULED or rules[row] == max(rules.values())]
    means = {row: round(cells[row][0] or 0, 1) for row in latest if seeds[row] >= enough}
    return {row for row, mean in means.items() if mean == max(means.values())}


def _by_domain(study: Study, rows: list[str], columns: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    texts: dict[str, list[str]] = {row: [] for row in rows}
    for domain in study.held_out():
        for row in rows:
            values = [[v for (_, d, _), v in study.values(row, c).items() if d == domain] for c in columns]
            texts[row].append(" / ".join(f"{statistics.mean(v):.1f}" if v else "-" for v in values))
    for row in rows:
        texts[row].append(_printed(study.average(row, column)[0] for column in columns))
    names = " / ".join(_name(c) for c in columns)
    return [
        *(f"{domain}: {names}" if i == 0 else domain for i, domain in enumerate(study.held_out())),
        "average",
    ], texts


def _published(number: str, columns: list[str]) -> dict[str, dict[str, float]]:
    """The averages in a table of the paper by metric, for those of our columns that it has."""
    names = {key: name for name, key in METRIC_KEYS.items()}
    return {names[column]: preset_averages(number, names[column]) for column in columns if column in names}


def _order(study: Study, rows: list[str], published: dict[str, dict[str, float]]) -> str:
    """How similarly we and the paper order the methods; "" for too few methods in both tables."""
    found = {}
    for name, theirs in published.items():
        means = {row: study.average(row, METRIC_KEYS[name])[0] for row in rows}
        found[name] = agreement(by_paper_preset(means), theirs)
    told = [
        f"{name} {f.spearman:.2f} ({len(f.methods)} methods)" for name, f in found.items() if f.spearman is not None
    ]
    enough = bool(found) and min(len(f.methods) for f in found.values()) >= ORDERED
    return f"Rank correlation (Spearman) with the paper's order: {', '.join(told)}." if enough and told else ""


def _difference(study: Study, reference: str, row: str, metric: str) -> str:
    """The reference minus this row, with a bootstrap interval over domains and seeds, over cells that both have."""
    if row == reference:
        return ""
    first, second = study.values(reference, metric), study.values(row, metric)
    groups: dict[str, list[float]] = defaultdict(list)
    for cell in sorted(first.keys() & second.keys()):
        groups[f"{cell[0]}/{cell[1]}"].append(first[cell] - second[cell])
    found = paired_difference(groups)
    if found is None:
        return ""
    seeds = max(map(len, groups.values()))  # one seed says nothing about other seeds
    known = seeds > 1 and found.low is not None and found.high is not None
    interval = f" ({found.low:+.1f} to {found.high:+.1f})" if known else ""
    return f"{found.mean:+.1f}{interval}"


def _name(metric: str) -> str:
    return NOT_IN_REPORTS.get(metric) or METRICS[metric].name


def _text(mean: float | None, spread: float | None, *, bold: bool) -> str:
    if mean is None:
        return "-"
    text = f"{mean:.1f}" + ("" if spread is None else f" ± {spread:.1f}")
    return f"**{text}**" if bold else text


def _printed(values: Iterable[float | None]) -> str:
    values = list(values)
    return "" if not any(values) else " / ".join("-" if v is None else f"{v:.1f}" for v in values)


def _sizes(study: Study, rows: list[str]) -> str:
    """What the numbers rest on: runs, and images in a held-out domain."""
    runs = [run for run in study.runs if run["row"] in rows]
    domains = {(_data_and_method(run)[0], run["held_out"]): (run["known_images"], run["open_images"]) for run in runs}
    known, opened = zip(*domains.values(), strict=True)
    images = f"{_range(known)} images of known and {_range(opened)} of open classes"
    basis = f"{len(domains)} held-out domains with {images}; " if any(known) else ""
    commits = sorted({run["commit"][:7] for run in runs})
    record = f"[every run](RESULTS/{study.name}.json)"
    return (
        f"{len(runs)} runs; {basis}commit {', '.join(commits)}; {record}. ± is the standard deviation over seeds of "
        "the average."
    )


def _short_sizes(study: Study, rows: list[str]) -> str:
    """The same in one line."""
    runs = [run for run in study.runs if run["row"] in rows]
    counts = {len({run["seed"] for run in runs if run["row"] == row}) for row in rows}
    record = f"[every run](RESULTS/{study.name}.json)"
    return f"Averages of {len(runs)} runs with {_range(counts)} seeds; ± over seeds ({record})."


def _rules(study: Study, rows: list[str], metric: str) -> str:
    """Which rows have a number by another rule, or by the latest rule for some of their seeds only; "" for none."""
    versions = {row: {_version(run) for run in study.runs if run["row"] == row} for row in rows}
    latest = max(set().union(*versions.values()))
    earlier = [f"`{row}`" for row, found in versions.items() if latest not in found]
    some = [f"`{row}` {study.average(row, metric)[2]}" for row, found in versions.items() if {latest} < found]
    said = [f"by the rule before it had a smallest threshold: {', '.join(earlier)}"] if earlier else []
    said += [f"fewer seeds, because the rule has changed: {', '.join(some)}"] if some else []
    return f"{_name(metric)}: {'; '.join(said)}." if said else ""


def _range(counts: Iterable[int | None]) -> str:
    known = sorted(count or 0 for count in counts)
    return f"{known[0]:,}" if known[0] == known[-1] else f"{known[0]:,} to {known[-1]:,}"


def written(page: Path) -> str:
    """The page with all of its tables written again."""
    links = {"RESULTS": ROOT / "results", "DOCS": ROOT / "docs"}

    def again(block: re.Match[str]) -> str:
        name, *pairs = block["words"].split()
        options = dict(pair.split("=", 1) for pair in pairs)
        text = table(Study.read(name), options)
        for place, folder in links.items():
            text = text.replace(f"({place}/", f"({os.path.relpath(folder, page.parent)}/".replace("(./", "("))
        return f"<!-- table: {block['words']} -->\n{text}<!-- end of table -->"

    return BLOCK.sub(again, page.read_text(encoding="utf-8"))


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for page in pages():
        text = written(page)
        if text != page.read_text(encoding="utf-8"):
            write_text(page, text)
            print(f"{page.relative_to(ROOT)}: tables written")


if __name__ == "__main__":
    main()
