"""Slow twins of ltds.evaluation (docs/metrics.md) with Python loops, sharing no code with src."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def softmax(row):
    top = max(row)
    powers = [math.exp(z - top) for z in row]
    return [p / sum(powers) for p in powers]


def first_argmax(row):
    best = 0
    for c in range(len(row)):
        if row[c] > row[best]:
            best = c
    return best


def share(flags):
    flags = list(flags)
    return sum(1 for f in flags if f) / len(flags) if flags else None


def average(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


def known_and_open_rates(probabilities, labels, open_classes, threshold):
    known, opened = [], []
    for row, label in zip(probabilities, labels, strict=True):
        predicted = first_argmax(row)
        flagged = max(row) < threshold or predicted in open_classes
        if label in open_classes:
            opened.append(flagged)
        else:
            known.append(not flagged and predicted == label)
    return share(known), share(opened)


def h_score(a, b):
    if a is None or b is None:
        return None
    return 0.0 if a == 0 and b == 0 else 2 * a * b / (a + b)


def daml_grid(probabilities):
    scores = [max(row) for row in probabilities]
    return even(min(scores), max(scores))


def released_grid(probabilities):
    return even(min(min(row) for row in probabilities), max(max(row) for row in probabilities))


def even(lowest, highest):
    # The last one is the highest itself: lo + (hi - lo) may round above every score.
    return [lowest + (highest - lowest) * i / 9 for i in range(9)] + [highest]


def best_h(probabilities, labels, open_classes, grid):
    rows = [h_score(*known_and_open_rates(probabilities, labels, open_classes, t)) for t in grid]
    return None if not rows or rows[0] is None else max(rows)


def auroc(known_scores, open_scores):
    if not known_scores or not open_scores:
        return None
    wins = sum(1.0 if k > o else 0.5 if k == o else 0.0 for k in known_scores for o in open_scores)
    return wins / (len(known_scores) * len(open_scores))


def oscr(known_scores, known_correct, open_scores):
    if not known_scores or not open_scores:
        return None
    points = [(0.0, 0.0)]
    for t in sorted({*known_scores, *open_scores}, reverse=True):
        y = sum(1 for s, right in zip(known_scores, known_correct, strict=True) if right and s >= t)
        x = sum(1 for s in open_scores if s >= t)
        points.append((x / len(open_scores), y / len(known_scores)))
    return sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in itertools.pairwise(points))


def calibration_error(confidence, correct, bins=15):
    if not confidence:
        return None
    total = 0.0
    for i in range(bins):
        inside = [j for j, c in enumerate(confidence) if i / bins < c <= (i + 1) / bins]
        if inside:
            gap = average([float(correct[j]) for j in inside]) - average([confidence[j] for j in inside])
            total += len(inside) / len(confidence) * abs(gap)
    return total


def percentile(values, percent):
    """Linear interpolation between the order statistics."""
    ordered = sorted(values)
    rank = percent / 100 * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


def spread(values):
    """The standard deviation of all of these values, none of them left out."""
    middle = sum(values) / len(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / len(values))


def balanced_threshold(right, unknown, caution, fewest):
    """The lowest score where caution x the share of `right` below it is nearest to the share of `unknown` not below.

    At least the percentile `fewest` of `right`, and just that without any `unknown`.
    """
    if not unknown:
        return percentile(right, fewest)
    best, threshold = math.inf, None
    for t in sorted({*right, *unknown}):
        rejected = Fraction(sum(s < t for s in right), len(right))
        accepted = Fraction(sum(s >= t for s in unknown), len(unknown))
        gap = abs(caution * rejected - accepted)
        if gap < best:
            best, threshold = gap, t
    return max(threshold, percentile(right, fewest))


def class_mean_accuracy(predicted, labels, classes):
    return average(share(p == y for p, y in zip(predicted, labels, strict=True) if y == c) for c in classes)


def max_or_none(values):
    numbers = [value for value in values if value is not None]
    return max(numbers) if numbers else None


def summary(logits, labels, domains, val_logits, val_labels, val_domains, counts, held_out, n_domains):
    """The summary of metrics.json. counts: {(domain, class): training images}; held_out: domain index or None."""
    n_classes = len(logits[0])
    trained = [sum(counts.get((d, c), 0) for d in range(n_domains) if d != held_out) for c in range(n_classes)]
    opened = {c for c in range(n_classes) if trained[c] == 0}
    sources = [d for d in range(n_domains) if d != held_out]
    probabilities = [softmax(row) for row in logits]
    n = range(len(labels))
    predicted = [first_argmax(row) for row in probabilities]
    right = [predicted[i] == labels[i] for i in n]
    known = [i for i in n if labels[i] not in opened]

    def seen(i):
        return domains[i] in sources and counts.get((domains[i], labels[i]), 0) > 0

    def shot(lowest, highest):
        group = [c for c in range(n_classes) if lowest <= trained[c] <= highest]
        return class_mean_accuracy([predicted[i] for i in known], [labels[i] for i in known], group)

    val_probabilities = [softmax(row) for row in val_logits]
    val_right = [
        max(p)
        for p, y, d in zip(val_probabilities, val_labels, val_domains, strict=True)
        if d in sources and y not in opened and first_argmax(p) == y
    ]
    softmax_threshold = percentile(val_right, 5) if val_right else None
    columns = [c for c in range(n_classes) if c not in opened]

    used = [i for i in range(len(val_labels)) if val_domains[i] in sources and val_labels[i] not in opened]
    spreads = [spread([row[c] for c in columns]) for row in ([val_logits[i] for i in used] or logits) if columns]
    temperature = average(spreads) / 4 if spreads and average(spreads) > 0 else 1.0

    def known_answer(row, struck_out=None):
        """The best known class and its softmax value at the temperature; one class may be struck out."""
        left = [c for c in columns if c != struck_out]
        if not left:
            return None, 0.0
        values = softmax([row[c] / temperature for c in left])
        return left[first_argmax(values)], max(values)

    accepted = [known_answer(val_logits[i])[1] for i in used if known_answer(val_logits[i])[0] == val_labels[i]]
    unknown = [known_answer(val_logits[i], val_labels[i])[1] for i in used if len(columns) > 2]  # one left: always 1
    threshold = balanced_threshold(accepted, unknown, 2, 8) if accepted else None

    def known_h(chosen, t):
        """H when an image is unknown if the softened confidence in its best known class is below t."""
        answers = [known_answer(logits[i]) for i in chosen]
        kept = [score >= t and best == labels[i] for i, (best, score) in zip(chosen, answers, strict=True)]
        known_here = [ok for i, ok in zip(chosen, kept, strict=True) if labels[i] not in opened]
        rejected = [score < t for i, (_, score) in zip(chosen, answers, strict=True) if labels[i] in opened]
        return h_score(share(known_here), share(rejected)) if known_here and rejected else None

    def open_numbers(chosen):
        p = [probabilities[i] for i in chosen]
        y = [labels[i] for i in chosen]
        known_here = [i for i in chosen if labels[i] not in opened]
        known_scores = [max(probabilities[i]) for i in known_here]
        open_scores = [max(probabilities[i]) for i in chosen if labels[i] in opened]
        return {
            "oracle": best_h(p, y, opened, daml_grid(p)) if p else None,
            "fixed": None if threshold is None else known_h(chosen, threshold),
            "best": max_or_none(known_h(chosen, t) for t in [*(known_answer(logits[i])[1] for i in chosen), math.inf]),
            "softmax5": None
            if softmax_threshold is None
            else h_score(*known_and_open_rates(p, y, opened, softmax_threshold)),
            "auroc": auroc(known_scores, open_scores),
            "oscr": oscr(known_scores, [right[i] for i in known_here], open_scores),
        }

    def answers(chosen):
        """The answers of the model as it is used: (label, "unknown" or a class); none without a threshold."""
        given = [] if threshold is None else [(labels[i], known_answer(logits[i])) for i in chosen]
        return [(label, "unknown" if score < threshold else best) for label, (best, score) in given]

    def answer_shares(chosen):
        of_known = [(label, answer) for label, answer in answers(chosen) if label not in opened]
        return {
            "known_called_unknown": share(answer == "unknown" for _, answer in of_known),
            "named_right": share(answer == label for label, answer in of_known),
            "open_called_unknown": share(answer == "unknown" for label, answer in answers(chosen) if label in opened),
        }

    def shares_by_shot():
        for name, lowest, highest in (("many", 101, math.inf), ("medium", 20, 100), ("few", 1, 19)):
            group = [c for c in columns if lowest <= trained[c] <= highest]
            of_class = [answer_shares([i for i in n if labels[i] == c]) for c in group]
            for key in ("known_called_unknown", "named_right"):
                yield f"{key}_{name}", average(shares[key] for shares in of_class)

    overall, unseen = open_numbers(list(n)), open_numbers([i for i in n if domains[i] == held_out])
    return {
        **answer_shares(n),
        **{f"{key}_u": value for key, value in answer_shares([i for i in n if domains[i] == held_out]).items()},
        **dict(shares_by_shot()),
        "acc_u": share(right[i] for i in known if domains[i] == held_out),
        "acc": average(share(right[i] for i in known if domains[i] == d) for d in range(n_domains)),
        "h_oracle": overall["oracle"],
        "h_fixed": overall["fixed"],
        "h_best": overall["best"],
        "h_softmax5": overall["softmax5"],
        "h_u_best": unseen["best"],
        "h_u_softmax5": unseen["softmax5"],
        "h_u_oracle": unseen["oracle"],
        "h_u_fixed": unseen["fixed"],
        "h_released": best_h(probabilities, labels, opened, released_grid(probabilities)),
        "auroc": overall["auroc"],
        "oscr": overall["oscr"],
        "auroc_u": unseen["auroc"],
        "oscr_u": unseen["oscr"],
        "many": shot(101, math.inf),
        "medium": shot(20, 100),
        "few": shot(1, 19),
        "seen_pairs": share(right[i] for i in known if seen(i)),
        "unseen_pairs": share(right[i] for i in known if not seen(i)),
        "unseen_pairs_sources": share(right[i] for i in known if not seen(i) and domains[i] != held_out),
        "macro_accuracy": shot(1, math.inf),
        "accuracy": share(right[i] for i in known),
        "ece": calibration_error([max(probabilities[i]) for i in known], [right[i] for i in known]),
    }
