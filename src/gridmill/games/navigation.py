"""Navigation: every agent alone in a place of its own, looking for altars that hold one heart each and never another.

`navigation` is for training: most places are drawn anew for every episode. `navigation_eval` are single maps with three
altars and time limits of their own, to see how well the looking was learned.
"""

from __future__ import annotations

from typing import Literal

from gridmill.config import did_you_mean
from gridmill.env.kind import Score
from gridmill.games.navigation_maps import COURTS, PICTURES
from gridmill.grid import (
    Ascii,
    Blocks,
    Bsp,
    Canvas,
    Caves,
    Clumps,
    Connect,
    Converter,
    Fill,
    Game,
    Instances,
    Inventory,
    Layer,
    Map,
    Maze,
    Objects,
    ObjectType,
    Observation,
    OneOf,
    Part,
    Radial,
    RewardTerm,
    Rooms,
)

Land = Literal["any", "maze", "rooms", "open"]
SIDE = 25  # cells on each side of a place
OBJECTS = {
    "wall": ObjectType(),
    "altar": ObjectType(
        converter=Converter(outputs={"heart": 1}, cooldown=255, initial_resource_count=1, max_conversions=0)
    ),
}
LEGEND = {"A": "altar"}


def navigation(rows: int = 2, columns: int = 2, max_steps: int = 1000, altars: int = 10, land: Land = "any") -> Game:
    """One agent in each of several places: rooms, mazes, caves, corridors or open land, with altars to find.

    Every fourth place is the same picture of courts with ten altars; the others have as many as asked for. With a
    `land` all places are drawn and of that kind.
    """
    most = 20 if land == "any" else 50
    if not 1 <= altars <= most:
        raise ValueError(f"altars: expected 1 to {most}, got {altars}")
    drawn = Canvas(height=SIDE, width=SIDE, border=0, layers=(_land(land), Objects(counts={"altar": altars})))
    places = (drawn, drawn, drawn, Ascii(text=COURTS, legend=LEGEND)) if land == "any" else (drawn,)
    everywhere = Instances(maps=places, rows=rows, columns=columns, gap=3, border=6)
    return _game("navigation" if land == "any" else f"navigation_{land}", everywhere, rows * columns, max_steps, 1.0)


def navigation_eval_names() -> list[str]:
    """Names of the evaluation maps."""
    return [*PICTURES, *_evaluation_lands()]


def navigation_eval(name: str) -> Game:
    """One agent, three altars worth a third each, on the evaluation map of this name."""
    if name in PICTURES:
        picture = PICTURES[name]
        land: Map = Ascii(text=picture.text, legend=LEGEND)
        return _game(f"navigation_{name}", land, 1, picture.max_steps, each=1.0 / 3.0)
    lands = _evaluation_lands()
    if name not in lands:
        known = navigation_eval_names()
        raise ValueError(f"unknown evaluation map `{name}`{did_you_mean(name, known)} - maps: {', '.join(known)}")
    max_steps, land = lands[name]
    return _game(f"navigation_{name}", land, 1, max_steps, each=1.0 / 3.0)


def _game(name: str, land: Map, num_agents: int, max_steps: int, each: float) -> Game:
    return Game(
        name=name,
        num_agents=num_agents,
        score=Score(stat="heart.get", per="supply", title="hearts taken"),
        beside=("heart.get", "cell.visited"),
        max_steps=max_steps,
        moves=4,
        resources=("heart",),
        objects=OBJECTS,
        map=land,
        # The bound that is warned of is never reached: a wall is one token, and altars of two are few.
        observation=Observation(overflow="drop"),
        rewards=(RewardTerm(weight=each, value=Inventory(resource="heart")),),
    )


def _land(kind: Land) -> Layer:
    """A kind of land; for `any` one is drawn for every place and episode."""
    if kind == "maze":
        return Maze(method="prim", corridor=2)
    if kind == "rooms":
        return Rooms(rows=4, columns=4, extra_doors=0.3)
    if kind == "open":
        return _connected(Clumps(every=5, largest=1))
    if kind != "any":
        raise ValueError(f"land: expected any, maze, rooms or open, got {kind!r}")
    return OneOf(
        layers=(
            Rooms(rows=4, columns=4, extra_doors=0.3),
            Maze(method="dfs", loops=0.1),
            Maze(method="prim", corridor=2),
            _connected(Caves()),
            Bsp(rooms=10, smallest=3),
            Part(layers=(Fill(what="wall"), Radial(arms=8, width=2, hub=3))),
            _connected(Clumps(every=5, largest=1)),
            _connected(Blocks()),
        ),
        weights=(1.0,) * 8,
    )


def _connected(land: Layer) -> Part:
    return Part(layers=(land, Connect()))


def _evaluation_lands() -> dict[str, tuple[int, Canvas]]:
    """Maps that are drawn: (time limit, map)."""
    altars = Objects(counts={"altar": 3})
    return {
        "empty_space": (300, Canvas(height=62, width=62, border=1, layers=(altars,))),
        "drawn_maze": (600, Canvas(height=41, width=41, border=1, layers=(Maze(method="kruskal"), altars))),
        "drawn_rooms": (400, Canvas(height=41, width=41, border=1, layers=(Rooms(rows=5, columns=5), altars))),
    }


GAMES = (navigation,)
