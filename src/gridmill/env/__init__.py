"""What every game has: an `Env` over a native batch, its episodes and windows. Nothing here knows a game."""

from gridmill.env.env import Env
from gridmill.env.kind import EPISODE_KEYS, GameConfig, Player, Score

__all__ = ["EPISODE_KEYS", "Env", "GameConfig", "Player", "Score"]
