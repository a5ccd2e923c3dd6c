"""gridmill: a fast multi-agent grid world with a native core.

The public names. They are loaded on first use, so that `gridmill --help` does not wait for NumPy. The Gymnasium ids
(`gridmill/arena-v0`) are registered when Gymnasium is imported, before or after gridmill; this module does not import
it.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
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


class _WhenGymnasiumComes(PathFinder):
    """Finds Gymnasium as Python would, and registers our ids once it is loaded."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        found = super().find_spec(fullname, path, target)
        if found is not None and found.loader is not None:
            loader: Any = found.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)  # only now: somebody may have asked whether it is installed
                if cls in sys.meta_path:
                    sys.meta_path.remove(cls)
                import_module("gridmill.adapters")

            loader.exec_module = exec_module
        return found


if "gymnasium" in sys.modules:
    import_module("gridmill.adapters")
else:
    sys.meta_path.insert(0, _WhenGymnasiumComes)
