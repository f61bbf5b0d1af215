"""The tables as text: markdown, CSV, LaTeX and rows for a terminal, each with its own escaping."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

from ltds.report.cells import AVERAGE, MISSING, Cell, Column, Table, cell_of, detail_table, main_table
from ltds.report.collect import Collection
from ltds.report.glossary import MAIN, METRICS

SPREAD = "Mean ± sample standard deviation over seeds, in percent; averages take the seeds that have every domain."
RANKS = "Best in bold, second underlined, where two or more methods have a value; one-seed values are never marked."
ONE_SEED = "† one seed: its spread is unknown."
NO_VALUE = f"{MISSING} no value."
ORACLE = "H oracle picks its threshold on the test labels: an upper limit."


def legend(tables: Iterable[Table]) -> list[str]:
    """The sentences that these tables need below them."""
    shown = list(tables)
    cells = [cell for table in shown for _, row in table.rows for cell in row]
    has_oracle = any(column.metric.choice == "h_oracle" for table in shown for column in table.columns)
    wanted = (
        (SPREAD, True),
        (RANKS, any(cell.mark for cell in cells)),
        (ONE_SEED, any(cell.seeds == 1 for cell in cells)),
        (NO_VALUE, any(cell.mean is None for cell in cells)),
        (ORACLE, has_oracle),
    )
    return [sentence for sentence, needed in wanted if needed]


def tables_of(collection: Collection) -> list[Table]:
    """Each dataset's main table, then its detail table."""
    return [make(dataset) for dataset in collection.datasets for make in (main_table, detail_table)]


def markdown_table(collection: Collection) -> str:
    """GitHub markdown: for each dataset a heading, the main table and the detail table, then the legend."""
    tables = tables_of(collection)
    blocks = ["\n".join(_markdown(table)) for table in tables]
    return "\n\n".join([*blocks, "\n".join(f"- {sentence}" for sentence in legend(tables))]) + "\n"


def csv_table(collection: Collection) -> str:
    """CSV with one number a line, in percent: dataset, method, held out, metric, mean, std, seeds; missing is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["dataset", "method", "held_out", "metric", "mean_percent", "std_percent", "seeds"])
    for dataset in collection.datasets:
        groups = dict.fromkeys([*dataset.held_out, *([AVERAGE] if len(dataset.held_out_only) > 1 else [])])
        for label in dataset.rows:
            for column in (Column(group, metric) for group in groups for metric in METRICS.values()):
                cell = cell_of(dataset, label, column)
                names = (dataset.name, label, column.group, column.metric.key)
                numbers = ("" if value is None else f"{value:.4f}" for value in (cell.mean, cell.std))
                writer.writerow([*map(_csv_text, names), *numbers, cell.seeds])
    return out.getvalue()


def latex_table(collection: Collection) -> str:
    """LaTeX tables as the paper prints them; the document needs \\usepackage{booktabs}."""
    tables = tables_of(collection)
    return "% needs \\usepackage{booktabs}\n" + "\n".join("\n".join(_latex(table)) + "\n" for table in tables)


def terminal_rows(collection: Collection) -> tuple[list[str], list[list[str]]]:
    """A header and rows narrow enough for a terminal: one row for each method and held-out domain. Plain text."""
    many = len(collection.datasets) > 1
    header = [*(["Dataset"] if many else []), "Method", "Held out", *(metric.heading for metric in MAIN), "Seeds"]
    rows = []
    for dataset in collection.datasets:
        table = main_table(dataset)
        for label, cells in table.rows:
            for start in range(0, len(cells), len(MAIN)):
                part = cells[start : start + len(MAIN)]
                names = [*([dataset.name] if many else []), label, table.columns[start].group]
                rows.append([*names, *(cell.text() for cell in part), str(max(cell.seeds for cell in part))])
    return header, rows


def _markdown(table: Table) -> list[str]:
    grouped = len(table.groups) > 1
    names = [
        f"{markdown_text(column.group)} {column.metric.heading}" if grouped else column.metric.heading
        for column in table.columns
    ]
    over = "" if grouped else f" ({markdown_text(table.groups[0][0])})"
    lines = [f"## {markdown_text(table.title)}{over}", "", _line(["Method", *names])]
    lines.append(_line([":--", *["--:"] * len(names)]))
    return lines + [_line([markdown_text(label), *map(_markdown_cell, cells)]) for label, cells in table.rows]


def _line(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _markdown_cell(cell: Cell) -> str:
    return {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}[cell.mark].format(cell.text())


def markdown_text(name: str) -> str:
    """The name with everything escaped that markdown or the HTML in it would read as markup."""
    entities = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(re.sub(r"([\\`*_{}\[\]()#+!|~$])", r"\\\1", entities).split())


def _csv_text(name: str) -> str:
    """The name, led by an apostrophe where a spreadsheet would take it for a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def _latex(table: Table) -> list[str]:
    lines = ["\\begin{table}[t]", "\\centering\\small\\setlength{\\tabcolsep}{3pt}"]
    lines.append(f"\\caption{{{latex_text(table.title)}. {' '.join(map(latex_text, legend([table])))}}}")
    lines += [f"\\begin{{tabular}}{{l{'c' * len(table.columns)}}}", "\\toprule"]
    groups, rules, first = [], [], 2
    for name, span in table.groups:
        groups.append(f"\\multicolumn{{{span}}}{{c}}{{\\textbf{{{latex_text(name)}}}}}")
        rules.append(f"\\cmidrule(lr){{{first}-{first + span - 1}}}")
        first += span
    lines.append(f" & {' & '.join(groups)} \\\\ {' '.join(rules)}")
    headings = [latex_text(column.metric.heading) for column in table.columns]
    lines.append(f"\\textbf{{Method}} & {' & '.join(headings)} \\\\ \\midrule")
    lines += [f"{latex_text(label)} & {' & '.join(map(_latex_cell, cells))} \\\\" for label, cells in table.rows]
    return [*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}"]


def _latex_cell(cell: Cell) -> str:
    text = cell.text(plus_minus="{\\scriptsize\\,$\\pm$\\,", one_seed="$^\\dagger$", missing="--")
    text += "}" if cell.std is not None else ""
    return {"best": f"\\textbf{{{text}}}", "second": f"\\underline{{{text}}}", "": text}[cell.mark]


_LATEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "±": "$\\pm$",
    "†": "$^\\dagger$",
    MISSING: "--",
    "…": "\\ldots{}",
    "\n": " ",
    "\r": " ",
}


def latex_text(text: str) -> str:
    """The text with every sign escaped that LaTeX would act on."""
    return "".join(_LATEX.get(sign, sign) for sign in text)
