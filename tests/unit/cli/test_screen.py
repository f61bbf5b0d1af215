"""Progress bars: one display on the terminal, whatever runs inside what."""

from __future__ import annotations

import pytest
from rich.progress import Progress as RichProgress

from ltds.cli import screen
from ltds.cli.screen import Screen


@pytest.fixture
def displays(monkeypatch: pytest.MonkeyPatch) -> list[RichProgress]:
    """Every display of bars that the screen opens."""
    opened: list[RichProgress] = []

    class Recorded(RichProgress):
        def start(self) -> None:
            opened.append(self)
            super().start()

    monkeypatch.setattr(screen, "RichProgress", Recorded)
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
