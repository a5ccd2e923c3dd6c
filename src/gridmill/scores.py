"""The score of a game: the one number per agent and episode that tables, panels and checkpoints compare.

It is what the game is about, which is not always what it pays: shaped rewards and frozen ones can rise while the
score falls. Reads episode records (`Env.take_episodes`); needs neither torch nor an env.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gridmill.config import did_you_mean
from gridmill.games import AnyGame
from gridmill.grid.plant import Plant
from gridmill.prospector.config import ProspectorConfig

HEADS = ("world", "agent", "game", "episode", "desynced")  # which episode it was; the rest of a record is figures
HELD = "cogs/aligned.junction.held"  # junctions, summed over ticks
BESIDE = {
    "arena": ("battery.get", "ore.get"),
    "navigation": ("heart.get", "cell.visited"),
    "cogsguard": ("cogs/aligned.junction.gained", "cogs/aligned.junction.lost", "heart.get"),
    "prospector": ("survival", "profit_per_tick", "overheat_ticks", "pirate_encounters", "length"),
}


def score_name(game: AnyGame, statistic: str = "") -> str:
    """What a game's score is called; `statistic` (`Run.score`) takes the place of the game's own."""
    if statistic:
        return statistic
    if isinstance(game, ProspectorConfig):
        return "net_profit"
    own = {"arena": "heart.get", "navigation": "hearts taken", "cogsguard": "junctions held"}
    return own.get(_family(game), "reward")


def score_of(game: AnyGame, episodes: Mapping[str, NDArray[np.generic]], statistic: str = "") -> NDArray[np.float64]:
    """The score of every agent-episode in a record of `take_episodes`.

    Hearts of navigation are counted against an agent's share of what lies on the map, so that the mean over the
    agents of a world is the share of its hearts that were taken. A team's score is the same for all its agents.
    """
    name = score_name(game, statistic)
    if name == "hearts taken" and not statistic:
        return _column(episodes, "heart.get") / _hearts_per_agent(game)
    if name == "junctions held" and not statistic:
        assert not isinstance(game, ProspectorConfig)
        return _column(episodes, HELD) / game.max_steps
    return _column(episodes, name)


def beside(game: AnyGame) -> tuple[str, ...]:
    """Statistics worth a line under score and reward."""
    return BESIDE.get(_family(game), ("length",))


def _family(game: AnyGame) -> str:
    """The shipped game whose variant this is, by name, if it has what that game's score is counted in."""
    if isinstance(game, ProspectorConfig):
        return "prospector"
    if game.name.startswith("arena") and "heart" in game.resources:
        return "arena"
    if game.name.startswith("navigation") and _hearts_per_agent(game) > 0:
        return "navigation"
    if game.name.startswith("cogsguard") and "cogs" in game.collectives and "junction" in game.objects:
        return "cogsguard"
    return ""


def _hearts_per_agent(game: AnyGame) -> float:
    assert not isinstance(game, ProspectorConfig)
    plant = Plant.of(game)
    lying = sum(plant.counts[name] * plant.waiting(name, "heart") for name in plant.makers("heart"))
    return lying / game.num_agents


def _column(episodes: Mapping[str, NDArray[np.generic]], name: str) -> NDArray[np.float64]:
    if name not in episodes:
        known = [other for other in episodes if other not in HEADS]
        raise ValueError(f"score: unknown statistic `{name}`{did_you_mean(name, known)}")
    return np.asarray(episodes[name], np.float64)
