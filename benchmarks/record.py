"""Finished runs as one file of results, from which `make tables` writes the tables of the documentation.

    python benchmarks/record.py runs/table2 --what "Bestiary, all methods" --command "ltds benchmark ..." \
        --out results/bestiary.json
    python benchmarks/record.py runs/features ltds-hidden-names=runs/hidden ...   # a name for the rows of a folder
    python benchmarks/record.py digits=runs/digits --first data ...               # rows are datasets, over all methods
    python benchmarks/record.py runs/more-seeds --keep ...                        # add to the runs that --out has

Every run is kept with its seed, commit, numbers of images, validation, all metrics and the settings that differ. Runs
that differ in more than their held-out domain and seed, or whose metrics were computed by other rules, are refused in
one row. Older records do not say by which rules; tables leave their numbers out where a rule has changed. The variants
of a benchmark are rows of their own, named as it names them: ltds (attributes).
"""

from __future__ import annotations

import argparse
import json
import platform
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from ltds.benchmarking.status import INDEX, read_index
from ltds.core.added import as_before
from ltds.core.files import write_json
from ltds.reporting.collection import collect
from ltds.reporting.run import Run
from ltds.reporting.used_files import UsedFile


def facts(run: Run, row: str) -> dict[str, Any]:
    """What a table or a reader may want to know of a run.

    `features_sha256` as the run recorded it, None for older runs: today's file may be another one.
    """
    whole = json.loads(run.directory.metrics_file.read_text(encoding="utf-8"))
    held_out = whole["per_domain"].get(run.held_out, {})
    step = run.metrics.choices["model"].get("step")
    return {
        "row": row or run.method,
        "method": run.method,
        "data": run.task.name,
        "held_out": run.held_out,
        "seed": run.seed,
        "commit": run.commit,
        "processor": run.directory.read_environment().get("processor"),
        "known_images": held_out.get("known_images"),
        "open_images": held_out.get("open_images"),
        "knows_open_names": run.knows_open_names,
        "metrics_version": whole["version"],
        "features_sha256": run.environment.get("files", {}).get("data.features"),
        "validation": {"accuracy": (whole["validation"] or {}).get("accuracy"), "step": step},
        "summary": run.metrics.summary,
    }


def settings_of(run: Run) -> dict[str, Any]:
    """What decides the run, except its method, held-out domain, seed and where its files are."""
    without = dict.fromkeys(("data.features", "semantics.table", "backbone.weights"), "")
    settings = run.settings()
    return without | {name: used.name if isinstance(used, UsedFile) else used for name, used in settings.items()}


def variants_of(folder: Path) -> dict[str, str]:
    """The folders of the runs of a benchmark, with the names that it gives to their rows."""
    cells = read_index(folder) if (folder / INDEX).is_file() else []
    return {cell.run.path.name: cell.method for cell in cells}


def rows_of(named: dict[str, list[Run]]) -> list[dict[str, Any]]:
    """A row of facts for each run, with all of its settings."""
    return [facts(run, row) | {"settings": settings_of(run)} for row, several in named.items() for run in several]


def recorded(file: Path) -> list[dict[str, Any]]:
    """The runs of an earlier record, with all of their settings."""
    if not file.is_file():
        return []
    record = json.loads(file.read_text(encoding="utf-8"))
    shared = record.get("settings", {})  # the first records had none
    return [run | {"settings": shared | run.get("settings", {})} for run in record["runs"]]


def cell(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["row"], run["data"], run["held_out"], run["seed"]


def different(rows: list[dict[str, Any]]) -> str:
    """Where runs that differ in more than domain and seed would become one row: which, and in what; "" for none."""
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in rows:
        place = cell(run)[:2]
        other = known.setdefault(place, {})
        settings = {name: value for name, value in run["settings"].items() if not as_before(name, value)}
        if settings != other.setdefault("settings", settings):
            names = settings.keys() ^ other["settings"].keys()
            names |= {
                name for name in settings.keys() & other["settings"].keys() if settings[name] != other["settings"][name]
            }
            return f"{place} differ in {', '.join(sorted(names)[:5])}"
        for fact in ("metrics_version", "features_sha256"):
            value = run.get(fact)  # older records have none
            if value is not None and value != other.setdefault(fact, value):
                return f"{place} differ in {fact}"
    return ""


def study(rows: list[dict[str, Any]], what: str, command: str) -> dict[str, Any]:
    """The record: what all runs share is said once."""
    settings = [row["settings"] for row in rows]
    shared = {k: v for k, v in settings[0].items() if all(k in other and other[k] == v for other in settings)}
    rows = [row | {"settings": {k: v for k, v in row["settings"].items() if k not in shared}} for row in rows]
    return {
        "what": what,
        "command": command,
        "machine": f"{platform.machine()}, torch {torch.__version__}",
        "commits": sorted({row["commit"] for row in rows}),
        "settings": shared,
        "runs": sorted(rows, key=cell),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="folders with runs, each FOLDER or NAME OF ITS ROW=FOLDER")
    parser.add_argument("--what", required=True, help="one sentence: which study this is")
    parser.add_argument("--command", required=True, help="the command that repeats it")
    parser.add_argument("--first", choices=["method", "data"], default="method", help="what a row of the table is")
    parser.add_argument("--keep", action="store_true", help="keep the runs of --out that these folders do not have")
    parser.add_argument("--out", type=Path, required=True, help="a file in results/")
    words = parser.parse_args()
    named: dict[str, list[Run]] = {}
    problems: dict[str, None] = {}
    for text in words.runs:
        row, _, folder = text.rpartition("=")
        found = collect([folder])
        problems |= dict.fromkeys(found.problems)  # of several folders, each once
        variants = variants_of(Path(folder))
        for run in found.runs:
            named.setdefault(row or variants.get(run.directory.path.name, ""), []).append(run)
    for problem in problems:
        print(problem)
    rows = rows_of(named)
    if words.first == "data":  # a row averages over methods as over held-out domains
        for run in rows:
            run["data"] += f"/{run['method']}"
    twice = [name for name, count in Counter(map(cell, rows)).items() if count > 1]
    if twice:
        parser.error(f"several runs of {twice[0]}: give each kind of run a row of its own (NAME=FOLDER)")
    new = set(map(cell, rows))
    older = [run for run in recorded(words.out) if cell(run) not in new] if words.keep else []
    if problem := different(rows + older):
        parser.error(f"the runs of {problem}: give each kind of run a row of its own (NAME=FOLDER)")
    result = study(rows + older, words.what, words.command)
    write_json(words.out, result)
    print(f"{words.out}: {len(rows)} runs, {len(older)} kept from before")


if __name__ == "__main__":
    main()
