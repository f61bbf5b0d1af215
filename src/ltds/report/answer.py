"""The answer first: which method leads on Acc-U, and how sure these runs allow one to be."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from ltds.report.cells import AVERAGE, Cell, Column, by_seed, cell_of, detail_group
from ltds.report.dataset import Dataset
from ltds.report.glossary import METRICS

ACC_U = METRICS["acc_u"]


@dataclass(frozen=True)
class Answer:
    """`verdict` in one sentence, `certainty` in the next; `leader` is the row's label, None where none leads."""

    leader: str | None
    verdict: str
    certainty: str


def answer(dataset: Dataset) -> Answer:
    """Which row has the highest Acc-U, averaged over the held-out domains, and whether the seeds bear it out."""
    group = detail_group(dataset)
    where = f"on average over {len(dataset.held_out_only)} held-out domains" if group == AVERAGE else f"on {group}"
    cells = {label: cell_of(dataset, label, Column(group, ACC_U)) for label in dataset.rows}
    means = {label: cell.mean for label, cell in cells.items() if cell.mean is not None}
    order = sorted(means, key=lambda label: -means[label])
    if not order:
        return Answer(None, f"No method has an Acc-U {where}.", _incomplete(dataset))
    best = order[0]
    if len(order) == 1:
        verdict = f"{isolated(best)} reaches {_percent(cells[best])} Acc-U {where}; no other method has this number."
        return Answer(best, verdict, _lone(dataset, cells[best]))
    second, gap = order[1], means[best] - means[order[1]]
    if round(gap, 1) == 0:
        verdict = f"{isolated(best)} and {isolated(second)} are level at {_percent(cells[best])} Acc-U {where}."
    else:
        verdict = (
            f"{isolated(best)} is ahead with {_percent(cells[best])} Acc-U {where}, "
            f"{gap:.1f} points above {isolated(second)} ({_percent(cells[second])})."
        )
    return Answer(best, verdict, _certainty(dataset, best, second, cells, gap))


def _certainty(dataset: Dataset, best: str, second: str, cells: dict[str, Cell], gap: float) -> str:
    wins, pairs = _paired(dataset, best, second)
    stds = [std for std in (cells[best].std, cells[second].std) if std is not None]
    if len(stds) < 2:
        return "One seed cannot tell whether this is more than luck: train both methods with three or more seeds."
    met = f"With the same seed and held-out domain it won {wins} of {pairs} times" if pairs else "They share no seed"
    if gap <= max(stds):
        return f"{met}, and the gap is no larger than the spread between seeds: do not call it a winner."
    fewest = min(cells[best].seeds, cells[second].seeds)
    if fewest < 3:
        return f"{met}, and the gap is larger than the spread between seeds; but {fewest} seeds are few: only a hint."
    return f"{met}, and the gap is larger than the spread between the {fewest} seeds."


def _paired(dataset: Dataset, best: str, second: str) -> tuple[int, int]:
    """How often `best` beat `second` in the same place, of how many places."""
    ours, theirs = (by_seed(dataset.rows[label], ACC_U) for label in (best, second))
    places = [(s, d) for s, domains in ours.items() for d in domains if d in theirs.get(s, {})]
    return sum(ours[s][d] > theirs[s][d] for s, d in places), len(places)


def _lone(dataset: Dataset, cell: Cell) -> str:
    if len(dataset.rows) > 1:
        return _incomplete(dataset)
    again = " One seed does not show its spread." if cell.seeds == 1 else ""
    return f"There is nothing to compare it with: train 'agg', the baseline, or another method.{again}"


def _incomplete(dataset: Dataset) -> str:
    if not dataset.held_out_only:
        return "Acc-U needs a held-out domain: train with data.held_out set."
    return "The other rows lack a seed that has every held-out domain: the tables show what there is."


def _percent(cell: Cell) -> str:
    return f"{cell.text(one_seed='')} %"


def isolated(name: str) -> str:
    """The name, between Unicode isolates where right-to-left letters would turn the sentence around."""
    turns = any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in name)
    return f"\u2068{name}\u2069" if turns else name
