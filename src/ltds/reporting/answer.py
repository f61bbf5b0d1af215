"""The answer of a report: which method leads in Acc-U, and how certain that is."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ltds.core.text import few
from ltds.reporting.comparison_table import interval, p_equals
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import METRICS
from ltds.reporting.paired_runs import (
    ALPHA,
    MethodDifference,
    all_pairs,
    method_difference,
    pairs_needed,
    values_of,
)
from ltds.reporting.result_table import Column, TableCell, average_of, cell_of, detail_group

ACC_U = METRICS["acc_u"]
DETAILED = 2  # methods that are named with their numbers; the table has the numbers of all
NAMED = 6  # methods that are named at most


@dataclass(frozen=True)
class Answer:
    """Which row leads, and what the runs that it shares with each other row show of that row."""

    leader: str | None  # label of the row with the highest mean
    verdict: str  # one sentence
    certainty: str  # the next
    beaten: tuple[str, ...] = ()  # worse than the leader
    undecided: tuple[str, ...] = ()  # neither worse nor better is shown; highest mean first
    tested: tuple[str, ...] = ()  # undecided methods with enough shared runs to show a difference
    beaten_by: tuple[str, ...] = ()  # better than the leader, although its mean is lower
    unaveraged: tuple[str, ...] = ()  # without a mean, as no seed has every held-out domain; only shared runs count
    against: Mapping[str, MethodDifference] = field(default_factory=dict)  # the leader minus a row; p over all pairs

    @property
    def enough_pairs(self) -> bool:
        """Whether the best of the undecided rows is among the tested ones."""
        return bool(self.undecided) and self.undecided[0] in self.tested

    @property
    def equal(self) -> tuple[str, ...]:
        """The tested rows that are about as good as the leader, see `MethodDifference.equal`."""
        return tuple(label for label in self.tested if self.against[label].equal)


@lru_cache(maxsize=64)
def answer(dataset: Dataset) -> Answer:
    """Which row has the highest Acc-U, averaged over the held-out domains that every row has, and how certain it is."""
    shared = dataset.comparable()
    found = _answer(shared)
    left = [name for name in dataset.held_out_only if name not in shared.held_out]
    if not left:
        return found
    note = f" Not every method was trained with {_names(left)} held out, so this leaves those runs out."
    return replace(found, certainty=found.certainty + note)


def _answer(dataset: Dataset) -> Answer:
    group = detail_group(dataset)
    averaged = group == average_of(dataset)
    domains = dataset.held_out_only if averaged else (group,)
    place = f"on average over {len(domains)} held-out domains" if averaged else f"on {group}"
    where = place + _image_count(dataset, domains)
    cells = {label: cell_of(dataset, label, Column(group, ACC_U)) for label in dataset.rows}
    means = {label: cell.mean for label, cell in cells.items() if cell.mean is not None}
    order = sorted(means, key=lambda label: -means[label])
    if not order:
        return Answer(None, f"No method has an Acc-U {where}.", _no_acc_u(dataset))
    best, second = order[0], order[1] if len(order) > 1 else None
    verdict = _verdict({label: cells[label] for label in order[:2]}, where)
    if len(dataset.rows) == 1:
        return Answer(best, verdict, _single(cells[best]))
    unaveraged = tuple(label for label in dataset.rows if label not in means)
    others = (*order[1:], *unaveraged)
    if second and min(cells[best].seeds, cells[second].seeds) < 2:
        chance = "With one seed this may be chance: train both methods with three or more seeds."
        return Answer(best, verdict, chance, undecided=others, unaveraged=unaveraged)
    against, family = _differences(dataset, best, others)
    needed = pairs_needed(dataset, ACC_U, best, against)
    beaten, beaten_by = (
        tuple(label for label, one in against.items() if one.verdict == which) for which in ("better", "worse")
    )
    undecided = tuple(label for label in others if label not in (*beaten, *beaten_by))
    tested = tuple(label for label in undecided if label in against and _is_tested(against[label], needed[label]))
    found = Answer(best, verdict, "", beaten, undecided, tested, beaten_by, unaveraged, against)
    return replace(found, certainty=_certainty(found, second, family, place, needed))


def _verdict(cells: Mapping[str, TableCell], where: str) -> str:
    """Who leads. `cells`: the best row, and the second if there is one."""
    (best, first), *rest = cells.items()
    if not rest:
        return f"{isolated(best)} reaches {_percent(first)} Acc-U {where}; no other method has this number."
    second, other = rest[0]
    gap = (first.mean or 0) - (other.mean or 0)
    if round(gap, 1) == 0:
        texts = list(dict.fromkeys([_percent(first), _percent(other)]))  # the spread of each, where they differ
        return f"{isolated(best)} and {isolated(second)} are level at {' and '.join(texts)} Acc-U {where}."
    return (
        f"{isolated(best)} is ahead with {_percent(first)} Acc-U {where}, "
        f"{gap:.1f} points above {isolated(second)} ({_percent(other)})."
    )


def _image_count(dataset: Dataset, domains: Sequence[str]) -> str:
    """How many test images of known classes the numbers of these held-out domains rest on; "" where it is not known."""
    counts: dict[str, int] = {}
    for run in (run for runs in dataset.rows.values() for run in runs):
        if run.held_out in domains and run.metrics.pairs and run.metrics.pairs.images and run.task.held_out:
            row = run.metrics.pairs.images[run.task.domains.index(run.task.held_out)]
            counts[run.held_out] = sum(n for c, n in enumerate(row) if c not in run.task.open_classes)
    total = sum(counts.values())
    return f" ({total:,} test images)" if total and len(counts) == len(domains) else ""


def _differences(dataset: Dataset, best: str, others: Sequence[str]) -> tuple[dict[str, MethodDifference], int]:
    """The leader against each method with which it shares runs, p corrected over all pairs of methods; their number."""
    ours, tested = values_of(dataset, best, ACC_U), all_pairs(dataset, ACC_U)
    differences = {label: method_difference(ours, values_of(dataset, label, ACC_U)) for label in others}
    against = {label: replace(one, p=tested[frozenset((best, label))]) for label, one in differences.items() if one}
    return against, sum(p is not None for p in tested.values())


def _is_tested(one: MethodDifference, needed: int) -> bool:
    """Whether the pairs could have shown a difference: they are enough, and not all of one seed."""
    return one.paired.pairs >= needed and one.verdict == "no difference shown"


def _certainty(found: Answer, second: str | None, family: int, place: str, needed: Mapping[str, int]) -> str:
    """What pairs of runs with the same held-out domain and seed show about the leader and the other methods."""
    said, beaten = _unpaired(found, second) if second else [], found.beaten
    clauses = [f"it beats {isolated(label)} in {_numbers(found.against[label])}" for label in beaten[:DETAILED]]
    if len(beaten) > DETAILED:
        clauses.append(f"it also beats {_names(beaten[DETAILED:])}")
    clauses += [*_beaten_by(found), *_no_difference(found, second)]
    if clauses:
        text = "; ".join(clauses)
        said.append(f"{text[0].upper()}{text[1:]}.")
        said += [f"(p corrected by Holm's method over {family} pairs of methods.)"] if family > 1 else []
    if second and second in found.against:
        said += _caution(found, second, needed[second])
    return " ".join([*said, *_without_average(found, place)])


def _unpaired(found: Answer, second: str) -> list[str]:
    """A sentence if nothing was tested between leader and runner-up, because they share no seed, or one."""
    name = isolated(second)
    if second not in found.against:
        return [f"It shares no seed and held-out domain with {name}: train both with the same seeds."]
    if found.against[second].one_seed:
        return [f"It shares one seed with {name}, which cannot be tested: train both with the same two or more seeds."]
    return []


def _without_average(found: Answer, place: str) -> Iterator[str]:
    """Sentences on methods that the verdict cannot rank."""
    compared, apart = ([label for label in found.unaveraged if (label in found.against) is w] for w in (True, False))
    if compared:
        yield f"No Acc-U {place} for {_names(compared)}: compared over shared runs only."
    if apart:
        yield f"No Acc-U {place}, and no shared runs, for {_names(apart)}: not compared."


def _beaten_by(found: Answer) -> list[str]:
    """Clauses on methods that win over the runs that both have, though they have a lower mean, or none."""
    labels = found.beaten_by
    clauses = [
        f"over the runs that both have, it is worse than {isolated(label)}: it won {_numbers(found.against[label])}"
        for label in labels[:DETAILED]
    ]
    clauses += [f"it is also worse than {_names(labels[DETAILED:])}"] if len(labels) > DETAILED else []
    lower = any(label not in found.unaveraged for label in labels)
    return [*clauses, "its higher mean comes from comparing other runs than these pairs"] if lower else clauses


def _no_difference(found: Answer, second: str | None) -> list[str]:
    """Clauses on the undecided methods: few pairs that show nothing do not mean that two methods are equally good.

    Of the runner-up with which one seed is shared, `_unpaired` has told.
    """
    shared = [label for label in found.undecided if label in found.against]
    first, *rest = [label for label in shared if not found.against[label].one_seed] or [""]
    clauses = []
    if first:
        clauses = [f"no significant difference from {isolated(first)}: it won {_numbers(found.against[first])}"]
    tested, few = ([label for label in rest if (label in found.tested) is wanted] for wanted in (True, False))
    clauses += [f"nor from {_names(tested)}"] if tested else []
    clauses += [f"too few pairs to tell it from {_names(few)}"] if few else []
    once = [label for label in shared if found.against[label].one_seed and label != second]
    return [*clauses, f"one shared seed cannot tell it from {_names(once)}"] if once else clauses


def _numbers(one: MethodDifference) -> str:
    """How often it won, by how much, and the p-value."""
    d = one.paired
    ties = f", {d.ties} tied" if d.ties else ""
    return f"{d.wins} of {d.pairs} pairs{ties} (difference {d.mean:.1f}{interval(d.low, d.high)}, {p_equals(one.p)})"


def _caution(found: Answer, second: str, needed: int) -> list[str]:
    """A sentence if the runner-up is not beaten: fewer pairs than `needed` cannot show it."""
    if second not in found.undecided or found.against[second].one_seed:
        return []
    pairs = found.against[second].paired.pairs
    if pairs >= needed:
        return ["So it is not a clear winner."]
    return [
        f"{pairs} pairs cannot reach p = {ALPHA}, whatever their values: add seeds or held-out domains until there "
        f"are {needed} pairs."
    ]


def _names(labels: Sequence[str]) -> str:
    return few([isolated(label) for label in labels], NAMED)


def _single(cell: TableCell) -> str:
    spread = " One seed does not show its spread." if cell.seeds == 1 else ""
    return f"There is nothing to compare it with: train the baseline 'agg' or another method.{spread}"


def _no_acc_u(dataset: Dataset) -> str:
    """Why no row has an Acc-U."""
    if not dataset.held_out_only:
        return "Acc-U needs a held-out domain: train with data.held_out set."
    if not dataset.has_average:
        return "No row has a seed with every held-out domain; the tables show the values that exist."
    return "There are no test images of known classes in some held-out domain."


def _percent(cell: TableCell) -> str:
    return f"{cell.text(one_seed='', too_few='')} %"


def isolated(name: str) -> str:
    """The name, between Unicode isolates if its right-to-left letters would change the order of the sentence."""
    right_to_left = any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in name)
    return f"\u2068{name}\u2069" if right_to_left else name
