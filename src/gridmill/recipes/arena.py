"""The arena with lasers, where only hearts pay: the settings of the easy one, for longer, each agent for itself."""

from __future__ import annotations

from gridmill import games
from gridmill.recipes.arena_basic_easy_shaped import arena_basic_easy_shaped
from gridmill.run import Run


def arena() -> Run:
    """Hearts in the arena with lasers; the settings of arena_basic_easy_shaped."""
    return arena_basic_easy_shaped().replace_all(
        [
            ("recipe", "arena"),
            ("game", games.arena()),
            ("trainer.total_timesteps", 200_000_000),
            ("trainer.shared_advantage", 0.0),
        ]
    )
