"""The phases that a method asks for, checked before training: a mistake in a late one would be noticed hours later."""

from __future__ import annotations

import math
from typing import get_args, get_type_hints

from ltds.core.errors import ConfigError, did_you_mean, expected
from ltds.methods.base import Method, Phase


def checked_phases(method: Method) -> tuple[Phase, ...]:
    """The phases of a method; raises a ConfigError that names the phase and its field."""
    whose, found = f"{type(method).__name__}.phases()", method.phases()
    if not isinstance(found, tuple) or not found or not all(isinstance(phase, Phase) for phase in found):
        remedy = "Return a tuple, as in (ltds.Phase('first', 0.5), ltds.Phase('second', 0.5))."
        raise ConfigError(expected(whose, "a tuple of one ltds.Phase or more", repr(found), remedy))
    names = [phase.name for phase in found]
    if repeated := [name for name in names if names.count(name) > 1]:
        remedy = "The best weights and the random numbers of a phase are found by its name: give each its own."
        raise ConfigError(expected(f"the names of {whose}", "all different", f"'{repeated[0]}' twice", remedy))
    for phase in found:
        _check_fields(f"in phase '{phase.name}' of {whose}", phase)
        _check_trainable(f"in phase '{phase.name}' of {whose}", phase, method)
    return found


def _check_fields(where: str, phase: Phase) -> None:
    hints = get_type_hints(Phase)
    for field in ("sampler", "decay"):
        value, choices = getattr(phase, field), get_args(hints[field])
        if value not in choices:
            rule = f"one of {', '.join(choices)}"
            raise ConfigError(expected(f"{field} {where}", rule, repr(value), did_you_mean(str(value), choices)))
    for field in ("share", "lr_scale"):
        value = getattr(phase, field)
        if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            remedy = "1.0 is as long as the whole run, and as its learning rate." if field == "share" else "Use 1.0."
            raise ConfigError(expected(f"{field} {where}", "a number, 0 or more", repr(value), remedy))


def _check_trainable(where: str, phase: Phase, method: Method) -> None:
    prefixes = phase.trainable
    if not isinstance(prefixes, tuple) or not all(isinstance(prefix, str) for prefix in prefixes):
        remedy = "Write trainable=('classifier.',), with the comma; ('',) is all parameters."
        raise ConfigError(expected(f"trainable {where}", "a tuple of texts", repr(prefixes), remedy))
    # A module without parameters counts, too: with backbone.frozen=4 the backbone has none.
    names = [*dict(method.named_parameters()), *(f"{name}." for name in dict(method.named_modules()))]
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in names):
            known = did_you_mean(prefix, {f"{name}." for name, _ in method.named_children()})
            rule = "the beginning of names of parameters"
            raise ConfigError(expected(f"trainable {where}", rule, f"'{prefix}', which begins none", known))
    if not any(name.startswith(prefixes) for name, p in method.named_parameters() if p.requires_grad):
        remedy = "Name others, or use ('',) for all; a parameter with requires_grad=False never learns."
        got = f"{prefixes!r}, which are none that learn"
        raise ConfigError(expected(f"trainable {where}", "the beginning of names of parameters", got, remedy))
