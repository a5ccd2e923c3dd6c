"""gridmill: a high-throughput multi-agent grid world with a native core."""

from importlib.metadata import version

from gridmill import games
from gridmill.config import Config, ConfigError
from gridmill.env import Env, Feature, Token, TokenBudgetWarning, make
from gridmill.grid import Game

__version__ = version("gridmill")

__all__ = [
    "Config", "ConfigError", "Env", "Feature", "Game", "Token", "TokenBudgetWarning", "games", "make",
]  # fmt: skip
