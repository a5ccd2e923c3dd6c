"""Scripted agents: which agents of a world a share of players has, and a script of the core as a player of rows.

The scripts are native (`native/core/script.hpp`); a batch runs them beside its worlds. A script uses only its row of
the observation and a memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Part = float | tuple[int, ...] | str  # of the agents of a world: a share, the agents themselves, or their team
Teams = Callable[[], list[str]]  # the team of each agent, asked for only where one is named


def dealt(players: Mapping[str, Part], num_agents: int, teams: Teams = list, first: Collection[str] = ()) -> list[str]:
    """The player of each agent, empty where nobody plays; the same in all worlds.

    Who is given agents, or a team, has those. A share becomes the nearest whole number of agents, spread evenly over
    the agents that are left: each in turn goes to whoever lags most behind its share, on a tie to the one named first,
    learners before all. Shares of `first` are dealt before all others.
    """
    order = _named(players, num_agents, teams)
    shares = {name: _share(name, part) for name, part in players.items() if not isinstance(part, str | list | tuple)}
    if sum(_counts(shares, num_agents).values()) > order.count(""):
        raise ValueError(f"players: expected shares of at most {_left(order)} in total, got {sum(shares.values()):g}")
    for group in ([name for name in shares if name in first], [name for name in shares if name not in first]):
        _deal(_counts({name: shares[name] for name in group}, num_agents), order)
    return order


def _named(players: Mapping[str, Part], num_agents: int, teams: Teams) -> list[str]:
    """Agents that are given by their numbers, or as a team."""
    order = [""] * num_agents
    for name, part in players.items():
        agents: Sequence[Any] = ()
        if isinstance(part, str):
            known = teams()
            agents = [agent for agent, team in enumerate(known) if team == part]
            if not agents:
                listed = ", ".join(dict.fromkeys(known)) or "this game has none"
                raise ValueError(f"players: expected a team for `{name}` ({listed}), got {part!r:.40}")
        elif isinstance(part, list | tuple):
            agents = part
            if not agents:
                raise ValueError(f"players: expected a share, agents or a team for `{name}`, got no agents")
        for agent in agents:
            if isinstance(agent, bool) or not isinstance(agent, int | np.integer) or not 0 <= agent < num_agents:
                raise ValueError(f"players: expected agents 0 to {num_agents - 1} for `{name}`, got {agent!r:.40}")
            if order[agent]:
                raise ValueError(f"players: agent {agent} is given to `{order[agent]}` and to `{name}`")
            order[agent] = name
    return order


def _share(name: str, share: Any) -> float:
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 < share <= 1:
        raise ValueError(f"players: expected a share in (0, 1] for `{name}`, got {share!r}")
    return float(share)


def _counts(shares: Mapping[str, float], num_agents: int) -> dict[str, int]:
    counts = {name: round(share * num_agents) for name, share in shares.items()}
    for name, count in counts.items():
        if count == 0:
            raise ValueError(
                f"players: {shares[name]:g} of {num_agents} agents is less than one agent for `{name}`; "
                f"expected at least {1 / num_agents:.3g}"
            )
    return counts


def _left(order: list[str]) -> str:
    return f"{order.count('') / len(order):.3g}"


def _deal(counts: dict[str, int], order: list[str]) -> None:
    """Spread players evenly over the agents that nobody has yet."""
    free = [agent for agent, name in enumerate(order) if not name]
    counts = {"": len(free) - sum(counts.values())} | counts
    given = dict.fromkeys(counts, 0)
    for place, agent in enumerate(free):
        open_names = [name for name in counts if given[name] < counts[name]]
        order[agent] = max(open_names, key=lambda name: (place + 1) * counts[name] - len(free) * given[name])
        given[order[agent]] += 1


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
