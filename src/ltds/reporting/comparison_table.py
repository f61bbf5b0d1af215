"""ComparisonTable: a comparison as plain text; the formats only have to escape it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ltds.reporting.comparison import Comparison, ComparisonRow
from ltds.reporting.open_names import about_names, marked
from ltds.reporting.paired_runs import MethodDifference
from ltds.reporting.result_table import MISSING, TOO_FEW, TableCell

INTERVAL = "[low, high] next to a mean: 95 % interval over seeds (Student's t)."
PAIRED = (
    "Difference: method minus reference over runs with the same held-out domain and seed, mean over domains; its 95 % "
    "interval is Student's t over the domains, so it is about other domains of this kind; with a single domain it is "
    "over seeds."
)
TEST = (
    "p: Wilcoxon's signed-rank test over those pairs, corrected (Holm) for the methods of this table that share two or "
    'more seeds with the reference; it assumes independent pairs. "better" or "worse" requires p of at most 0.05 and '
    "an interval that excludes 0."
)
RANK = "Mean rank over the pairs of held-out domain and seed that every method has (1 is best)."
PAPER = "Paper: the number printed in the paper; next to it, ours minus paper."


@dataclass(frozen=True)
class ComparisonTable:
    """Rows of a label and its fields; `numbers`: the values of the fields for sorting, None if a field has none.

    `informed`: labels of the rows whose method knows the names of the open classes.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    numbers: tuple[tuple[float | None, ...], ...]
    legend: tuple[str, ...]
    informed: tuple[str, ...] = ()

    def name(self, label: str) -> str:
        """The label of a row, marked where its method knows the names of the open classes."""
        return marked(label, self.informed)


def comparison_table(table: Comparison) -> ComparisonTable:
    """The comparison of one metric, ready to be escaped and printed."""
    has_paper = any(row.printed is not None for row in table.rows)
    paper = ("Paper", "Ours minus paper") if has_paper else ()
    headings = (table.metric.heading, "Difference", "p (Holm)", "Verdict", "Won / tied / lost", "Mean rank", *paper)
    fields = [_fields(row, table.reference) for row in table.rows]
    width = len(headings)
    return ComparisonTable(
        f"{table.dataset}: {table.metric.name} against {table.reference} ({table.group})",
        headings,
        tuple((row.label, texts[:width]) for row, (texts, _) in zip(table.rows, fields, strict=True)),
        tuple(numbers[:width] for _, numbers in fields),
        tuple(_legend(table, has_paper)),
        table.informed,
    )


def interval(low: float | None, high: float | None, sign: str = "") -> str:
    """' [low, high]' with one decimal and never -0.0, or an empty string."""
    return "" if low is None or high is None else f" [{low:{sign}z.1f}, {high:{sign}z.1f}]"


def about_intervals(cells: Iterable[TableCell]) -> list[str]:
    """A sentence on the intervals of these cells, if they have any."""
    return [INTERVAL] if any(cell.low is not None for cell in cells) else []


def p_text(p: float | None) -> str:
    """p with three decimals, or as "< 0.001"."""
    return MISSING if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equals(p: float | None) -> str:
    """As `p_text`, in a sentence: "p = 0.031" or "p < 0.001"."""
    text = p_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _fields(row: ComparisonRow, reference: str) -> tuple[tuple[str, ...], tuple[float | None, ...]]:
    mean = row.cell.mean
    gap = None if mean is None or row.printed is None else mean - row.printed
    compared = ("reference", *[MISSING] * 3) if row.label == reference else _difference(row.difference)
    texts = (
        _mean(row.cell),
        *compared,
        MISSING if row.rank is None else f"{row.rank:.2f}",
        MISSING if row.printed is None else f"{row.printed:.1f}",
        MISSING if gap is None else f"{gap:+z.1f}",
    )
    one = row.difference
    numbers = (one.paired.mean, one.p, None, float(one.paired.wins)) if one else (None,) * 4
    return texts, (mean, *numbers, row.rank, row.printed, gap)


def _mean(cell: TableCell) -> str:
    if cell.mean is None or cell.std is None:
        return cell.text()
    return f"{cell.mean:.1f}{interval(cell.low, cell.high)}{TOO_FEW if cell.too_few else ''}"


def _difference(one: MethodDifference | None) -> tuple[str, ...]:
    if one is None:
        return (MISSING,) * 4
    d = one.paired
    text = f"{d.mean:+z.1f}{interval(d.low, d.high, '+')}"
    return text, p_text(one.p), one.verdict, f"{d.wins} / {d.ties} / {d.losses}"


def _legend(table: Comparison, has_paper: bool) -> Iterable[str]:
    yield from about_intervals([row.cell for row in table.rows])
    yield PAIRED
    yield TEST
    if table.ranking:
        yield f"{RANK} There are {table.ranking.blocks}."
    if has_paper:
        yield PAPER
    if table.informed:
        yield about_names(table.informed)


def sentences(tables: Sequence[ComparisonTable]) -> list[str]:
    """The sentences of the legends of these tables, each once."""
    return list(dict.fromkeys(sentence for table in tables for sentence in table.legend))
