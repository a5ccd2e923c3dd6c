"""The benchmark world: agents that walk among walls. Nothing to win, everything to measure."""

from __future__ import annotations

from typing import Literal

from gridmill.grid import Game, Observation, Scatter


def toy(
    num_agents: int = 20,
    map_size: int = 40,
    density: float = 0.04,
    max_steps: int = 1000,
    window: Literal["square", "disc"] = "square",
) -> Game:
    """Agents walking among scattered walls: noop and eight moves, the world of the step benchmark."""
    if not 0 <= density < 1:
        raise ValueError(f"density: expected a number in [0, 1), got {density}")
    walls = round(density * map_size * map_size)
    return Game(
        name="toy",
        num_agents=num_agents,
        max_steps=max_steps,
        map=Scatter(height=map_size, width=map_size, border=1, objects={"wall": walls}),
        observation=Observation(window=window),
    )


GAMES = (toy,)
