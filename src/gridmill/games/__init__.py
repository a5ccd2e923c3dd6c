"""The games that ship: each a function of its sizes that returns a frozen `Game`, or of its settings (Prospector)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gridmill import own_code
from gridmill.config import did_you_mean
from gridmill.games.arena import arena, arena_basic, arena_basic_easy_shaped
from gridmill.games.cogsguard import cogsguard, cogsguard_arena
from gridmill.games.extractor_hub import extractor_hub
from gridmill.games.navigation import navigation, navigation_eval, navigation_eval_names
from gridmill.games.toy import toy
from gridmill.grid import Game
from gridmill.prospector.config import ProspectorConfig

__all__ = [
    "AnyGame",
    "arena",
    "arena_basic",
    "arena_basic_easy_shaped",
    "build",
    "cogsguard",
    "cogsguard_arena",
    "extractor_hub",
    "grid_names",
    "maker",
    "names",
    "navigation",
    "navigation_eval",
    "navigation_eval_names",
    "prospector",
    "toy",
]

AnyGame = Game | ProspectorConfig


def prospector(**settings: Any) -> ProspectorConfig:
    """One ship among asteroids: mine, sell, come home in time."""
    return ProspectorConfig(**settings)


_GRIDS: tuple[Callable[..., Game], ...] = (
    toy,
    arena,
    arena_basic,
    arena_basic_easy_shaped,
    navigation,
    cogsguard,
    cogsguard_arena,
    extractor_hub,
)
_SHIPPED: tuple[Callable[..., AnyGame], ...] = (*_GRIDS, prospector)


def names() -> list[str]:
    """Names of the games that ship, in the order of the docs."""
    return [make.__name__ for make in _SHIPPED]


def grid_names() -> list[str]:
    """Names of those that the grid engine plays."""
    return [make.__name__ for make in _GRIDS]


def maker(name: str) -> Callable[..., AnyGame]:
    """The function that makes a game, by its name."""
    for make in _SHIPPED:
        if make.__name__ == name:
            return make
    raise ValueError(f"unknown game `{name}`{did_you_mean(name, names())} - games: {', '.join(names())}")


def build(name: str, **sizes: Any) -> AnyGame:
    """A shipped game by name, or one of your own by `path/to/file.py[:function]` or `package.module:function`.

    Keyword arguments are the parameters of its function.
    """
    if not own_code.is_own(name):
        return maker(name)(**sizes)
    game = own_code.call(name, "game", **sizes)
    if not isinstance(game, AnyGame):
        raise TypeError(f"`{name}`: expected a function that returns a Game, got {type(game).__name__}")
    return game
