"""`build_data`: any dataset by the name of its builder, as `ltds data build NAME` does."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ltds.core.config import Settings, nested, parse
from ltds.core.errors import ConfigError, DataError, LtdsWarning, did_you_mean, expected
from ltds.core.plain import plain_value
from ltds.core.progress import SILENT, Progress
from ltds.data.datasets import BUILDERS, config_type, find_builder
from ltds.data.image_files import is_whole_dataset
from ltds.data.manifest import Manifest


def build_data(
    dataset: str,
    /,
    *,
    out: str | Path,
    settings: Mapping[str, Any] | None = None,
    progress: Progress = SILENT,
    **inputs: Any,
) -> Manifest:
    """Build a dataset in the folder `out`. If it is complete there already, it is read and not built again.

        photos = ltds.build_data("folder", source="photos", out="data/photos", settings={"layout": "domain/class"})

    Args:
        dataset: A name that the command `ltds data build` lists, or your own function as "package.module:function".
        out: The folder of the dataset.
        settings: Settings of the dataset.
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
        inputs: The other arguments of the builder, such as source.
    """
    builder = find_builder(dataset)
    parameters = inspect.signature(builder).parameters
    _check_inputs(dataset, inputs, {name: p for name, p in parameters.items() if name not in _GIVEN})
    config = config_type(builder)
    hints = get_type_hints(builder)
    given = {name: _as_paths(value, hints.get(name)) for name, value in inputs.items()}
    if config is not None:
        given["config"] = parse(config, plain_value(nested(settings or {})))
    elif settings:
        raise ConfigError(f"Expected no settings, because '{dataset}' has none, but got {', '.join(settings)}.")
    if "progress" in parameters:
        given["progress"] = progress
    return call_builder(dataset, builder, Path(out), **given)


def call_builder(name: str, builder: Callable[..., Any], out: Path, /, **given: Any) -> Manifest:
    """What the builder of this name makes of its arguments. Those of ltds look themselves for a complete dataset.

    Nobody knows the settings of a dataset that a function from outside has made, so they are not compared.
    """
    if name in BUILDERS:
        made: Manifest = builder(out, **given)
        return made
    if is_whole_dataset(out):
        if isinstance(config := given.get("config"), Settings) and config.model_fields_set:
            warnings.warn(
                f"'{out}' holds a dataset already, which is read and not built again: the settings that you gave have "
                "no effect. To build with them, choose another folder.",
                LtdsWarning,
                stacklevel=3,
            )
        return Manifest.read(out)
    made = builder(out, **given)
    if not isinstance(made, Manifest):
        remedy = "End the function with: return ltds.Manifest.read(out)"
        raise DataError(expected(f"what '{name}' returns", "a ltds.Manifest", f"a {type(made).__name__}", remedy))
    return made


_GIVEN = ("out", "config", "progress")


def _check_inputs(dataset: str, inputs: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> None:
    for name in inputs.keys() - parameters.keys():
        raise ConfigError(
            f"Expected an argument of the dataset '{dataset}', but got '{name}'. {did_you_mean(name, parameters)}"
        )
    missing = [name for name, p in parameters.items() if p.default is p.empty and name not in inputs]
    if missing:
        wanted = ", ".join(f"argument '{name}'" for name in missing)
        raise ConfigError(f"Expected {wanted} for the dataset '{dataset}', but got none. Add it.", arguments=missing)


def _as_paths(value: Any, hint: Any) -> Any:
    """Text as a path where the builder wants one (Path, Path | None), or several (Sequence[Path], or None)."""
    options = get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
    if Path in options and isinstance(value, str):
        return Path(value)
    if value is not None and any(Path in get_args(option) for option in options):
        return [Path(one) for one in ([value] if isinstance(value, str | Path) else value)]
    return value
