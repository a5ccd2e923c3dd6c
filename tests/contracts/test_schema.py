"""The native description of a game equals the Python models: names, order, types, defaults, kinds.

`fields()` in native/grid/config.hpp and the models in gridmill.grid are written by hand on both sides; this test is
what lets them be.
"""

from __future__ import annotations

import copy
import types
import typing
from typing import Any, Literal

import pytest
from pydantic_core import PydanticUndefined

from gridmill import _native
from gridmill.config import Config, FrozenDict
from gridmill.grid import (
    AgentType,
    Area,
    Assembler,
    Attack,
    Canvas,
    Collective,
    Condition,
    Converter,
    Effect,
    Event,
    Game,
    GameValue,
    Instances,
    Layer,
    Limit,
    Map,
    ObjectType,
    Observation,
    ObservedValue,
    Recipe,
    RewardTerm,
    Rule,
    Scatter,
    Standing,
    Sum,
)


def of(union: Any) -> list[type[Config]]:
    """The models a tree may choose from."""
    return list(typing.get_args(typing.get_args(union)[0]))


VALUES, CONDITIONS, EFFECTS, MAPS, LAYERS = of(GameValue), of(Condition), of(Effect), of(Map), of(Layer)
KINDS = VALUES + CONDITIONS + EFFECTS + MAPS + LAYERS
PARTS: list[type[Config]] = [
    Limit, Recipe, Collective, Rule, Area, Event, ObjectType, RewardTerm, ObservedValue, Standing,
]  # fmt: skip
EMPTY = {"str": "", "int": 0, "float": 0.0, "bool": False}


