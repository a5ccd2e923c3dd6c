"""gridmill: a high-throughput multi-agent grid world with a native core.

The public names. They are loaded on first use, so that `gridmill --help` does not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridmill import games as games
    from gridmill.config import Config as Config
    from gridmill.config import ConfigError as ConfigError
    from gridmill.env.env import Env as Env
    from gridmill.games.make import make as make
    from gridmill.grid import Game as Game
    from gridmill.grid.env import Feature as Feature
    from gridmill.grid.env import Token as Token
    from gridmill.grid.env import TokenBudgetWarning as TokenBudgetWarning

    __version__: str

_HOMES = {
    "gridmill.config": ("Config", "ConfigError"),
    "gridmill.env.env": ("Env",),
    "gridmill.games.make": ("make",),
    "gridmill.grid": ("Game",),
    "gridmill.grid.env": ("Feature", "Token", "TokenBudgetWarning"),
}
__all__ = ["Config", "ConfigError", "Env", "Feature", "Game", "Token", "TokenBudgetWarning", "games", "make"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("gridmill")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    if name in ("games", "grid", "prospector", "_native"):
        return import_module(f"gridmill.{name}")
    raise AttributeError(f"module 'gridmill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
