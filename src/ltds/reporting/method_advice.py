"""Which method to take, as far as the paired runs tell, and otherwise which runs would tell."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ltds.reporting.answer import ACC_U, Answer, isolated
from ltds.reporting.comparison_table import interval
from ltds.reporting.cost import cost_of, short_count
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import METRICS
from ltds.reporting.paired_runs import EQUAL, MethodDifference, method_difference, values_of
from ltds.reporting.result_table import Column, cell_of, detail_group

MACRO_U = METRICS["macro_u"]
NAMED = 4  # methods in a sentence


@dataclass(frozen=True)
class Advice:
    """What to do, in a few words, and why."""

    action: str
    reason: str
    method: str = ""  # label of the method that it recommends instead of the leader


def method_advice(dataset: Dataset, leader: str, found: Answer) -> Advice:
    """The advice on the choice of a method; `found` is the answer of this dataset."""
    advice = _by_images(dataset, leader, found)
    return replace(advice, reason=f"{advice.reason}{_by_classes(dataset, advice.method or leader, found)}")


def _by_classes(dataset: Dataset, recommended: str, answer: Answer) -> str:
    """Who is ahead only if classes count the same instead of images, where runs that both have show it."""
    ours = values_of(dataset, recommended, MACRO_U)
    behind = [label for label, one in answer.against.items() if one.paired.mean >= 0]  # by images
    others = [label for label in behind if label != recommended and not _rests_on_few(dataset, label)]
    found = {label: method_difference(values_of(dataset, label, MACRO_U), ours) for label in others}
    leads = {label: one.paired.mean for label, one in found.items() if one is not None and _is_shown(one)}
    if not leads or _rests_on_few(dataset, recommended):
        return ""
    first = max(leads, key=lambda label: leads[label])
    return (
        f" But if each class counts the same, instead of each image, {isolated(first)} is ahead by {leads[first]:.0f} "
        "points (Macro-U, over the runs that both have): prefer it where rare classes matter as much as frequent ones."
    )


def _is_shown(lead: MethodDifference) -> bool:
    """Whether a lead is more than what another seed changes."""
    low = lead.paired.low
    return not lead.one_seed and lead.paired.mean > EQUAL and low is not None and low > 0


def _rests_on_few(dataset: Dataset, label: str) -> bool:
    return cell_of(dataset, label, Column(detail_group(dataset), MACRO_U)).too_few


def _by_images(dataset: Dataset, leader: str, found: Answer) -> Advice:
    """Which method to take by Acc-U, for which images count the same, and with it frequent classes most."""
    best = isolated(leader)
    if len(dataset.rows) == 1:
        simple = "bsce" if leader == "agg" else "agg"
        return Advice(
            f"Train a second method, such as {simple}.",
            f"With one method alone, you cannot tell whether {best} is good.",
        )
    if not found.against and set(found.undecided) == set(found.unaveraged):
        return Advice(
            "Complete the runs.", "No other method was trained with every held-out domain, so none can be compared."
        )
    if found.beaten_by:
        other = isolated(found.beaten_by[0])
        return Advice(
            f"Train {best} and {other} with the same seeds and held-out domains before you choose one.",
            f"{best} has the highest number, but over the runs that both have, {other} is better.",
        )
    if not found.undecided:
        return Advice(f"Use {best}.", "Over paired runs it is better than every other method here.")
    unranked = _unranked(found)
    if unranked:
        return _complete(leader, unranked, found)
    return _undecided(dataset, leader, found)


def _unranked(found: Answer) -> str:
    """An undecided row without an average that may be the best: it wins shared runs, or all with an average are beaten.

    Empty if there is none.
    """
    rows = [label for label in found.undecided if label in found.unaveraged]
    ahead = [label for label in rows if label in found.against and found.against[label].paired.mean < 0]
    return next(iter(ahead or (rows if len(rows) == len(found.undecided) else [])), "")


def _complete(leader: str, other: str, found: Answer) -> Advice:
    best, name, one = isolated(leader), isolated(other), found.against.get(other)
    shared = f"it shares no runs with {best}"
    if one:
        d = one.paired
        shared = f"over {d.pairs} shared runs, {best} minus {name} is {d.mean:.1f} points{interval(d.low, d.high)}"
    return Advice(
        f"Train {name} with every held-out domain, with the seeds of {best}, before you choose one.",
        f"{name} has no seed with every held-out domain, so it has no average; {shared}.",
    )


def _undecided(dataset: Dataset, leader: str, found: Answer) -> Advice:
    """Some rows are not beaten; the best of them has an average."""
    best, other = isolated(leader), isolated(found.undecided[0])
    if cell_of(dataset, leader, Column(detail_group(dataset), ACC_U)).seeds < 2:
        return Advice(
            f"Take {best} for now, and train it and {other} with three or more seeds.",
            "It has the highest number, but a method was trained only once: another seed may change the order.",
        )
    one = found.against.get(found.undecided[0])
    if one is None or one.one_seed:
        return Advice(
            f"Take {best} for now, and train it and {other} with the same two or more seeds.",
            f"It has the highest number, but the two share {'one seed' if one else 'no run'}: nothing could be tested.",
        )
    if not found.enough_pairs:
        return Advice(
            f"Take {best} for now, and add seeds or held-out domains.",
            f"It has the highest number, but there are too few paired runs to be sure that it beats {other}.",
        )
    if found.undecided[0] not in found.equal:
        d = found.against[found.undecided[0]].paired
        return Advice(
            f"Take {best} for now, and add held-out domains or seeds.",
            f"The runs cannot tell whether {best} is better than {other}: the difference is {d.mean:.1f} points"
            f"{interval(d.low, d.high)}.",
        )
    return _cheapest(dataset, leader, found)


def _cheapest(dataset: Dataset, leader: str, found: Answer) -> Advice:
    """Of methods that are about equal, the smallest network; the leader if its size is not known or the same.

    Methods with too few paired runs, or a wide interval, are not among them: nothing shows that they are as good.
    """
    sizes = {label: cost_of(dataset.rows[label]).parameters for label in (leader, *found.equal)}
    known = {label: size for label, size in sizes.items() if size is not None}
    small = min(known, key=lambda label: known[label], default=leader)
    best, others = isolated(leader), ", ".join(map(isolated, found.equal[:NAMED]))
    others += " and others" if len(found.equal) > NAMED else ""
    reason = f"The interval of the difference from {best} lies within ±{EQUAL:.0f} points for {others}."
    if small != leader and leader in known and known[small] < 0.9 * known[leader]:
        name, size, larger = isolated(small), short_count(known[small]), short_count(known[leader])
        return Advice(
            f"Take {name}, the smallest of the methods that are as good.",
            f"{reason} {name} has {size} parameters, {best} {larger}.",
            method=small,
        )
    return Advice(f"Take {best}, or another of the methods that are as good.", reason)
