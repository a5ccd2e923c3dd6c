"""Scripted agents: which agents of a world a share of players has, and a script of the core as a player of rows.

The scripts are native (`native/core/script.hpp`); a batch runs them beside its worlds. A script uses only its row of
the observation and a memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def dealt(players: Mapping[str, float], num_agents: int) -> list[str]:
    """The player of each agent, empty where nobody plays; the same in all worlds.

    A share becomes the nearest whole number of agents. They are spread evenly over the numbers of the agents: each in
    turn goes to whoever lags most behind its share, on a tie to the one named first, learners before all.
    """
    shares: dict[str, float] = {}
    for name, share in players.items():
        if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 < share <= 1:
            raise ValueError(f"players: expected a share in (0, 1] for `{name}`, got {share!r}")
        shares[name] = float(share)
    counts = {name: round(share * num_agents) for name, share in shares.items()}
    for name, count in counts.items():
        if count == 0:
            raise ValueError(
                f"players: {shares[name]:g} of {num_agents} agents is no agent for `{name}`; "
                f"expected at least {1 / num_agents:.3g}"
            )
    if sum(counts.values()) > num_agents:
        raise ValueError(f"players: expected shares of at most 1 in all, got {sum(shares.values()):g}")
    counts = {"": num_agents - sum(counts.values())} | counts
    given = dict.fromkeys(counts, 0)
    order: list[str] = []
    for agent in range(num_agents):
        open_names = [name for name in counts if given[name] < counts[name]]
        chosen = max(open_names, key=lambda name: (agent + 1) * counts[name] - num_agents * given[name])
        given[chosen] += 1
        order.append(chosen)
    return order


class ScriptPlayer:
    """A script of the core as a player of any rows; what it remembers of them is the state."""

    masks = False

    def __init__(self, script: Callable[..., Any], name: str, env: Any, seed: int) -> None:
        self._script, self._name, self._seed = script, name, seed
        self._games = [game.core_tree() for game in env.games]

    def act(self, obs: NDArray[Any], state: Any, masks: Any = None) -> tuple[NDArray[np.int32], Any]:
        if state is None:
            state = self._script(self._games, self._name, len(obs), self._seed)
        actions = np.empty(len(obs), np.int32)
        state.act(obs, actions)
        return actions, state

    def reset(self, state: Any, ended: NDArray[np.bool_]) -> Any:
        state.reset(ended)
        return state
