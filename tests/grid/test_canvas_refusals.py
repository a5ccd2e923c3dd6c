"""Canvases that cannot be drawn: refused in one line with the path, or by the reset that found no such map."""

from __future__ import annotations

from typing import Any

import pytest
from random_games import quiet_make

from gridmill import Game, _native
from gridmill.grid import (
    Bsp,
    Buildings,
    Canvas,
    Clumps,
    Compound,
    Connect,
    Fill,
    Instances,
    Layer,
    Map,
    Maze,
    Mirror,
    Objects,
    ObjectType,
    OneOf,
    Part,
    Rim,
    Rooms,
    Standing,
    Zones,
)  # fmt: skip

OBJECTS = {"wall": ObjectType(), "crate": ObjectType(), "mine": ObjectType(inventory={"ore": 3})}


def draw(map_: Map, num_agents: int = 1, objects: dict[str, ObjectType] = OBJECTS) -> None:
    game = Game(name="canvas", num_agents=num_agents, objects=objects, resources=("ore",), map=map_)
    with quiet_make(game, num_worlds=1) as env:
        env.reset()


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (Rooms(rows=12, columns=2), "expected at least 23 x 3 cells for these rooms, got 10 x 12 - at `{}`"),
        (Maze(corridor=11), "expected at least 11 x 11 cells for one chamber, got 10 x 12 - at `{}`"),
        (Bsp(smallest=10), "expected at least 11 x 11 cells for one room and its wall, got 10 x 12 - at `{}`"),
        (Clumps(smallest=3, largest=2), "expected at least 3, got 2 - at `{}.largest`"),
        (Rim(shallowest=9), "expected at least 9, got 8 - at `{}.deepest`"),
        (Rim(widest=1), "expected at least 2, got 1 - at `{}.widest`"),
        (Compound(), "expected at least 21 x 21 cells for the compound, got 10 x 12 - at `{}.side`"),
        (Compound(side=8), "expected an odd number, got 8 - at `{}.side`"),
        (Compound(side=9, gate=2), "expected an odd number or 0, got 2 - at `{}.gate`"),
        (Compound(side=9, gate=9), "expected at most 7, got 9 - at `{}.gate`"),
        (Compound(side=9, wall=5), "expected a wall that leaves cells inside, got 5 - at `{}.wall`"),
        (
            Compound(side=9, things=[Standing(type="mine", row=5)]),
            "expected an offset of at most 4, got row 5, column 0 - at `{}.things[0]`",
        ),
        (
            Compound(side=9, things=[Standing(type="mine"), Standing(type="crate")]),
            "two objects at row 0, column 0 - at `{}.things[1]`",
        ),
        (
            Compound(side=9, things=[Standing(type="mime")]),
            "unknown object type `mime`; did you mean `mine`? - at `{}.things[0].type`",
        ),
        (Buildings(draws=3), "expected weights with a finite sum above 0, got none - at `{}.weights`"),
        (Buildings(weights={"agent": 1.0}), "unknown object type `agent` - at `{}.weights.agent`"),
        (Objects(counts={"crat": 1}), "unknown object type `crat`; did you mean `crate`? - at `{}.counts.crat`"),
        (Objects(counts={"mine": 121}), "expected at most 120 objects on 10 x 12 cells, got 121 - at `{}.counts`"),
        (
            Part(top=8, height=3),
            "expected an area inside the available 10 x 12 cells, got 3 x 12 at row 8, column 0 - at `{}`",
        ),
        (Part(border=5), "expected at least one cell inside the border, got none - at `{}.border`"),
        (Zones(), "expected 1 to 64 layers, got 0 - at `{}.layers`"),
        (
            Zones(layers=(Maze(),), smallest=11),
            "expected at least 11 x 11 cells for the smallest zone, got 10 x 12 - at `{}.smallest`",
        ),
        (Zones(layers=(Maze(),), smallest=9, largest=8), "expected at least 9, got 8 - at `{}.largest`"),
        (OneOf(layers=(Maze(),), weights=(1.0, 2.0)), "expected 1 weights, one per layer, got 2 - at `{}.weights`"),
        (
            OneOf(layers=(Maze(),), weights=(0.0,)),
            "expected weights with a finite sum above 0, got none - at `{}.weights`",
        ),
        (
            Mirror(layers=(Maze(corridor=7),)),
            "expected at least 7 x 7 cells for one chamber, got 10 x 6 - at `{}.layers[0]`",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_with_its_place(layer: Layer, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        draw(Canvas(height=12, width=14, layers=(Fill(what="floor"), layer)))
    assert str(caught.value) == text.format("$.map.layers[1]")


@pytest.mark.parametrize(
    ("map_", "agents", "text"),
    [
        (
            Canvas(height=4, width=9, border=2), 1,
            "expected at least one cell inside the border, got none - at `$.map.border`",
        ),
        (
            Canvas(height=4, width=4), 5,
            "expected at least 5 free cells for agents, got 4 inside the border - at `$.map`",
        ),
        (
            Canvas(layers=(Objects(counts={"agent": 2}),)), 3,
            "expected at least 3 cells marked for agents, got 2; if no cell is marked, agents start anywhere on the "
            "floor - at `$.map`",
        ),
        (Instances(maps=[Canvas(layers=(Rooms(rows=40),))]), 1,
         "expected at least 79 x 5 cells for these rooms, got 38 x 38 - at `$.map.maps[0].layers[0]`"),
    ],
)  # fmt: skip
def test_canvases_are_refused_with_their_place(map_: Any, agents: int, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        draw(map_, agents)
    assert str(caught.value) == text


def test_walls_need_a_wall_type() -> None:
    crate = {"crate": ObjectType()}
    with pytest.raises(ValueError, match=r"^unknown object type `wall` - at `\$.map.layers\[0\]`$"):
        draw(Canvas(border=0, layers=(Maze(),)), objects=crate)
    draw(Canvas(border=0, layers=(Objects(counts={"crate": 3}), Connect())), objects=crate)


@pytest.mark.parametrize(
    ("layers", "agents", "text"),
    [
        ((Maze(), Objects(counts={"crate": 60})), 1, "expected room for all objects on floor where they block no path"),
        ((Fill(), Part(height=2, width=2, layers=(Fill(what="floor"),))), 5, "expected floor for all agents"),
        (
            (Fill(), Compound(side=5, gate=0, clear=1, things=[Standing(type="agent")]),
             Part(height=3, width=3, layers=(Fill(what="floor"), Objects(counts={"mine": 1})))),
            1, "expected paths between all agents and objects, found none in 100 attempts; add a `connect` layer at "
            "the end",
        ),
    ],
)  # fmt: skip
def test_a_reset_says_why_it_found_no_map(layers: tuple[Layer, ...], agents: int, text: str) -> None:
    with pytest.raises(_native.WorldFault) as caught:
        draw(Canvas(height=14, width=14, layers=layers), agents)
    assert text in str(caught.value)
    assert "- at `$.map`" in str(caught.value)


def test_layers_nested_eight_deep_and_one_more() -> None:
    layer: Layer = Maze()
    for _ in range(7):
        layer = Part(layers=(layer,))
    draw(Canvas(layers=(layer,)))
    refused = r"^expected layers nested at most 8 levels deep, got more - at `\$.map(.layers\[0\]){9}`$"
    with pytest.raises(ValueError, match=refused):
        draw(Canvas(layers=(Part(layers=(layer,)),)))
