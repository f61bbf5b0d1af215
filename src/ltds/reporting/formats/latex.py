"""The tables in LaTeX, as the paper prints them."""

from __future__ import annotations

from collections.abc import Sequence

from ltds.reporting.collection import Collection
from ltds.reporting.comparison_table import ComparisonTable
from ltds.reporting.legend import IMAGES_ROW, comparison_tables, cost_headings, cost_texts, legend
from ltds.reporting.open_names import INFORMED
from ltds.reporting.result_table import MISSING, TOO_FEW, ResultTable, TableCell, detail_table, main_table

WRITTEN, NEEDS = "written by ltds report", "needs \\usepackage{booktabs}"
FIRST_LINES = (f"% {WRITTEN}", f"% {NEEDS}")  # now, and before there was the former


def latex_table(collection: Collection, reference: str | None = None) -> str:
    """LaTeX tables: best in bold, second underlined; the document needs \\usepackage{booktabs}.

    The problems of the runs are comments: the author must know them, and decides what the reader is told.
    """
    blocks = []
    for dataset in collection.datasets:
        compared = map(_comparison, comparison_tables(dataset, reference))
        blocks += [_results(main_table(dataset)), *compared, _results(detail_table(dataset))]
    comments = [WRITTEN, NEEDS, *(f"Problem: {sentence}" for sentence in collection.problems)]
    return "".join(map(_comment, comments)) + "\n".join("\n".join(block) + "\n" for block in blocks)


def _comment(text: str) -> str:
    """One line: the rest of a comment that went on in a second line would be printed."""
    return f"% {' '.join(text.split())}\n"


def _results(table: ResultTable) -> list[str]:
    lines = _head(table.title, legend([table]))
    cost_names = cost_headings(table)
    lines += [f"\\begin{{tabular}}{{l{'c' * len(table.columns)}{'r' * len(cost_names)}}}", "\\toprule"]
    groups, rules, first = [], [], 2
    for name, span in [*table.groups, *([("Cost", len(cost_names))] if cost_names else [])]:
        groups.append(f"\\multicolumn{{{span}}}{{c}}{{\\textbf{{{latex_text(name)}}}}}")
        rules.append(f"\\cmidrule(lr){{{first}-{first + span - 1}}}")
        first += span
    lines.append(f" & {' & '.join(groups)} \\\\ {' '.join(rules)}")
    headings = [latex_text(name) for name in (*(column.metric.heading for column in table.columns), *cost_names)]
    lines.append(f"\\textbf{{Method}} & {' & '.join(headings)} \\\\ \\midrule")
    for (label, cells), cost in zip(table.rows, cost_texts(table, "--"), strict=True):
        lines.append(f"{latex_text(table.name(label))} & {' & '.join([*map(_cell, cells), *cost])} \\\\")
    if any(table.images):
        images = [*map(latex_text, table.images), *[""] * len(cost_names)]
        lines.append(f"\\midrule {IMAGES_ROW} & {' & '.join(images)} \\\\")
    return [*lines, *_END]


def _comparison(table: ComparisonTable) -> list[str]:
    lines = [*_head(table.title, table.legend), f"\\begin{{tabular}}{{l{'c' * len(table.headings)}}}", "\\toprule"]
    lines.append(f"\\textbf{{Method}} & {' & '.join(map(latex_text, table.headings))} \\\\ \\midrule")
    for label, fields in table.rows:
        lines.append(f"{latex_text(table.name(label))} & {' & '.join(_signed(field) for field in fields)} \\\\")
    return [*lines, *_END]


def _head(title: str, sentences: Sequence[str]) -> list[str]:
    caption = f"\\caption{{{latex_text(title)}. {' '.join(map(latex_text, sentences))}}}"
    return ["\\begin{table}[t]", "\\centering\\small\\setlength{\\tabcolsep}{3pt}", caption]


_END = ("\\bottomrule", "\\end{tabular}", "\\end{table}")


def _signed(field: str) -> str:
    """The field with its signs in math mode: a hyphen is not a minus."""
    return latex_text(field).replace("-", "$-$").replace("+", "$+$") if field != MISSING else "--"


def _cell(cell: TableCell) -> str:
    text = cell.text("{\\scriptsize\\,$\\pm$\\,", one_seed="$^\\dagger$", missing="--", too_few="")
    text += "}" if cell.std is not None else ""
    text += "$^\\ddagger$" if cell.too_few else ""
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
    INFORMED: "\\S{}",
    TOO_FEW: "$^\\ddagger$",
    MISSING: "--",
    "…": "\\ldots{}",
    "\n": " ",
    "\r": " ",
}


def latex_text(text: str) -> str:
    """The text with every character escaped that is special in LaTeX."""
    return "".join(_LATEX.get(sign, sign) for sign in text)
