"""A walker for tests of games: the way to the nearest of some objects, seen with `env.inspect`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from random_games import agents_of
from scenes import STEPS

from gridmill import Env

FOUR = ("north", "south", "west", "east")


def way(env: Env, index: int, wanted: Callable[[dict[str, Any]], bool], world: int = 0) -> list[str]:
    """The moves that bring an agent into the nearest object that is wanted; none if there is no way."""
    view = env.inspect(world)
    me = agents_of(view)[index]
    goals = {(o["row"], o["column"]) for o in view["objects"] if o["agent"] is None and wanted(o)}
    taken = {(o["row"], o["column"]) for o in view["objects"]}
    start = (me["row"], me["column"])
    came: dict[tuple[int, int], tuple[tuple[int, int], str]] = {start: (start, "")}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for name in FOUR:
            cell = (here[0] + STEPS[name][0], here[1] + STEPS[name][1])
            if cell in goals:
                moves = [f"move_{name}"]
                while here != start:
                    here, move = came[here]
                    moves.append(move)
                return moves[::-1]
            inside = 0 <= cell[0] < view["height"] and 0 <= cell[1] < view["width"]
            if inside and cell not in came and cell not in taken:
                came[cell] = (here, f"move_{name}")
                queue.append(cell)
    return []


def towards(env: Env, index: int, wanted: Callable[[dict[str, Any]], bool], world: int = 0) -> str:
    """The first of those moves, where others move too; `noop` if there is no way."""
    return next(iter(way(env, index, wanted, world)), "noop")


def is_type(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda o: o["type"] == name
