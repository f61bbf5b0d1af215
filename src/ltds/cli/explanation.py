"""Settings described for people: names, types, defaults, meanings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ltds.core.config import listed_fields

LIMITS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


@dataclass(frozen=True)
class SettingLine:
    """A setting: dotted name, type, default, the value of a method where it differs, and meaning."""

    name: str
    kind: str
    default: str
    here: str
    description: str = ""


def setting_lines(defaults: BaseModel, values: BaseModel, prefix: str = "") -> Iterator[SettingLine]:
    """A line for each setting; `values` are those of a method, `defaults` those of the class."""
    for name, field in listed_fields(type(defaults)).items():
        default = getattr(defaults, name, field.default)
        value = getattr(values, name, default)
        if isinstance(default, BaseModel):
            yield from setting_lines(default, value, f"{prefix}{name}.")
            continue
        here = "" if value == default else literal(value)
        yield SettingLine(prefix + name, kind(field), literal(default), here, field.description or "")


def explanations(values: BaseModel, name: str = "") -> Iterator[tuple[str, str]]:
    """(group, docstring of its class in one paragraph) for the settings and each group within them."""
    words = type(values).__dict__.get("__doc__")
    if words:
        yield name, " ".join(inspect.cleandoc(words).split())
    for field in type(values).model_fields:
        inner = getattr(values, field)
        if isinstance(inner, BaseModel):
            yield from explanations(inner, f"{name}.{field}" if name else field)


def kind(field: FieldInfo) -> str:
    """The choices of a setting, or its type with limits."""
    limits = [
        f"{sign} {limit:g}"
        for rule in field.metadata
        for name, sign in LIMITS.items()
        if (limit := getattr(rule, name, None)) is not None
    ]
    return " ".join([_type(field.annotation), *limits])


def _type(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(map(literal, inner))
    if annotation is bool:
        return "true | false"
    if origin is tuple:
        return f"[{', '.join('…' if element is ... else _type(element) for element in inner)}]"
    if hasattr(annotation, "__metadata__"):  # Annotated, inside another type
        return _type(inner[0])
    if inner:
        return " | ".join(map(_type, inner))
    return {"int": "integer", "float": "number", "str": "text", "NoneType": "none"}.get(
        getattr(annotation, "__name__", ""), str(annotation)
    )


def literal(value: Any) -> str:
    """The value as --set takes it; numbers with four digits."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    return str(value)