def type_name(annotation: Any) -> str:
    """The native word for a Python annotation."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return type_name(typing.get_args(annotation)[0])
    if origin is Literal:
        return type(typing.get_args(annotation)[0]).__name__
    if origin is tuple:
        return "list"
    if origin is FrozenDict:
        return "dict"
    if origin in (typing.Union, types.UnionType):
        models = typing.get_args(annotation)
        if type(None) in models:
            return "optional"
        return "tree" if Sum in models or Instances in models else "choice"
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return "struct"
    return str(annotation.__name__)


def described(model: type[Config]) -> dict[str, list[Any]]:
    """A model as the native schema would say it (without the meanings)."""
    out = {}
    for name, field in model.model_fields.items():
        if name in getattr(model, "not_compiled", ("kind",)):
            continue
        kind = type_name(field.annotation)
        default: Any = None if field.default is PydanticUndefined else field.default
        if kind == "struct":
            default = described(typing.cast(type[Config], field.annotation))
        elif kind == "optional":
            assert default is None, f"{name}: an optional part is absent unless asked for"
            default = described(typing.get_args(field.annotation)[0])
        elif kind in ("list", "dict", "choice", "tree"):
            default = None
        elif field.default is PydanticUndefined:
            default = EMPTY[kind]
        out[name] = [kind, default]
    return out


def without_meanings(schema: dict[str, list[Any]]) -> dict[str, list[Any]]:
    out = {}
    for name, (kind, default, meaning) in schema.items():
        assert meaning, f"{name} has no meaning"
        out[name] = [kind, without_meanings(default) if kind in ("struct", "optional") else default]
    return out


def same(native: dict[str, list[Any]], model: type[Config]) -> None:
    mine = described(model)
    assert list(native) == list(mine)
    assert without_meanings(native) == mine
    for name, (kind, default) in mine.items():
        assert type(native[name][1]) is type(default), f"{name}: {kind}"


def test_the_game() -> None:
    same(_native.GridBatch.schema(), Game)


@pytest.mark.parametrize("model", KINDS, ids=lambda m: m.__name__)
def test_every_kind(model: type[Config]) -> None:
    kind = model.model_fields["kind"].default
    same(_native.grid_kinds()[kind], model)


def test_no_kind_is_missing_on_either_side() -> None:
    assert list(_native.grid_kinds()) == [model.model_fields["kind"].default for model in KINDS]
    assert all(
        typing.get_args(model.model_fields["kind"].annotation) == (model.model_fields["kind"].default,)
        for model in KINDS
    )


@pytest.mark.parametrize("model", PARTS, ids=lambda m: m.__name__)
def test_every_part(model: type[Config]) -> None:
    same(_native.grid_parts()[model.__name__], model)


def test_parts_inside_the_game_are_the_same_too() -> None:
    schema = _native.GridBatch.schema()
    same(schema["agent"][1], AgentType)
    same(schema["observation"][1], Observation)
    same(schema["attack"][1], Attack)
    same(_native.grid_parts()["ObjectType"]["converter"][1], Converter)
    same(_native.grid_parts()["ObjectType"]["assembler"][1], Assembler)
    assert sorted(_native.grid_parts()) == sorted(model.__name__ for model in PARTS)


def test_lists_and_dicts_start_empty_on_both_sides() -> None:
    """Their defaults are not in the schema; the only one that is not empty in Python is the wall every game has."""
    filled = {}
    for model in [
        Game,
        AgentType,
        Attack,
        Converter,
        Assembler,
        Observation,
        *PARTS,
        *KINDS,
    ]:
        for name, field in model.model_fields.items():
            if name not in getattr(model, "not_compiled", ()) and (
                type_name(field.annotation) in ("list", "dict")
                and field.default is not PydanticUndefined
                and len(field.default)
            ):
                filled[f"{model.__name__}.{name}"] = field.default
    assert filled == {"Game.objects": {"wall": ObjectType()}}


def bounds(model: type[Config], name: str) -> tuple[Any, Any]:
    """The (lowest, highest) number a model allows; None where it does not say."""
    low = high = None
    for item in model.model_fields[name].metadata:
        low, high = getattr(item, "ge", low), getattr(item, "le", high)
    return low, high


NUMBERS_OF_A_MACHINE = ["cooldown", "max_output", "max_input", "initial_resource_count", "max_conversions"]
OPTIONS: dict[str, Any] = {
    "num_worlds": 1, "seed": 0, "threads": 1, "lanes": 1, "masks": False, "desync_episodes": False,
    "min_first_episode": -1, "profiling": False, "validation": False, "fast": True, "signal": [],
}  # fmt: skip


def native_takes(path: list[Any], value: Any, map_: Any) -> bool:
    """Whether the native side, asked alone, finds no fault with this field (others may then fail)."""
    rewards = [{"value": {"kind": "constant"}}]
    shown = {"values": [{"name": "x", "value": {"kind": "constant"}}]}
    tree: dict[str, Any] = Game(name="x", map=Scatter()).core_tree() | {"rewards": rewards, "map": copy.deepcopy(map_)}
    tree["observation"] |= shown
    tree["resources"] = ["ore"]
    tree["attack"] = {"cost": {"ore": 1}}
    tree["move_cost"] = {"ore": 1}
    tree["agent"]["limits"] = [{"resources": ["ore"], "bonus": {"ore": 1}}]
    tree["objects"]["mine"] = {"converter": {"inputs": {}, "outputs": {"ore": 1}}}
    spot: Any = tree
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = value
    try:
        _native.GridBatch([tree], ["x"], **OPTIONS)
    except ValueError as error:
        return "expected int" not in str(error) and "expected finite number" not in str(error)
    return True


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (Game, ["max_steps"]), (Game, ["num_agents"]), (Game, ["reward_sharing"]), (Scatter, ["map", "groups"]),
        (Scatter, ["map", "height"]), (Scatter, ["map", "width"]), (Scatter, ["map", "border"]),
        (Observation, ["observation", "height"]), (Observation, ["observation", "width"]),
        (Observation, ["observation", "num_tokens"]), (RewardTerm, ["rewards", 0, "cap"]),
        (ObservedValue, ["observation", "values", 0, "digits"]),
        (Attack, ["attack", "freeze_duration"]), (Limit, ["agent", "limits", 0, "base"]),
        (Limit, ["agent", "limits", 0, "max"]),
        *((Converter, ["objects", "mine", "converter", name]) for name in NUMBERS_OF_A_MACHINE),
    ],
    ids=lambda x: ".".join(map(str, x)) if isinstance(x, list) else x.__name__,
)  # fmt: skip
def test_both_sides_allow_the_same_numbers(model: type[Config], path: list[Any]) -> None:
    hold_to_bounds(model, path, Scatter().tree())


@pytest.mark.parametrize("model", [Canvas, *LAYERS], ids=lambda m: m.__name__)
def test_both_sides_allow_the_same_numbers_in_canvases(model: type[Config]) -> None:
    """Whatever is wrong with the canvas otherwise: numbers are looked at first."""
    canvas = {"kind": "canvas", "layers": [{"kind": layer.model_fields["kind"].default} for layer in LAYERS]}
    where: list[Any] = ["map"] if model is Canvas else ["map", "layers", LAYERS.index(model)]
    for name, field in model.model_fields.items():
        if type_name(field.annotation) in ("int", "float"):
            hold_to_bounds(model, [*where, name], canvas)


def hold_to_bounds(model: type[Config], path: list[Any], map_: Any) -> None:
    low, high = bounds(model, str(path[-1]))
    assert low is not None
    assert native_takes(path, low, map_)
    assert not native_takes(path, low - 1, map_)
    if high is not None:
        assert native_takes(path, high, map_)
        assert not native_takes(path, high + 1, map_)
