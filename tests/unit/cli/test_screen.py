"""Progress bars: one display on the terminal, whatever runs inside what."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from rich.progress import Progress as RichProgress

import ltds
from ltds.cli.screen import Screen, name_unread
from ltds.data.manifest import Manifest


@pytest.fixture
def displays(monkeypatch: pytest.MonkeyPatch) -> list[RichProgress]:
    """Every display of bars that the screen opens."""
    opened: list[RichProgress] = []

    class Recorded(RichProgress):
        def start(self) -> None:
            opened.append(self)
            super().start()

    monkeypatch.setattr("rich.progress.Progress", Recorded)
    monkeypatch.setattr(ltds.Bars, "drawn", True)  # as on a terminal
    return opened


def test_a_bar_inside_another_is_a_line_below_it_until_it_is_done(displays: list[RichProgress]) -> None:
    bars = Screen()
    with bars.track("Training", 10) as advance:
        advance(4)
        with bars.track("Estimating BatchNorm", 3) as advance_inner:
            advance_inner(2)
            (display,) = displays
            assert [(task.description, task.completed) for task in display.tasks] == [
                ("Training", 4),
                ("Estimating BatchNorm", 2),
            ]
        advance(6)
    assert [(task.description, task.completed) for task in display.tasks] == [("Training", 10)]


def test_a_bar_after_another_has_its_own_display(displays: list[RichProgress]) -> None:
    bars = Screen()
    with pytest.raises(KeyboardInterrupt), bars.track("Training", 10):
        raise KeyboardInterrupt
    with bars.track("Predicting", 5) as advance:
        advance(5)
    assert [task.description for display in displays for task in display.tasks] == ["Training", "Predicting"]


def test_bars_for_python(displays: list[RichProgress], toy: Manifest) -> None:
    ltds.check(toy, progress=ltds.Bars())
    tasks = [task for display in displays for task in display.tasks]
    assert {task.description for task in tasks} == {"Looking at images", "Probing"}
    assert all(task.completed == task.total for task in tasks)


def test_in_a_log_long_work_prints_a_line_a_minute_and_less_often_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("ltds.core.lines.time.monotonic", lambda: now)
    with ltds.Bars().track("Training", 200) as advance:
        for _ in range(200):
            now += 12
            advance(note="loss 1.00")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "Training: 5 of 200, about 39 minutes left loss 1.00",
        "Training: 10 of 200, about 38 minutes left loss 1.00",
    ]
    steps = [int(line.split()[1]) for line in lines]
    assert steps[:10] == list(range(5, 55, 5)), "one a minute for ten minutes"
    assert [after - before for before, after in pairwise(steps[10:])] == sorted(
        after - before for before, after in pairwise(steps[10:])
    )
    assert 20 < len(lines) < 30


def test_in_a_log_short_work_prints_nothing_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    for screen in (Screen(), Screen(quiet=True, verbose=True), Screen(verbose=True)):
        with screen.track("Looking", 20) as advance:
            for _ in range(20):
                advance()
    assert capsys.readouterr().err.splitlines() == [f"Looking: {done} of 20" for done in range(2, 22, 2)]


def test_unread_images_are_named_without_commands_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    name_unread([(Path("a\x1b[2J.jpg"), "an empty file"), (Path("b\udcff.jpg"), "cut\x07")], "skipped")
    assert capsys.readouterr().err.splitlines() == [
        "ltds: 2 images were skipped, because reading failed:",
        "- a\\x1b[2J.jpg: an empty file",
        "- b\\xff.jpg: cut\\x07",
    ]


def test_of_many_unread_images_ten_are_named_and_the_others_counted(capsys: pytest.CaptureFixture[str]) -> None:
    name_unread(((Path(f"{i}.jpg"), "an empty file") for i in range(13)), "left out")
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "ltds: 13 images were left out, because reading failed:"
    assert lines == [*(f"- {i}.jpg: an empty file" for i in range(10)), "- ... and 3 more"]
    name_unread([(Path("0.jpg"), "an empty file")], "left out")
    assert capsys.readouterr().err == ("ltds: 1 image was left out, because reading failed:\n- 0.jpg: an empty file\n")
