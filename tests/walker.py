"""A walker for tests of games: the next step towards the nearest of some objects, seen with `env.inspect`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from random_games import agents_of
from scenes import STEPS

from gridmill import Env

FOUR = ("north", "south", "west", "east")


def towards(env: Env, index: int, wanted: Callable[[dict[str, Any]], bool], world: int = 0) -> str:
    """The action that brings an agent nearer to, or into, an object that is wanted; `noop` if there is no way."""
    view = env.inspect(world)
    me = agents_of(view)[index]
    goals = {(o["row"], o["column"]) for o in view["objects"] if o["agent"] is None and wanted(o)}
    taken = {(o["row"], o["column"]) for o in view["objects"]}
    queue = deque([((me["row"], me["column"]), "noop")])
    seen = {(me["row"], me["column"])}
    while queue:
        (row, column), first = queue.popleft()
        for name in FOUR:
            cell = (row + STEPS[name][0], column + STEPS[name][1])
            step = f"move_{name}" if first == "noop" else first
            if cell in goals:
                return step
            inside = 0 <= cell[0] < view["height"] and 0 <= cell[1] < view["width"]
            if inside and cell not in seen and cell not in taken:
                seen.add(cell)
                queue.append((cell, step))
    return "noop"


def is_type(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda o: o["type"] == name
