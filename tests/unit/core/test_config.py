"""Settings: strict, all mistakes at once, nearest names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from ltds.core.config import merge, parse_overrides, read_toml
from ltds.core.errors import ConfigError
from ltds.data.datasets.recipe import BESTIARY
from ltds.engine.config import resolve

DATA = {"data": {"root": "somewhere"}}


def test_overrides_are_read_as_toml_and_text() -> None:
    tables = parse_overrides(["optimizer.lr=0.05", "data.held_out=ink", "schedule.milestones=[0.5, 0.9]", "a.b=true"])
    assert tables == {
        "optimizer": {"lr": 0.05},
        "data": {"held_out": "ink"},
        "schedule": {"milestones": [0.5, 0.9]},
        "a": {"b": True},
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".5", 0.5),
        ("-.5", -0.5),
        ("[.5, .9]", [0.5, 0.9]),
        ("True", True),
        ("False", False),
        ("./a.5", "./a.5"),
        (".5.toml", ".5.toml"),
        ("v1.5", "v1.5"),
    ],
)
def test_spellings_of_values_that_people_type(text: str, value: object) -> None:
    assert parse_overrides([f"a={text}"]) == {"a": value}


@pytest.mark.parametrize("pair", ["optimizer.lr", "=3", ""])
def test_an_override_without_name_or_value_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match=r"Write NAME=VALUE"):
        parse_overrides([pair])


def test_later_layers_win_setting_by_setting() -> None:
    assert merge({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}, "b": 4}) == {"a": {"x": 1, "y": 3}, "b": 4}


def test_every_mistake_is_reported_at_once_with_the_nearest_name() -> None:
    layers = ({"optimizer": {"lrr": 0.1, "momentum": 1.5}, "schedule": {"epochs": "ten"}, "method": {"name": "dcc"}},)
    with pytest.raises(ConfigError) as caught:
        resolve(DATA, *layers)
    text = str(caught.value)
    assert "4 settings cannot be used" in text
    assert "There is no setting 'optimizer.lrr'. Did you mean 'optimizer.lr'?" in text
    assert "'optimizer.momentum' was 1.5: input should be less than or equal to 1" in text
    assert "'schedule.epochs' was 'ten'" in text
    assert "got 'dcc'. Did you mean 'dc'?" in text


def test_unknown_setting_of_a_method_names_its_settings() -> None:
    with pytest.raises(ConfigError, match=r"There is no setting 'method.criterium'. Did you mean 'method.criterion"):
        resolve(DATA, {"method": {"name": "agg", "criterium": "dc"}})


def test_a_missing_root_says_what_to_type() -> None:
    with pytest.raises(ConfigError, match=r"'data.root' has no value. Set data.root=VALUE"):
        resolve({})


def test_types_are_not_converted() -> None:
    with pytest.raises(ConfigError, match=r"'schedule.epochs' was 2.5"):
        resolve(DATA, {"schedule": {"epochs": 2.5}})
    assert resolve(DATA, {"optimizer": {"lr": 1}}).optimizer.lr == 1.0


def test_the_written_config_makes_the_same_config_again(tmp_path: Path) -> None:
    config = resolve(DATA, {"method": {"name": "dc"}, "schedule": {"milestones": [0.3]}}, dataset="bestiary")
    file = tmp_path / "config.toml"
    file.write_text(tomli_w.dumps(config.to_dict()))
    assert resolve(read_toml(file)) == config


def test_a_recipe_serves_where_the_user_says_nothing() -> None:
    recipe = BESTIARY.settings
    plain = resolve(DATA, dataset="bestiary")
    assert (plain.data.size, plain.schedule.epochs) == (recipe["data"]["size"], recipe["schedule"]["epochs"])
    own = resolve(DATA, {"data": {"size": 48}}, dataset="bestiary")
    assert (own.data.size, own.data.batch_size) == (48, plain.data.batch_size)
    assert plain.backbone.width == recipe["backbone"]["width"]
    named = resolve(DATA, {"backbone": {"name": "resnet18"}}, dataset="bestiary")
    assert (named.backbone.name, named.backbone.width) == ("resnet18", 64)


def test_a_recipe_may_suit_a_method() -> None:
    suited = resolve(DATA, {"method": {"name": "ltds"}}, dataset="bestiary").method
    assert suited.temperature == BESTIARY.with_embeddings["temperature"]
    own = resolve(DATA, {"method": {"name": "ltds", "temperature": 0.3}}, dataset="bestiary").method
    assert own.temperature == 0.3
    assert resolve(DATA, {"method": {"name": "ltds"}}).method.temperature == pytest.approx(1 / 30)


def test_defaults_are_the_paper_s() -> None:
    config = resolve(DATA)
    assert (config.data.batch_size, config.data.size, config.backbone.name) == (48, 224, "resnet10")
    assert (config.optimizer.lr, config.optimizer.momentum, config.optimizer.weight_decay) == (0.1, 0.9, 1e-4)
    assert config.schedule.model_dump() == {
        "epochs": 100,
        "steps_per_epoch": 101,
        "decay": "milestones",
        "milestones": (0.4, 0.8),
        "gamma": 0.1,
        "warmup": 0.0,
        "patience": 0,
        "keep": "best",
    }
    assert (config.optimizer.name, config.optimizer.clip_norm, config.averaging.name) == ("sgd", 0.0, "none")


def test_an_old_name_is_answered_with_the_new_one() -> None:
    with pytest.raises(ConfigError, match=r"'data.batch' is now called 'data.batch_size'. Use the new name"):
        resolve(DATA, {"data": {"batch": 8}})
    with pytest.raises(ConfigError, match=r"'method.order' is now called 'method.gradient_order'"):
        resolve(DATA, {"method": {"name": "ltds", "order": "second"}})


def test_settings_without_effect_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"betas has no effect with optimizer.name=sgd"):
        resolve(DATA, {"optimizer": {"betas": [0.5, 0.9]}})
    with pytest.raises(ConfigError, match=r"milestones has no effect with schedule.decay=cosine"):
        resolve(DATA, {"schedule": {"decay": "cosine", "milestones": [0.5]}})
    with pytest.raises(ConfigError, match=r"decay has no effect without averaging"):
        resolve(DATA, {"averaging": {"decay": 0.9}})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"optimizer": {"name": "adamw", "momentum": 0.5}},
            "In 'optimizer', momentum has no effect with optimizer.name=adamw: leave it out.",
        ),
        (
            {"optimizer": {"nesterov": True, "momentum": 0.0}},
            "In 'optimizer', nesterov needs a momentum above 0: raise momentum, or leave nesterov out.",
        ),
        (
            {"method": {"name": "cumix", "weights": {"features": 0.0, "images": 0.0}}},
            "In 'method', weights.features=0 and weights.images=0 leave nothing to mix: use the method agg.",
        ),
        ({"averaging": 3}, "Setting 'averaging' was 3: it is a group of settings. Set averaging.NAME=VALUE."),
    ],
)
def test_a_rule_about_a_group_is_said_in_words_alone(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        resolve({"data": {"root": "x", "held_out": "y"}}, given)
    assert str(raised.value) == message


def test_a_bad_or_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml.*could not be read"):
        read_toml(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("lr = = 3")
    with pytest.raises(ConfigError, match=r"bad\.toml' to be valid TOML"):
        read_toml(bad)
