"""The answer first: which method leads on Acc-U, and how sure these runs allow one to be."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ltds.reporting.cells import AVERAGE, Cell, Column, cell_of, detail_group
from ltds.reporting.comparison import ALPHA, Versus, all_pairs, values_of, versus
from ltds.reporting.comparison_table import interval, p_text
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import METRICS

ACC_U = METRICS["acc_u"]
DETAILED = 2  # methods that are told with their numbers; the table has those of all
NAMED = 6


@dataclass(frozen=True)
class Answer:
    """`verdict` in one sentence, `certainty` in the next; `leader` is the row's label, None where none leads."""

    leader: str | None
    verdict: str
    certainty: str


def answer(dataset: Dataset) -> Answer:
    """Which row has the highest Acc-U, averaged over the held-out domains, and what the paired runs bear out."""
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
    return Answer(best, verdict, _certainty(dataset, order, cells))


def _certainty(dataset: Dataset, order: Sequence[str], cells: Mapping[str, Cell]) -> str:
    """What the pairs of runs with the same held-out domain and seed show of the leader and each other method."""
    best, others = order[0], order[1:]
    if min(cells[best].seeds, cells[others[0]].seeds) < 2:
        return "One seed cannot tell whether this is more than luck: train both methods with three or more seeds."
    ours, tested = values_of(dataset, best, ACC_U), all_pairs(dataset, ACC_U)
    found = {label: versus(ours, values_of(dataset, label, ACC_U)) for label in others}
    shared = {label: replace(one, p=tested[frozenset((best, label))]) for label, one in found.items() if one}
    if others[0] not in shared:
        return f"It shares no seed and held-out domain with {isolated(others[0])}: train both with the same seeds."
    beaten = [label for label, one in shared.items() if one.verdict == "better"]
    level = [label for label in shared if label not in beaten]
    parts = [f"it beats {isolated(label)} in {_numbers(shared[label])}" for label in beaten[:DETAILED]]
    if len(beaten) > DETAILED:
        parts.append(f"it also beats {_names(beaten[DETAILED:])}")
    if level:
        parts.append(f"it is not told apart from {isolated(level[0])}: it won {_numbers(shared[level[0]])}")
        parts += [f"nor from {_names(level[1:])}"] if level[1:] else []
    family = sum(p is not None for p in tested.values())
    holm = f" (p after Holm over {family} pairs of methods.)" if family > 1 else ""
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}.{holm}{_caution(shared, level, others[0], family)}"


def _numbers(one: Versus) -> str:
    """How often, by how much, and how likely luck alone would do as well."""
    d = one.difference
    ties = f", {d.ties} tied" if d.ties else ""
    return f"{d.wins} of {d.pairs} pairs{ties} (difference {d.mean:.1f}{interval(d.low, d.high)}, p = {p_text(one.p)})"


def _caution(shared: Mapping[str, Versus], level: Sequence[str], second: str, family: int) -> str:
    """A sentence where the runner-up is not beaten: few pairs cannot show it, since p is 2 (1/2)^n at least."""
    if second not in level:
        return ""
    pairs = max(one.difference.pairs for one in shared.values())
    needed = math.ceil(1 + math.log2(family / ALPHA))
    if pairs >= needed:
        return " Do not call it a winner."
    return (
        f" Only a hint: {pairs} pairs cannot reach p = {ALPHA} whatever their values; add seeds or held-out domains, "
        f"to {needed} pairs."
    )


def _names(labels: Sequence[str]) -> str:
    shown = [isolated(label) for label in labels[:NAMED]]
    return ", ".join(shown) + (f" and {len(labels) - NAMED} more" if len(labels) > NAMED else "")


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
