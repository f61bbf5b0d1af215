"""Strict settings: TOML and dotted overrides become frozen models; every mistake is reported at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from ltds.core.errors import ConfigError, did_you_mean, expected
from ltds.core.renamed import RENAMED


class Settings(BaseModel):
    """A group of settings: frozen, no unknown names, no silent conversion of types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def listed_fields(cls) -> dict[str, FieldInfo]:
        """The settings that a list for people shows; in a group whose settings depend on its name, those of all."""
        return cls.model_fields


SettingsType = TypeVar("SettingsType", bound=Settings)
Fraction = Annotated[float, Field(ge=0, le=1)]
PositiveFraction = Annotated[float, Field(gt=0, le=1)]
ShareBelowOne = Annotated[float, Field(ge=0, lt=1)]
REMEDY = "Set {name}=VALUE."
BARE_POINT = re.compile(r"(?<![\w.])\.(?=\d)")  # of .5, which TOML does not allow


def read_toml(file: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"Expected a settings file at '{file}', but it could not be read ({error.strerror}). "
            "Name an existing TOML file, or none."
        ) from error
    except (ValueError, RecursionError) as error:  # the latter for a number of 5,000 digits
        raise ConfigError(f"Expected '{file}' to be valid TOML, but got: {error}. Correct that line.") from error


def parse_overrides(pairs: Iterable[str]) -> dict[str, Any]:
    """`["optimizer.lr=0.05"]` as nested tables. Values are read as TOML, also .5 and True; anything else is text."""
    tables: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"Expected an override like optimizer.lr=0.05, but got '{pair}'. Write NAME=VALUE.")
        tables = merge(tables, _nested(name.strip().split("."), _literal(text.strip())))
    return tables


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted name as nested tables: {"optimizer.lr": 0.05} is {"optimizer": {"lr": 0.05}}."""
    return merge(*(_nested(name.split("."), value) for name, value in settings.items()))


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Tables laid over each other: later ones win, setting by setting. A value never replaces a whole table.

    Except that a text may stand for a group that has a name: criterion="bsce" for criterion={name="bsce"}.
    """
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            _expand_name(result, key, value)
            tables = isinstance(value, Mapping) + isinstance(result.get(key, value), Mapping)
            if tables == 1:
                got = result[key] if isinstance(value, Mapping) else value
                raise ConfigError(
                    f"Expected '{key}' to be a group of settings, but got the value {got!r}. "
                    f"Name one setting of the group, as in {key}.NAME=VALUE."
                )
            result[key] = merge(result.get(key, {}), value) if tables else value
    return result


def _expand_name(result: dict[str, Any], key: str, value: Any) -> None:
    """Prepare result[key] for a value laid over it, where one of the two is a text and the other a table with a name.

    A text below a table becomes that table's name; a table below a text is removed, as the text replaces all of it.
    """
    below = result.get(key)
    if isinstance(below, str) and isinstance(value, Mapping):
        result[key] = {"name": below}
    elif isinstance(below, Mapping) and "name" in below and isinstance(value, str):
        del result[key]


def check_settings(
    model: type[SettingsType], data: Mapping[str, Any], prefix: str = "", remedy: str = REMEDY
) -> tuple[SettingsType | None, list[str]]:
    """The settings, or None and a sentence for each mistake, with the remedy for it."""
    try:
        return model.model_validate(as_tuples(data)), []
    except ValidationError as error:
        return None, [_sentence(model, dict(item), prefix, remedy) for item in error.errors()]


def parse(model: type[SettingsType], data: Mapping[str, Any]) -> SettingsType:
    """The settings, or one ConfigError that names every mistake."""
    settings, problems = check_settings(model, data)
    if settings is None:
        raise ConfigError(listing(problems))
    return settings


def listing(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return "\n".join([f"{len(problems)} settings cannot be used:", *(f"- {p}" for p in problems)])


def refuse_idle(settings: BaseModel, names: Iterable[str], reason: str) -> None:
    """For a validator: raise ValueError if one of these settings was changed although it has no effect.

    if not self.mixing:
        refuse_idle(self, ["alpha", "stages"], "without mixing")  # "alpha has no effect without mixing: ..."
    """
    fields = type(settings).model_fields
    changed = [name for name in names if getattr(settings, name) != fields[name].default]
    if changed:
        raise ValueError(f"{changed[0]} has no effect {reason}: leave it out")


def settings_class(kind: str, name: str, config: object) -> type[Settings]:
    """The `Config` of a class of the user's own, a method or criterion (`kind`) of this name; raises if it is wrong."""
    if not (isinstance(config, type) and issubclass(config, Settings)):
        remedy = "Write 'class Config(ltds.Settings):' with a line for each setting, or leave Config out."
        raise ConfigError(expected(f"Config of '{name}'", "a subclass of ltds.Settings", repr(config), remedy))
    if "name" in config.model_fields:
        remedy = f"{kind}.name is the name of the {kind} itself: give the setting another name."
        raise ConfigError(expected(f"Config of '{name}'", "without a setting called 'name'", "one", remedy))
    return config


def listed_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a group that a list for people shows."""
    return model.listed_fields() if issubclass(model, Settings) else model.model_fields


def names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The dotted names of all settings of a model."""
    for name, field in listed_fields(model).items():
        inner = _submodel(field.annotation)
        if inner is not None:
            yield from names(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _submodel(annotation: Any) -> type[BaseModel] | None:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _sentence(model: type[BaseModel], item: dict[str, Any], prefix: str, remedy: str) -> str:
    name = prefix + ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden" and name in RENAMED:
        return f"The setting '{name}' is now called '{RENAMED[name]}'. Use the new name."
    if item["type"] == "extra_forbidden":
        return f"There is no setting '{name}'. {did_you_mean(name, names(model, prefix))}"
    if item["type"] == "missing":
        return f"The setting '{name}' has no value. {remedy.format(name=name)}"
    if item["type"] == "model_type":
        return f"Setting '{name}' was {item['input']!r}: it is a group of settings. Set {name}.NAME=VALUE."
    rule = item["msg"].removeprefix("Value error, ")
    if item["type"] == "value_error" and isinstance(item["input"], Mapping):
        return _rule_of_a_group(name.rstrip("."), rule)
    rule = (rule[:1].lower() + rule[1:]).removesuffix(".")
    return f"Setting '{name}' was {item['input']!r}: {rule}. {remedy.format(name=name)}"


def _rule_of_a_group(name: str, rule: str) -> str:
    """A rule about several settings says itself which of them to change. `name`: their group, or "" for all."""
    sentence = f"In '{name}', {rule[:1].lower() + rule[1:]}" if name else rule
    return sentence if sentence.endswith(".") else f"{sentence}."


def as_tuples(value: Any) -> Any:
    """TOML's arrays as tuples, so that frozen settings hold nothing that can change."""
    if isinstance(value, Mapping):
        return {key: as_tuples(inner) for key, inner in value.items()}
    return tuple(as_tuples(inner) for inner in value) if isinstance(value, list | tuple) else value


def _nested(path: list[str], value: Any) -> dict[str, Any]:
    return {path[0]: _nested(path[1:], value) if len(path) > 1 else value}


def _literal(text: str) -> Any:
    """The value of a text: TOML, or .5, True and False as people type them; otherwise the text."""
    completed = BARE_POINT.sub("0.", text)
    for spelling in (text, completed, {"True": "true", "False": "false"}.get(text, text)):
        try:
            return tomllib.loads(f"value = {spelling}")["value"]
        except (ValueError, RecursionError):
            continue
    return text
