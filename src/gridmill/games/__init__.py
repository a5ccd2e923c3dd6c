"""The games that ship: each file brings functions that return a frozen game, listed in its `GAMES`.

A file of this folder is found by being here: a new game is a new file. Its functions are also names of this package
(`games.arena(num_agents=12)`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from gridmill.config import did_you_mean, user_code
from gridmill.config.text import clipped
from gridmill.env.kind import GameConfig
from gridmill.games.navigation import navigation_eval, navigation_eval_names

if TYPE_CHECKING:  # for editors; what ships is found by `_found`
    from gridmill.games.arena import arena as arena
    from gridmill.games.arena import arena_basic as arena_basic
    from gridmill.games.arena import arena_basic_easy_shaped as arena_basic_easy_shaped
    from gridmill.games.cogsguard import cogsguard as cogsguard
    from gridmill.games.cogsguard import cogsguard_arena as cogsguard_arena
    from gridmill.games.extractor_hub import extractor_hub as extractor_hub
    from gridmill.games.navigation import navigation as navigation
    from gridmill.games.prospector import prospector as prospector
    from gridmill.games.toy import toy as toy

__all__ = ["build", "maker", "names", "navigation_eval", "navigation_eval_names"]

Maker = Callable[..., GameConfig]


def _found() -> dict[str, Maker]:
    """Every function that makes a game, by its name, in the order of the files."""
    found: dict[str, Maker] = {}
    for file in sorted(iter_modules(__path__), key=lambda file: file.name):
        module = import_module(f"{__name__}.{file.name}")
        found |= {make.__name__: make for make in getattr(module, "GAMES", ())}
    return found


def names(kind: str = "") -> list[str]:
    """Names of the games that ship, or of those of one kind."""
    return [name for name, make in _SHIPPED.items() if not kind or make().kind == kind]


def maker(name: str) -> Maker:
    """The function that makes a game, by its name."""
    found = _SHIPPED.get(name)
    if found is None:
        raise ValueError(f"unknown game `{clipped(name)}`{did_you_mean(name, names())} - games: {', '.join(names())}")
    return found


def build(name: str, **sizes: Any) -> GameConfig:
    """A shipped game by name, or one of your own by `path/to/file.py[:function]` or `package.module:function`.

    Keyword arguments are the parameters of its function.
    """
    if not user_code.is_own(name):
        return maker(name)(**sizes)
    game = user_code.call(name, "game", **sizes)
    if not isinstance(game, GameConfig):
        raise TypeError(f"`{name}`: expected a function that returns a Game, got {type(game).__name__}")
    return game


_SHIPPED = _found()
globals().update(_SHIPPED)  # a file and its function have one name; as a name of this package it means the function
