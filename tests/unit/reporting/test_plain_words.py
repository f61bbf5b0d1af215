"""The headline and the advice: what they say follows from the numbers, and never claims more than they show."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from ltds.core.runs import RunDirectory
from ltds.evaluation.table import PredictionTable
from ltds.reporting.answer import answer
from ltds.reporting.collection import collect
from ltds.reporting.dataset import Dataset
from ltds.reporting.domain_accuracy import domain_rows, source_accuracy
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.formats.html.mistakes import NO_PICTURES, mistakes_views
from ltds.reporting.formats.html.page import _chosen
from ltds.reporting.headline import headline
from ltds.reporting.recommendation import recommendations
from ltds.reporting.unseen_scores import known_answers, mean_confidence, open_answers


def set_pairs(path: Path, accuracy: list[list[float]], images: list[list[int]]) -> None:
    run = RunDirectory(path)
    metrics = run.read_metrics()
    metrics["pairs"] |= {"accuracy": accuracy, "images": images}
    run.write_metrics(metrics)


def context_of(runs: Path) -> FigureContext:
    dataset = collect([runs]).datasets[0]
    return FigureContext(dataset, answer(dataset).leader)


def advice(runs: Path) -> dict[str, str]:
    context = context_of(runs)
    return {one.action: one.reason for one in recommendations(context, answer(context.dataset))}


def store_predictions(path: Path, logits: np.ndarray, labels: np.ndarray, domains: np.ndarray) -> None:
    table = PredictionTable(logits.astype(np.float32), labels, domains, np.arange(len(labels)))
    table.save(RunDirectory(path).predictions_file("test"))


def set_threshold(path: Path, images: int | None = None) -> None:
    metrics = RunDirectory(path).read_metrics()
    metrics["choices"]["h_fixed"] |= {"threshold": 0.2, "temperature": 1.0}
    if images is not None:
        metrics["choices"]["h_fixed"]["images"] = images
    RunDirectory(path).write_metrics(metrics)


def test_one_domain_one_seed(make_run, runs: Path) -> None:
    path = make_run("agg", "photo", acc_u=0.6)
    set_pairs(path, [[0.6] * 8, [0.9] * 8, [0.7] * 8], [[50] * 8] * 3)
    said = headline(context_of(runs))
    assert said.main == (
        "On photo, a domain that it has never seen, the model (agg) is right for 60 of 100 images (400 test images; "
        "one seed)."
    )
    assert said.more == (
        "On the domains that it was trained on, it is right for 80 of 100, 20 points more than on a new domain.",
    )


def test_too_few_images_come_first(make_run, runs: Path) -> None:
    path = make_run("agg", "photo", acc_u=0.5)
    set_pairs(path, [[0.5] * 8, [0.6] * 8, [0.6] * 8], [[2] * 8, [50] * 8, [50] * 8])
    assert "(16 test images: too few to rely on it; one seed)" in headline(context_of(runs)).main
    first, *_ = advice(runs).items()
    assert first[0] == "Test on more images before you decide anything."
    assert "rests on 16 images: chance alone moves it by about 22 points" in first[1]


def test_one_seed_is_never_called_a_winner(make_run, runs: Path) -> None:
    make_run("agg", acc_u=0.2)
    make_run("dc", acc_u=0.9)
    said = advice(runs)
    assert "Take dc for now, and train it and agg with three or more seeds." in said
    assert not any(action.startswith("Use ") for action in said)


@pytest.mark.parametrize(("first", "shared"), [(1, "one seed"), (2, "no run")])
def test_methods_that_share_too_little_for_a_test_need_the_same_seeds(make_run, runs: Path, first, shared) -> None:
    for seed in (0, 1):
        make_run("agg", seed=seed, acc_u=0.5)
        make_run("dc", seed=seed + first, acc_u=0.6)
    assert advice(runs)["Take dc for now, and train it and agg with the same two or more seeds."] == (
        f"It has the highest number, but the two share {shared}: nothing could be tested."
    )


def test_too_few_pairs_are_not_called_equal(make_run, runs: Path) -> None:
    for seed in (0, 1, 2):
        make_run("agg", seed=seed, acc_u=0.5, parameters=10)
        make_run("dc", seed=seed, acc_u=0.6, parameters=10_000)
    said = advice(runs)
    assert (
        "too few paired runs to be sure that it beats agg"
        in said["Take dc for now, and add seeds or held-out domains."]
    )


def grid(make_run, better: float, parameters: int) -> None:
    """Ten seeds; dc is better by `better` on average, agg has 1000 parameters."""
    noise = np.random.default_rng(0).normal(0, 0.01, 10)
    for seed in range(10):
        make_run("agg", seed=seed, acc_u=0.5, parameters=1000)
        make_run("dc", seed=seed, acc_u=0.5 + better + noise[seed] - noise.mean(), parameters=parameters)


def test_enough_pairs_decide(make_run, runs: Path) -> None:
    grid(make_run, 0.1, 2000)
    assert advice(runs)["Use dc."] == "Over paired runs it is better than every other method here."


def test_of_equals_the_smaller_is_advised(make_run, runs: Path) -> None:
    grid(make_run, 0.0005, 2000)
    reason = advice(runs)["Take agg, the smallest of the methods that are as good."]
    assert reason == (
        "The interval of the difference from dc lies within ±2 points for agg. agg has 1.00 k parameters, dc 2.00 k."
    )


@pytest.mark.parametrize("gains", [(0.17, 0.08, -0.015), (0.05, 0.03, -0.06)])
def test_a_wide_interval_is_no_sign_of_equality(make_run, runs: Path, gains: tuple[float, ...]) -> None:
    """12 pairs could show a difference, but the domains disagree: the smaller method may be as good, or far worse."""
    noise = np.random.default_rng(3).normal(0, 0.005, (3, 4))
    for (place, held_out), seed in itertools.product(enumerate(("photo", "sketch", "art_&_co")), range(4)):
        make_run("agg", held_out, seed, 0.5, parameters=700)
        make_run("daml", held_out, seed, 0.5 + gains[place] + noise[place, seed], parameters=2800)
    dataset = context_of(runs).dataset
    found = answer(dataset)
    assert (found.leader, found.tested, found.equal) == ("daml", ("agg",), ())
    d = found.against["agg"].paired
    assert d.low is not None
    assert d.high is not None
    assert advice(runs)["Take daml for now, and add held-out domains or seeds."] == (
        f"The runs cannot tell whether daml is better than agg: the difference is {d.mean:.1f} points "
        f"[{d.low:.1f}, {d.high:.1f}]."
    )


def test_a_method_with_few_pairs_is_never_as_good(make_run, runs: Path) -> None:
    """bsce has the smallest network and is 30 points below; its two seeds cannot show that."""
    grid(make_run, 0.0005, 2000)
    for seed in (0, 1):
        make_run("bsce", seed=seed, acc_u=0.2, parameters=10)
    said = advice(runs)
    assert said["Take agg, the smallest of the methods that are as good."] == (
        "The interval of the difference from dc lies within ±2 points for agg. agg has 1.00 k parameters, dc 2.00 k."
    )


def test_a_beaten_runner_up_does_not_decide_about_others(make_run, runs: Path) -> None:
    grid(make_run, 0.1, 2000)
    for seed in (0, 1):
        make_run("bsce", seed=seed, acc_u=0.2, parameters=10)
    assert advice(runs)["Take dc for now, and add seeds or held-out domains."].endswith("sure that it beats bsce.")


def test_a_leader_that_loses_over_shared_runs_is_not_advised(make_run, runs: Path) -> None:
    for seed in range(12):
        make_run("agg", seed=seed, acc_u=0.53 + 0.003 * seed if seed < 8 else 0.30)
        if seed < 8:
            make_run("dc", seed=seed, acc_u=0.50 + 0.002 * seed)
    said = advice(runs)
    assert said["Train dc and agg with the same seeds and held-out domains before you choose one."] == (
        "dc has the highest number, but over the runs that both have, agg is better."
    )
    assert not any(action.startswith(("Take ", "Use ")) for action in said)


def alternating(make_run, method: str, acc_u: float, seeds: int = 6) -> None:
    """One held-out domain for each seed, in turn: no average."""
    for seed in range(seeds):
        make_run(method, ("photo", "sketch")[seed % 2], seed, acc_u + 0.002 * seed)


def complete(make_run, method: str, acc_u: float, seeds: int = 6) -> None:
    for held_out, seed in itertools.product(("photo", "sketch"), range(seeds)):
        make_run(method, held_out, seed, acc_u + 0.001 * seed)


def test_a_method_without_an_average_may_be_better(make_run, runs: Path) -> None:
    """bsce has no seed with both domains, but wins all runs that it shares: ltds is not better than every other."""
    complete(make_run, "agg", 0.5)
    complete(make_run, "ltds", 0.6007)
    alternating(make_run, "bsce", 0.8)
    found = answer(context_of(runs).dataset)
    assert (found.leader, found.beaten, found.undecided, found.unaveraged) == ("ltds", ("agg",), ("bsce",), ("bsce",))
    assert found.certainty.endswith(
        "no significant difference from bsce: it won 0 of 6 pairs (difference -20.2 [-20.8, -19.5], p = 0.062). "
        "(p corrected by Holm's method over 3 pairs of methods.) No Acc-U on average over 2 held-out domains for bsce: "
        "compared over shared runs only."
    )
    said = advice(runs)
    assert said["Train bsce with every held-out domain, with the seeds of ltds, before you choose one."] == (
        "bsce has no seed with every held-out domain, so it has no average; over 6 shared runs, ltds minus bsce is "
        "-20.2 points [-20.8, -19.5]."
    )
    assert not any(action.startswith("Use ") for action in said)
    assert "the best of 2 methods with this number (ltds)" in headline(context_of(runs)).main


def test_a_method_without_an_average_that_is_better(make_run, runs: Path) -> None:
    complete(make_run, "ltds", 0.6, seeds=8)
    alternating(make_run, "bsce", 0.8, seeds=8)
    found = answer(context_of(runs).dataset)
    assert (found.leader, found.beaten_by, found.undecided) == ("ltds", ("bsce",), ())
    assert "its higher mean" not in found.certainty  # bsce has none
    assert "Train ltds and bsce with the same seeds and held-out domains before you choose one." in advice(runs)
    assert "the only method with this number (ltds)" in headline(context_of(runs)).main


def test_a_method_without_an_average_that_is_beaten(make_run, runs: Path) -> None:
    complete(make_run, "ltds", 0.6, seeds=8)
    alternating(make_run, "bsce", 0.4, seeds=8)
    assert answer(context_of(runs).dataset).beaten == ("bsce",)
    assert advice(runs)["Use ltds."] == "Over paired runs it is better than every other method here."


def test_a_method_that_shares_no_run(make_run, runs: Path) -> None:
    complete(make_run, "ltds", 0.6, seeds=3)
    make_run("bsce", "photo", 7, 0.9)
    make_run("bsce", "sketch", 8, 0.9)
    assert answer(context_of(runs).dataset).certainty == (
        "No Acc-U on average over 2 held-out domains, and no shared runs, for bsce: not compared."
    )
    assert "Complete the runs." in advice(runs)
    complete(make_run, "agg", 0.5, seeds=3)
    assert advice(runs)[
        "Train bsce with every held-out domain, with the seeds of ltds, before you choose one."
    ].endswith("it has no average; it shares no runs with ltds.")


def test_no_seed_with_every_held_out_domain(make_run, runs: Path) -> None:
    """There are valid results, but no average: no word of missing test images, nor of holding out a domain."""
    make_run("agg", "photo", 0, 0.5)
    make_run("agg", "sketch", 1, 0.6)
    said = headline(context_of(runs))
    assert said.main == "No method has every held-out domain with one seed, so there is no average over domains yet."
    assert advice(runs) == {
        "Complete the runs: train every method with every held-out domain, with the same seeds.": (
            "No row has a seed with every held-out domain; the tables show the values that exist."
        )
    }


def test_held_out_domains_without_test_images(make_run, runs: Path) -> None:
    make_run("agg", "photo", acc_u=None)
    assert headline(context_of(runs)).more == (
        "How well it works on a domain that it has never seen is not known: there are no test images of it.",
    )
    assert advice(runs) == {
        "Test on images of every held-out domain.": "There are no test images of known classes in some held-out domain."
    }


def test_seen_and_never_seen_are_those_of_the_same_runs(make_run, runs: Path) -> None:
    """Only seed 0 has both domains: 90 with photo held out and 50 with sketch, so 70, not the mean over six runs."""
    for seed in range(5):
        path = make_run("agg", "photo", seed, 0.6)
        set_pairs(path, [[0.6] * 8, [0.9] * 8, [0.9] * 8], [[50] * 8] * 3)
    path = make_run("agg", "sketch", 0, 0.6)
    set_pairs(path, [[0.5] * 8, [0.6] * 8, [0.5] * 8], [[50] * 8] * 3)
    path = make_run("agg", None, 0, acc_u=None)  # nothing was held out: no part of the average
    set_pairs(path, [[0.1] * 8] * 3, [[50] * 8] * 3)
    context = context_of(runs)
    assert source_accuracy(context.dataset, "agg") == pytest.approx(70)
    assert headline(context).more[1] == (
        "On the domains that it was trained on, it is right for 70 of 100, 10 points more than on a new domain."
    )
    *_, art = domain_rows(context.dataset, ["agg"])
    assert art.trained_on[0].mean == pytest.approx((90 + 50 + 10) / 3), "each held-out domain counts once"


def test_what_to_collect(make_run, runs: Path) -> None:
    summary = {"many": 0.9, "few": 0.3, "seen_pairs": 0.9, "unseen_pairs_sources": 0.5}
    path = make_run("agg", "photo", acc_u=0.4, summary=summary)
    set_pairs(path, [[0.4] * 8, [0.9] * 8, [0.9] * 8], [[50] * 8] * 3)
    said = advice(runs)
    domains = said["Collect images from more domains, above all from where the model will be used."]
    assert domains == "On a new domain it is right for 40 of 100 images instead of 90."
    rare = said["Collect more images of the rare classes."]
    assert rare.startswith(
        "With fewer than 20 training images it is right for 30 of 100 images, otherwise for up to 90."
    )
    assert "_under" in rare  # the last class has the lowest accuracy
    missing = said["Collect the classes that are missing in some domains."]
    # sketch 90 0 40 10 0 5 1 0 and art 70 50 0 12 6 0 3 2
    assert missing.endswith(
        "Training images from one domain only: bee, <script>alert(1)</script>, $x_1$, 🦊 and 1 more."
    )
    assert "Train a second method, such as bsce." in said


def test_small_gaps_give_no_advice(make_run, runs: Path) -> None:
    path = make_run("agg", "photo", acc_u=0.85, summary={"many": 0.9, "few": 0.85, "medium": 0.9, "ece": 0.01})
    set_pairs(path, [[0.85] * 8, [0.9] * 8, [0.9] * 8], [[50] * 8] * 3)
    assert list(advice(runs)) == ["Train a second method, such as bsce."]


def test_unknown_and_confidence_are_those_of_the_stored_predictions(make_run, runs: Path) -> None:
    """art held out: class 7 is open. Of 40 open images, 30 are below the threshold of 0.2, and 15 of 60 known ones."""
    path = make_run("agg", "art_&_co", acc_u=0.5)
    set_threshold(path)
    labels = np.array([0] * 60 + [7] * 40)
    logits = np.zeros((100, 8))
    logits[:45, 0], logits[45:60, 1] = 9.0, 0.1  # 45 right and sure, 15 wrong and unsure
    logits[60:90, 2], logits[90:, 2] = 0.1, 9.0
    store_predictions(path, logits, labels, np.full(100, 2))
    context = context_of(runs)
    known, opened = known_answers(context.dataset, "agg"), open_answers(context.dataset, "agg")
    assert known is not None
    assert opened is not None
    assert (opened.called_unknown, opened.sample.images, opened.sample.open_classes) == (75, 40, 1)
    assert (known.called_unknown, known.named_right) == (25, 75)
    assert opened.sample.too_few  # 40 images: ± 13 points
    first, *_, last = headline(context).more
    assert first == (
        "This is before it may say 'unknown'. As it is used, it says so, wrongly, to 25 of 100 images of classes that "
        "it knows, and names 75 right (on art_&_co)."
    )
    assert last == (
        "Shown 40 images of 1 class that it does not know, it says 'unknown' to 75 of 100 (on art_&_co). These are too "
        "few images to rely on it. Other new classes may fare differently."
    )
    # 45 of 60 at 100 %, 15 at 14 %: it claims 78 % and is right for 75 %
    assert "Do not read its confidence as a probability." not in advice(runs)
    (view,) = mistakes_views(context)
    assert (view.images, view.wrong, view.note) == (60, 15, NO_PICTURES)
    assert [(p.truth, p.predicted, p.count, p.images) for p in view.pairs] == [("ant", "bee", 15, 60)]


def test_unknown_and_confidence_are_those_of_acc_u(make_run, runs: Path) -> None:
    """Images of the sources are all right and sure; of those of the held-out domain, one in `seed + 2` is.

    Class 7 is open where art is held out: of its 120 images in art the model is sure, those in sketch are all flagged.
    """
    for (held_out, place), seed in itertools.product((("photo", 0), ("art_&_co", 2)), range(2)):
        path = make_run("agg", held_out, seed, 0.5)
        set_threshold(path)
        labels, domains = np.tile([0, 7], 240), np.repeat([place, place, 1, 1], 120)
        sure = (domains != place) | (np.arange(480) // 2 % (seed + 2) == 0)
        sure = np.where(labels == 7, domains == place, sure)
        logits = np.zeros((480, 8))
        logits[sure, 0], logits[~sure, 1] = 9.0, 0.1
        store_predictions(path, logits, labels, domains)
    make_run("agg", "photo", 2, 0.9)  # no part of the average: art is missing with this seed
    context = context_of(runs)
    opened, known = open_answers(context.dataset, "agg"), known_answers(context.dataset, "agg")
    assert opened is not None
    assert known is not None
    assert (opened.called_unknown, opened.sample.images) == (0, 120)
    in_art = (1 / 2 + 2 / 3) / 2
    assert known.called_unknown == pytest.approx(100 * (in_art + in_art / 2) / 2), (
        "class 7, half of photo, is known there"
    )
    assert known.where == "on domains that it has never seen", "photo has no open images, but known ones"
    assert "to 0 of 100 (on art_&_co, in 2 of 4 runs)." in headline(context).more[-1]
    assert advice(runs)["Do not rely on it to notice unknown classes."].endswith("(on art_&_co, in 2 of 4 runs).")
    found = mean_confidence(context.dataset, "agg")
    assert found is not None
    assert found.where == "on domains that it has never seen"


@pytest.mark.parametrize("held_out", ["photo", None])
@pytest.mark.parametrize(("images", "said"), [(None, ""), (30, ""), (2, "chosen on 2 validation images")])
def test_how_often_it_refuses_what_it_knows_needs_no_open_images(
    make_run, runs: Path, held_out: str | None, images: int | None, said: str
) -> None:
    """Of 100 images it names 80 right, 30 of which are below the threshold, as are 10 of the wrong ones."""
    path = make_run("agg", held_out, acc_u=0.8 if held_out else None)
    set_threshold(path, images)
    labels = np.zeros(100, dtype=np.int64)
    logits = np.zeros((100, 8))
    logits[:50, 0], logits[50:80, 0] = 9.0, 0.1
    logits[80:90, 1], logits[90:, 1] = 9.0, 0.1
    store_predictions(path, logits, labels, np.zeros(100, dtype=np.int64))
    context = context_of(runs)
    assert open_answers(context.dataset, "agg") is None
    first, *rest = headline(context).more
    assert "says so, wrongly, to 40 of 100 images of classes that it knows, and names 50 right" in first
    assert f"(on {held_out or 'all domains'})." in first
    assert ("guess" in first) == bool(said)
    assert said in first
    assert not any(sentence.startswith("Shown") for sentence in rest)


LOWER = "Look for a lower threshold for 'unknown', on labelled images from where the model will be used."


@pytest.mark.parametrize(
    ("refused", "opened_noticed", "said"), [(30, None, True), (5, None, False), (30, 60, True), (30, 10, False)]
)
def test_right_answers_that_it_keeps_to_itself(
    make_run, runs: Path, refused: int, opened_noticed: int | None, said: bool
) -> None:
    """Of 100 known images 80 are right, and so many of these refused. Not said if it overlooks most open images."""
    path = make_run("agg", "art_&_co", acc_u=0.8)
    set_threshold(path)
    logits, labels = np.zeros((200, 8)), np.array([0] * 100 + [7] * 100)
    logits[:80, 0], logits[:refused, 0], logits[80:100, 1] = 9.0, 0.1, 9.0
    logits[100:, 2] = 9.0
    logits[100 : 100 + (opened_noticed or 0), 2] = 0.1
    kept = slice(None) if opened_noticed is not None else slice(0, 100)
    store_predictions(path, logits[kept], labels[kept], np.full(len(labels[kept]), 2))
    reason = advice(runs).get(LOWER)
    assert (reason is not None) == said
    if reason:
        assert "first for 80 of 100 images, but only 50 are named right" in reason


def test_the_page_says_on_how_many_images_thresholds_were_chosen(make_run, runs: Path) -> None:
    for seed, images in enumerate((None, 14, 1200)):
        set_threshold(make_run("agg", seed=seed), images)
    (text,) = {text for text in _chosen(collect([runs]).runs, "h_fixed") if "images" in text}
    assert text.startswith("Chosen on the val split (14 to 1,200 correctly classified images): ")
    assert _chosen(collect([runs]).runs, "model") == ["Chosen on the val split: best mean validation accuracy."]


def test_without_known_images_nothing_is_said_of_them(make_run, runs: Path) -> None:
    path = make_run("agg", "art_&_co", acc_u=0.5)
    set_threshold(path)
    store_predictions(path, np.zeros((50, 8)), np.full(50, 7), np.full(50, 2))
    dataset = context_of(runs).dataset
    assert known_answers(dataset, "agg") is None
    opened = open_answers(dataset, "agg")
    assert opened is not None
    assert opened.called_unknown == 100


@pytest.mark.parametrize(("few", "images", "said"), [(0.52, 60, True), (0.36, 60, False), (0.52, 3, False)])
def test_rare_classes_that_are_often_called_unknown(make_run, runs: Path, few: float, images: int, said: bool) -> None:
    """Said where the difference is large, and both numbers rest on enough images."""
    shares = {"known_called_unknown_many": 0.28, "known_called_unknown_medium": 0.3, "known_called_unknown_few": few}
    path = make_run("agg", "photo", acc_u=0.6, summary=shares)
    set_pairs(path, [[0.6] * 8] * 3, [[images] * 8] * 3)
    reason = advice(runs).get("Look at the images that it calls 'unknown': many are of rare classes.")
    assert (reason is not None) == said
    if reason:
        assert "wrongly, to 52 of 100 images of classes with fewer than 20 training images" in reason
        assert "to as few as 28." in reason


def test_confidence_is_that_of_the_held_out_domain(make_run, runs: Path) -> None:
    """On photo it is right for half of the images, and always sure; sketch, which it was trained on, hides that."""
    path = make_run("agg", "photo", acc_u=0.5)
    labels, domains = np.tile([0, 1], 300), np.repeat([0, 1, 1, 1, 1, 1], 100)
    logits = np.zeros((600, 8))
    logits[np.arange(600), np.where(domains == 0, 0, labels)] = 20.0
    store_predictions(path, logits, labels, domains)
    assert advice(runs)["Do not read its confidence as a probability."] == (
        "Its mean confidence is 100 %, but it is right for 50 % of the test images (on photo)."
    )
    set_pairs(path, [[0.5] * 8] * 3, [[2] * 8, [50] * 8, [50] * 8])
    assert "Do not read its confidence as a probability." not in advice(runs)  # 16 images are too few


def test_without_a_held_out_domain(make_run, runs: Path) -> None:
    make_run("agg", None, acc_u=None)
    said = headline(context_of(runs))
    assert said.main.startswith("On test images of all domains, the model (agg) is right for 50 of 100")
    assert "hold one out" in said.more[0]
    assert "Hold out a domain." in advice(runs)


def test_accuracy_in_each_domain(make_run, runs: Path) -> None:
    for held_out in ("photo", "sketch"):
        path = make_run("agg", held_out, acc_u=0.5)
        set_pairs(path, [[0.5] * 8, [0.25] * 8, [1.0] * 4 + [0.0] * 4], [[50] * 8, [50] * 8, [10] * 4 + [30] * 4])
    dataset: Dataset = collect([runs]).datasets[0]
    photo, sketch, art = domain_rows(dataset, ["agg"])
    assert [(row.domain, row.images) for row in (photo, sketch, art)] == [
        ("photo", 400),
        ("sketch", 400),
        ("art_&_co", 160),
    ]
    assert (photo.never_seen[0].mean, photo.trained_on[0].mean) == pytest.approx((50, 50))
    assert (art.never_seen[0].mean, art.trained_on[0].mean) == (None, pytest.approx(25))
    assert source_accuracy(dataset, "agg") == pytest.approx((25 + 25 + 50 + 25) / 4)


def runs_by_rare(make_run, rare: dict[str, float], seeds: dict[str, tuple[int, ...]], images: int = 50) -> None:
    """Own domains have long tails: Acc-U counts frequent classes most, Macro-U all classes the same."""
    for method, acc_u in (("dc", 0.62), ("bsce", 0.60)):
        for seed in seeds[method]:
            path = make_run(method, "photo", seed, acc_u=acc_u)
            row = [0.8, 0.7, 0.6, 0.5] + [rare[method] + seed / 100] * 4
            set_pairs(path, [row] * 3, [[50] * 4 + [images] * 4] * 3)


@pytest.mark.parametrize(("rare", "said"), [(0.30, "bsce is ahead by 9 points (Macro-U, over the runs"), (0.14, "")])
def test_a_leader_by_images_that_is_behind_by_classes_is_named_as_such(
    make_run, runs: Path, rare: float, said: str
) -> None:
    runs_by_rare(make_run, {"dc": 0.12, "bsce": rare}, {"dc": (0, 1, 2), "bsce": (0, 1, 2)})
    (reason,) = (why for what, why in advice(runs).items() if what.startswith("Take dc"))
    assert (" But if each class counts the same, instead of each image, " in reason) == bool(said)
    assert said in reason


@pytest.mark.parametrize(
    ("seeds", "images"),
    [((3,), 50), ((0,), 50), ((0, 1, 2), 1)],
    ids=["no shared run", "one shared seed", "few images of rare classes"],
)
def test_a_lead_by_classes_that_may_be_chance_is_not_advised(
    make_run, runs: Path, seeds: tuple[int, ...], images: int
) -> None:
    runs_by_rare(make_run, {"dc": 0.12, "bsce": 0.30}, {"dc": (0, 1, 2), "bsce": seeds}, images)
    (reason,) = (why for what, why in advice(runs).items() if what.startswith("Take dc"))
    assert "each class counts the same" not in reason
