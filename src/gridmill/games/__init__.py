"""The games that ship: each a function of its sizes that returns a frozen `Game`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gridmill.config import did_you_mean
from gridmill.games.arena import arena, arena_basic, arena_basic_easy_shaped
from gridmill.games.cogsguard import cogsguard, cogsguard_arena
from gridmill.games.extractor_hub import extractor_hub
from gridmill.games.navigation import navigation, navigation_eval, navigation_eval_names
from gridmill.games.toy import toy
from gridmill.grid import Game

__all__ = [
    "arena",
    "arena_basic",
    "arena_basic_easy_shaped",
    "build",
    "cogsguard",
    "cogsguard_arena",
    "extractor_hub",
    "maker",
    "names",
    "navigation",
    "navigation_eval",
    "navigation_eval_names",
    "toy",
]

_SHIPPED: tuple[Callable[..., Game], ...] = (
    toy,
    arena,
    arena_basic,
    arena_basic_easy_shaped,
    navigation,
    cogsguard,
    cogsguard_arena,
    extractor_hub,
)


def names() -> list[str]:
    """Names of the games that ship, in the order of the docs."""
    return [make.__name__ for make in _SHIPPED]


def maker(name: str) -> Callable[..., Game]:
    """The function that makes a game, by its name."""
    for make in _SHIPPED:
        if make.__name__ == name:
            return make
    raise ValueError(f"unknown game `{name}`{did_you_mean(name, names())} - games: {', '.join(names())}")


def build(name: str, **sizes: Any) -> Game:
    """A shipped game by name; keyword arguments are the parameters of its function."""
    return maker(name)(**sizes)
