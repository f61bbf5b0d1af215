"""The tables of README.md and docs/, written from results/*.json.

    python benchmarks/tables.py            # or: make tables

A table stands between two comments; the first says what it shows:

    <!-- table: pacs_odg_features columns=acc_u,acc,h_u_fixed rows=ltds,agg against=ltds paper=S5 -->
    ...
    <!-- end of table -->

columns    metrics as in metrics.json, or validation
rows       which, in this order; without it all, the best first
against    one more column: the difference to this row on the first metric, paired over held-out domains and seeds
pairs      dc:agg,ltds:dc instead of rows: the first minus the second, paired, and in how many pairs the first is ahead
by         held_out: one column for each held-out domain
paper      the paper's table: one more column, and with six shared methods or more, how similar the two orders are
first      data: rows are datasets, not methods, on the held-out domains that all of their methods have
short      yes: the columns alone, with one line below them; for a first page that links to the rest
names      ltds-a:agg calls the row agg ltds-a

A study may be two files, bestiary_120_epochs+bestiary_parts, so that no run has to be in both.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
from collections.abc import Iterable
from pathlib import Path

from ltds.core.files import write_text
from ltds.evaluation.significance import agreement
from ltds.reporting.glossary import METRICS
from ltds.reporting.open_names import about_names, marked
from ltds.reporting.paper.tables import METRIC_KEYS, by_paper_preset, paper_preset, preset_averages
from studies import ROOT, RULED, Average, Study, data_and_method, version

BLOCK = re.compile(r"<!-- table: (?P<words>[^>]*?) -->\n(?P<text>.*?)<!-- end of table -->", re.DOTALL)
NOT_IN_REPORTS = {
    "validation": "validation, seen pairs",
    "h_softmax5": "H 5th percentile",
    "h_u_softmax5": "H-U 5th percentile",
    "h_u_best": "Limit of H-U fixed",
}
INTERVAL = "Intervals: Student's t over held-out domains, none for one seed ([statistics](DOCS/statistics.md))."
ORDERED = 6  # with fewer methods in both tables, a rank correlation says nothing


def table(study: Study, options: dict[str, str]) -> str:
    """The Markdown of one block."""
    columns, short = options["columns"].split(","), "short" in options
    compared = options.get("first", "method") == "method"
    given = options["rows"].split(",") if options.get("rows") else []
    study = study.only(given or study.rows()) if compared else study.shared_domains()
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
    notes.append(_bold(study, rows, columns[0]) if compared and not options.get("by") else "")
    notes.append(_order(study, rows, published))
    if compared:
        notes += [_rules(study, rows, column) for column in columns if column in RULED][:1]
    sizes = _short_sizes(study, rows) if short else _sizes(study, rows)
    basis = " ".join(filter(None, [sizes, *notes]))
    about = [about_names(["ltds"])] if informed else []  # what a study marks is ltds, by any name
    return "\n".join([*lines, "", basis, *about, ""])


def pair_table(study: Study, options: dict[str, str]) -> str:
    """The Markdown of a block with pairs=: a line for each two rows, on the held-out domains that all rows have."""
    columns = options["columns"].split(",")
    pairs = [tuple(pair.split(":")) for pair in options["pairs"].split(",")]
    study = study.only(list({row for pair in pairs for row in pair}))
    published = _published(options["paper"], columns) if options.get("paper") else {}
    heads = [*map(_name, columns), *([f"paper: {' / '.join(published)}"] if published else [])]
    lines = [f"| | {' | '.join(heads)} |", "|:--|" + "--:|" * len(heads)]
    for first, second in pairs:
        found = [study.difference(first, second, column) for column in columns]
        cells = ["-" if f is None else f"{_signed(f.mean)} ({f.wins}/{f.pairs})" for f in found]
        if published:
            theirs = [(means.get(paper_preset(first)), means.get(paper_preset(second))) for means in published.values()]
            cells.append(" / ".join("-" if a is None or b is None else _signed(a - b) for a, b in theirs))
        lines.append(f"| `{first}` minus `{second}` | {' | '.join(cells)} |")
    basis = "Averages over pairs of runs with the same held-out domain and seed, and in how many the first is ahead"
    return "\n".join([*lines, "", f"{basis} ({study.records}).", ""])


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


def _bold(study: Study, rows: list[str], column: str) -> str:
    """Which rows a bold number is the highest of, where it is not all of them; "" for all."""
    seeds = {study.average(row, column)[2] for row in rows}
    return "Bold: the highest of the rows with two seeds or more." if min(seeds) < 2 <= max(seeds) else ""


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
    """The reference minus this row, with its interval over domains."""
    found = None if row == reference else study.difference(reference, row, metric)
    if found is None:
        return ""
    known = found.low is not None and found.high is not None
    interval = f" ({_signed(found.low)} to {_signed(found.high)})" if known else ""
    return f"{_signed(found.mean)}{interval}"


def _name(metric: str) -> str:
    return NOT_IN_REPORTS.get(metric) or METRICS[metric].name


def _signed(value: float) -> str:
    return f"{round(value, 1) + 0:+.1f}"  # + 0: never -0.0


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
    domains = {(data_and_method(run)[0], run["held_out"]): (run["known_images"], run["open_images"]) for run in runs}
    known, opened = zip(*domains.values(), strict=True)
    images = f"{_range(known)} images of known and {_range(opened)} of open classes"
    basis = f"{len(domains)} held-out domains with {images}; " if any(known) else ""
    commits = sorted({run["commit"][:7] for run in runs})
    return (
        f"{len(runs)} runs; {basis}commit {', '.join(commits)}; {study.records}. "
        "± is the standard deviation over seeds of the average."
    )


def _short_sizes(study: Study, rows: list[str]) -> str:
    """The same in one line."""
    runs = [run for run in study.runs if run["row"] in rows]
    counts = {len({run["seed"] for run in runs if run["row"] == row}) for row in rows}
    return f"Averages of {len(runs)} runs with {_range(counts)} seeds; ± over seeds ({study.records})."


def _rules(study: Study, rows: list[str], metric: str) -> str:
    """Which rows have a number by another rule, or by the latest rule for some of their seeds only; "" for none."""
    versions = {row: {version(run) for run in study.runs if run["row"] == row} for row in rows}
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
        name, *words = block["words"].split()
        options = dict(word.split("=", 1) for word in words)
        write = pair_table if "pairs" in options else table
        names = dict(pair.split(":") for pair in options["names"].split(",")) if "names" in options else {}
        text = write(Study.read(name, names), options)
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
