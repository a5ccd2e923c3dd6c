"""Recipes: functions that return one frozen `Run`, everything about a training run.

The ones that ship have a file each, with a function of the same name: a new recipe is a new file. `build` also takes a
recipe, or a bare game, of your own.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from gridmill import games
from gridmill.config import did_you_mean, user_code
from gridmill.config.install import command
from gridmill.config.text import clipped
from gridmill.env.kind import GameConfig
from gridmill.run import Run

__all__ = ["build", "maker", "names"]


def names() -> list[str]:
    """Names of the recipes that ship, which are the names of the files in this folder."""
    return sorted(file.name for file in iter_modules(__path__))


def maker(name: str) -> Callable[[], Run]:
    """The function behind a name."""
    if name in names():
        recipe: Callable[[], Run] = getattr(import_module(f"{__name__}.{name}"), name)
        return recipe
    hint = did_you_mean(name, names())
    if name in games.names():
        hint = f", but a game: `{command('train', 'arena', f'game={name}')}`"
    raise ValueError(f"unknown recipe `{clipped(name)}`{hint} - recipes: {', '.join(names())}")


def build(text: str) -> Run:
    """A run by NAME, `path/to/file.py[:function]` or `package.module:function`.

    Your own function may also return only a game, which is trained with the default settings.
    """
    if not user_code.is_own(text):
        return maker(text)()
    found = user_code.call(text, "recipe")
    if isinstance(found, GameConfig):
        return Run(recipe=text, game=found)
    if not isinstance(found, Run):
        raise TypeError(f"`{text}`: expected a function that returns a Run or a Game, got {type(found).__name__}")
    return found
