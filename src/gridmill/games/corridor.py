"""Corridor: the smallest whole game, to copy when you write one of your own (docs/add-a-game.md).

One agent in a row of cells goes to the far end. Its rules are native/corridor/; this file is all there is in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from gridmill import _native
from gridmill.env import Env, GameConfig, Score


class CorridorEnv(Env):
    """Observations are float32 [rows, 3]: how far it has come, what is left of the way and of the time."""

    def __init__(self, games: Sequence[GameConfig], **options: Any) -> None:
        super().__init__(_native.CorridorBatch, games, options)
        self.action_names = ["stay", "left", "right"]


class Corridor(GameConfig):
    """A corridor of `length` cells; the far end is worth 1 and ends the episode."""

    kind: Literal["corridor"] = "corridor"
    name: Literal["corridor"] = "corridor"
    num_agents: Literal[1] = 1
    score: Score = Score(stat="reached")
    length: Annotated[int, Field(ge=2, le=1_000_000)] = 8
    max_steps: Annotated[int, Field(ge=1, le=1_000_000_000)] = 50

    obs_kind = "vector"
    not_compiled = (*GameConfig.not_compiled, "name", "num_agents")

    @classmethod
    def env_class(cls, implementation: str = "native") -> type[Env]:
        return CorridorEnv


def corridor(length: int = 8, max_steps: int = 50) -> Corridor:
    """One agent in a row of cells: go right until the end. The smallest complete game, to copy."""
    return Corridor(length=length, max_steps=max_steps)


GAMES = (corridor,)
