"""Recipes: functions that return one frozen `Run`, everything about a training run.

The ones that ship have a file each; `build` also takes a recipe, or a bare game, of your own.
"""

from __future__ import annotations

from collections.abc import Callable

from gridmill import games, own_code
from gridmill.config import did_you_mean
from gridmill.env.kind import GameConfig
from gridmill.recipes.arena import arena
from gridmill.recipes.arena_basic_easy_shaped import arena_basic_easy_shaped
from gridmill.recipes.ci import ci
from gridmill.recipes.cogsguard import cogsguard
from gridmill.recipes.navigation import navigation
from gridmill.recipes.prospector import prospector
from gridmill.recipes.toy import toy
from gridmill.run import Run

__all__ = ["build", "maker", "names"]

_SHIPPED: tuple[Callable[[], Run], ...] = (
    toy,
    arena,
    arena_basic_easy_shaped,
    navigation,
    cogsguard,
    prospector,
    ci,
)


def names() -> list[str]:
    """Names of the recipes that ship, in the order of the docs."""
    return [recipe.__name__ for recipe in _SHIPPED]


def maker(name: str) -> Callable[[], Run]:
    """The function behind a name."""
    for recipe in _SHIPPED:
        if recipe.__name__ == name:
            return recipe
    hint = did_you_mean(name, names())
    if name in games.names():
        hint = f", but a game: `gridmill train arena game={name}`"
    raise ValueError(f"unknown recipe `{name}`{hint} - recipes: {', '.join(names())}")


def build(text: str) -> Run:
    """A run by NAME, `path/to/file.py[:function]` or `package.module:function`.

    A function of your own may also return just a game: it is trained with the default settings.
    """
    if not own_code.is_own(text):
        return maker(text)()
    found = own_code.call(text, "recipe")
    if isinstance(found, GameConfig):
        return Run(recipe=text, game=found)
    if not isinstance(found, Run):
        raise TypeError(f"`{text}`: expected a function that returns a Run or a Game, got {type(found).__name__}")
    return found
