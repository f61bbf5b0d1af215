"""A comparison as plain text: a title, headings, fields and the sentences below; the formats only escape them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ltds.evaluation.statistics import LEVEL, coverage_limit
from ltds.reporting.cells import MISSING, Cell
from ltds.reporting.comparison import Comparison, Row, Versus

INTERVAL = (
    "[low, high] beside a mean: 95 % percentile bootstrap over seeds. It never leaves the range of the seeds, so with "
    "{seeds} seeds it holds the true mean at most {percent} % of the time."
)
MANY_SEEDS = "[low, high] beside a mean: 95 % percentile bootstrap over seeds."
PAIRED = (
    "Difference: method minus reference over runs with the same held-out domain and seed, mean over domains; its "
    "interval is a bootstrap that draws domains, then seeds, so a few domains make it too narrow."
)
TEST = (
    "p: Wilcoxon's signed-rank test over those pairs, after Holm for the methods of this table; it takes the pairs as "
    "independent. Better or worse is said only where p is at most 0.05 and the interval leaves out 0."
)
RANK = "Mean rank over the pairs of held-out domain and seed that every method has (1 is best)."
PAPER = "Paper: the printed number; ours minus paper beside it."


@dataclass(frozen=True)
class Sheet:
    """Rows of a label and its fields; `numbers` are the fields' values to sort by, None where there is none."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    numbers: tuple[tuple[float | None, ...], ...]
    legend: tuple[str, ...]


def sheet(table: Comparison) -> Sheet:
    """The comparison of one metric, ready to be escaped and printed."""
    has_paper = any(row.printed is not None for row in table.rows)
    paper = ("Paper", "Ours minus paper") if has_paper else ()
    headings = (table.metric.heading, "Difference", "p (Holm)", "Shown", "Won / tied / lost", "Mean rank", *paper)
    fields = [_fields(row, table.reference) for row in table.rows]
    width = len(headings)
    return Sheet(
        f"{table.dataset}: {table.metric.name} against {table.reference} ({table.group})",
        headings,
        tuple((row.label, texts[:width]) for row, (texts, _) in zip(table.rows, fields, strict=True)),
        tuple(numbers[:width] for _, numbers in fields),
        tuple(_legend(table, has_paper)),
    )


def interval(low: float | None, high: float | None, sign: str = "") -> str:
    """' [low, high]' with one decimal, or nothing."""
    return "" if low is None or high is None else f" [{low:{sign}.1f}, {high:{sign}.1f}]"


def about_intervals(cells: Iterable[Cell]) -> list[str]:
    """A sentence on the intervals of these cells, which says how crude the smallest number of seeds makes them."""
    few = min((cell.seeds for cell in cells if cell.seeds > 1), default=0)
    if few < 2:
        return []
    limit = coverage_limit(few)
    return [INTERVAL.format(seeds=few, percent=f"{100 * limit:.0f}") if limit < LEVEL else MANY_SEEDS]


def p_text(p: float | None) -> str:
    """p with three decimals, as a bound where it is smaller."""
    return MISSING if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _fields(row: Row, reference: str) -> tuple[tuple[str, ...], tuple[float | None, ...]]:
    mean = row.cell.mean
    apart = None if mean is None or row.printed is None else mean - row.printed
    own = ("reference", *[MISSING] * 3) if row.label == reference else _versus(row.versus)
    texts = (
        _mean(row.cell),
        *own,
        MISSING if row.rank is None else f"{row.rank:.2f}",
        MISSING if row.printed is None else f"{row.printed:.1f}",
        MISSING if apart is None else f"{apart:+.1f}",
    )
    one = row.versus
    compared = (one.difference.mean, one.p, None, float(one.difference.wins)) if one else (None,) * 4
    return texts, (mean, *compared, row.rank, row.printed, apart)


def _mean(cell: Cell) -> str:
    if cell.mean is None or cell.std is None:
        return cell.text()
    return f"{cell.mean:.1f}{interval(cell.low, cell.high)}"


def _versus(one: Versus | None) -> tuple[str, ...]:
    if one is None:
        return (MISSING,) * 4
    d = one.difference
    said = f"{d.mean:+.1f}{interval(d.low, d.high, '+')}"
    return said, p_text(one.p), one.verdict, f"{d.wins} / {d.ties} / {d.losses}"


def _legend(table: Comparison, has_paper: bool) -> Iterable[str]:
    yield from about_intervals([row.cell for row in table.rows])
    yield PAIRED
    yield TEST
    if table.ranking:
        yield f"{RANK} There are {table.ranking.blocks}."
    if has_paper:
        yield PAPER


def sentences(sheets: Sequence[Sheet]) -> list[str]:
    """The sentences below these tables, each once."""
    return list(dict.fromkeys(sentence for one in sheets for sentence in one.legend))
