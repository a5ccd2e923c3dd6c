"""What every game has: an `Env` over a native batch, its episodes and windows. Nothing here knows a game."""

from gridmill.env.env import Env
from gridmill.env.episodes import Episodes
from gridmill.env.kind import GameConfig, PlayerLike, Score

__all__ = ["Env", "Episodes", "GameConfig", "PlayerLike", "Score"]
