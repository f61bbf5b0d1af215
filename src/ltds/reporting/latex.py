"""The tables in LaTeX, as the paper prints them."""

from __future__ import annotations

from collections.abc import Sequence

from ltds.reporting.cells import MISSING, Cell, Table, detail_table, main_table
from ltds.reporting.collect import Collection
from ltds.reporting.comparison_table import Sheet
from ltds.reporting.cost import HEADINGS
from ltds.reporting.table import cost_texts, legend, sheets_of


def latex_table(collection: Collection, reference: str | None = None) -> str:
    """LaTeX tables: best in bold, second underlined; the document needs \\usepackage{booktabs}."""
    blocks = []
    for dataset in collection.datasets:
        compared = map(_latex_sheet, sheets_of(dataset, reference))
        blocks += [_latex(main_table(dataset)), *compared, _latex(detail_table(dataset))]
    return "% needs \\usepackage{booktabs}\n" + "\n".join("\n".join(block) + "\n" for block in blocks)


def _latex(table: Table) -> list[str]:
    lines = _head(table.title, legend([table]))
    paid = HEADINGS if table.costs else ()
    lines += [f"\\begin{{tabular}}{{l{'c' * len(table.columns)}{'r' * len(paid)}}}", "\\toprule"]
    groups, rules, first = [], [], 2
    for name, span in [*table.groups, *([("Cost", len(paid))] if paid else [])]:
        groups.append(f"\\multicolumn{{{span}}}{{c}}{{\\textbf{{{latex_text(name)}}}}}")
        rules.append(f"\\cmidrule(lr){{{first}-{first + span - 1}}}")
        first += span
    lines.append(f" & {' & '.join(groups)} \\\\ {' '.join(rules)}")
    headings = [latex_text(name) for name in (*(column.metric.heading for column in table.columns), *paid)]
    lines.append(f"\\textbf{{Method}} & {' & '.join(headings)} \\\\ \\midrule")
    for (label, cells), cost in zip(table.rows, cost_texts(table, "--"), strict=True):
        lines.append(f"{latex_text(label)} & {' & '.join([*map(_latex_cell, cells), *cost])} \\\\")
    return [*lines, *_END]


def _latex_sheet(table: Sheet) -> list[str]:
    lines = [*_head(table.title, table.legend), f"\\begin{{tabular}}{{l{'c' * len(table.headings)}}}", "\\toprule"]
    lines.append(f"\\textbf{{Method}} & {' & '.join(map(latex_text, table.headings))} \\\\ \\midrule")
    for label, fields in table.rows:
        lines.append(f"{latex_text(label)} & {' & '.join(_signed(field) for field in fields)} \\\\")
    return [*lines, *_END]


def _head(title: str, sentences: Sequence[str]) -> list[str]:
    caption = f"\\caption{{{latex_text(title)}. {' '.join(map(latex_text, sentences))}}}"
    return ["\\begin{table}[t]", "\\centering\\small\\setlength{\\tabcolsep}{3pt}", caption]


_END = ("\\bottomrule", "\\end{tabular}", "\\end{table}")


def _signed(field: str) -> str:
    """The field with its signs as mathematics: a hyphen is no minus."""
    return latex_text(field).replace("-", "$-$").replace("+", "$+$") if field != MISSING else "--"


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
