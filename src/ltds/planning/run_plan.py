"""Choice and RunPlan: the settings chosen for a run, each with its reason, and how long the run will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ltds.core.config import merge, nested
from ltds.core.durations import say_duration

FORMAT = 1
Given = Mapping[str, Any]  # the user's settings, as nested tables


@dataclass(frozen=True)
class Choice:
    """Settings of one kind with their values by dotted name, and why. `shown`: the value in words."""

    what: str
    settings: dict[str, Any]
    shown: str
    reason: str


@dataclass(frozen=True)
class RunPlan:
    """What was chosen, and the measured time: seconds of a step, and of the whole run. 0 steps: not measured."""

    choices: tuple[Choice, ...] = ()
    steps: int = 0
    seconds_per_step: float = 0.0
    seconds: float = 0.0

    @property
    def layer(self) -> dict[str, Any]:
        """The chosen settings as nested tables, to go below those that the user gives."""
        return merge(*(nested(choice.settings) for choice in self.choices))

    def with_network(self, network: Choice) -> RunPlan:
        """The plan with this choice as well, after the method."""
        return replace(self, choices=(*self.choices[:1], network, *self.choices[1:]))

    def without(self, given: Given) -> RunPlan:
        """The plan without the settings that `given` replaces, and without choices of which nothing is left."""
        return replace(self, choices=tuple(left for choice in self.choices if (left := _without(choice, given))))

    def lines(self) -> list[str]:
        """One line for each choice, and one for the time."""
        width = max([len(choice.what) for choice in self.choices] + [6])
        shown = min(34, max([len(choice.shown) for choice in self.choices] + [0]))
        lines = [f"  {c.what:<{width}}  {c.shown:<{shown}}  {c.reason}" for c in self.choices]
        if self.steps:
            time = f"about {say_duration(self.seconds)}"
            lines.append(f"  {'time':<{width}}  {time:<{shown}}  {self._measured()}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """plan.json."""
        return {
            "format": FORMAT,
            "choices": [
                {"what": c.what, "settings": c.settings, "shown": c.shown, "reason": c.reason} for c in self.choices
            ],
            "steps": self.steps,
            "seconds_per_step": round(self.seconds_per_step, 4),
            "seconds": round(self.seconds, 1),
        }

    def _measured(self) -> str:
        pace = f"{self.seconds_per_step:.2f} s" if self.seconds_per_step >= 0.1 else f"{self.seconds_per_step:.3f} s"
        return f"{self.steps} steps of {pace}, measured here, and the evaluation"


def _without(choice: Choice, given: Given) -> Choice | None:
    left = {name: value for name, value in choice.settings.items() if not _gives(given, name.split("."))}
    if len(left) == len(choice.settings):
        return choice
    shown = ", ".join(f"{name}={value}" for name, value in left.items())  # the words may be about the others
    return replace(choice, settings=left, shown=shown) if left else None


def _gives(given: Any, path: Sequence[str]) -> bool:
    """Whether the settings have this one, or something else in place of its group, such as averaging="none"."""
    if not path or not isinstance(given, Mapping):
        return True
    return path[0] in given and _gives(given[path[0]], path[1:])
