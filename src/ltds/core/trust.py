"""Whose code settings may import: names of the form "package.module:Thing" that a file gives need the user's trust.

What the user types, or passes from Python, is imported as it is. What a file says (a run's config.toml, a settings
file, a grid) may come from a stranger, and importing a module runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ltds.core.errors import ConfigError

# "timm:resnet18" names a network of a library that ltds knows how to ask for it, not an object to import.
LIBRARIES = frozenset({"timm", "torchvision", "hf"})


def module_of(name: str) -> str | None:
    """ "package.module" of "package.module:Thing"; None for a text of another form."""
    module, colon, thing = name.partition(":")
    parts = [*module.split("."), thing]
    return module if colon and module not in LIBRARIES and all(part.isidentifier() for part in parts) else None


def modules_named(settings: object) -> tuple[str, ...]:
    """The modules that the texts in nested settings name as "package.module:Thing", each once, in their order."""
    return tuple(dict.fromkeys(module for text in _texts(settings) if (module := module_of(text)) is not None))


def code_needed(tables: Mapping[str, Any]) -> tuple[str, ...]:
    """The modules that a run with these settings imports besides ltds: of its method, its criterion, its backbone."""
    return modules_named([tables.get("method"), tables.get("backbone")])


def modules_trusted(trust: Iterable[str] | str) -> list[str]:
    """The modules that a user trusts, who may give one as its name alone."""
    return [trust] if isinstance(trust, str) else list(trust)


def require_trust(tables: Mapping[str, Any], trust: Iterable[str] | str) -> None:
    """Raise ConfigError unless every module that the settings need is, or is inside, one that `trust` names."""
    trusted = modules_trusted(trust)
    strange = [module for module in code_needed(tables) if not _covered(module, trusted)]
    if strange:
        these = ", ".join(f"'{module}'" for module in strange)
        raise ConfigError(
            f"Expected settings from a file to need no code but that of ltds, but they name the module {these}. "
            "Importing a module runs its code. If you know and trust it, say so by naming it in argument 'trust'.",
            arguments=[f"trust={module}" for module in strange],
        )


def _covered(module: str, trusted: list[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in trusted)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
