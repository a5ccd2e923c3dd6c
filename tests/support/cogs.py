"""Small scenes of CogsGuard: the game itself on a picture, and questions about its team and junctions.

`H` is the hub, `J` a neutral junction, `K` the team's junction, `a`, `s`, `m`, `t` the stations of aligner, scrambler,
miner and scout, `C`, `O`, `G`, `S` the extractors.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from random_games import quiet_make

from gridmill import Env, games
from gridmill.grid import Ascii

LEGEND = {
    "H": "c:hub", "J": "junction", "K": "c:junction", "a": "c:aligner", "s": "c:scrambler", "m": "c:miner",
    "t": "c:scout", "C": "carbon_extractor", "O": "oxygen_extractor", "G": "germanium_extractor",
    "S": "silicon_extractor",
}  # fmt: skip
ELEMENTS = ("carbon", "oxygen", "germanium", "silicon")


def small(text: str, start: dict[str, int] | None = None, **sizes: Any) -> Env:
    """The game on a picture, its rows filled up with floor; `start` changes what agents begin with."""
    rows = text.split("\n")
    text = "\n".join(row.ljust(max(map(len, rows)), ".") for row in rows)
    sizes = {"num_agents": sum(c == "@" for c in text), "clips": "no_clips"} | sizes
    game = games.cogsguard(**sizes).replace("map", Ascii(text=text, legend=LEGEND))
    if start is not None:
        game = game.replace("agent.inventory", dict(game.agent.inventory) | start)
    env = quiet_make(game, num_worlds=1, masks=True, validation=True)
    env.reset()
    return env


def wait(env: Env, ticks: int) -> None:
    for _ in range(ticks):
        env.step(np.zeros(env.num_rows, np.int32))


def store(env: Env) -> dict[str, int]:
    return dict(env.inspect(0)["collectives"]["cogs"]["inventory"])


def found(env: Env, kind: str) -> list[dict[str, Any]]:
    return [o for o in env.inspect(0)["objects"] if o["type"] == kind]


def holders(env: Env, world: int = 0) -> Counter[str | None]:
    """Junctions by collective."""
    return Counter(o["collective"] for o in env.inspect(world)["objects"] if o["type"] == "junction")
