"""The arena with lasers, where only hearts pay: learned from what agents move, as in the easy one, for longer.

A heart takes three ore, three batteries and the ways between machines; from hearts alone it was not learned.
docs/lab/recipes.md has the measurements.
"""

from __future__ import annotations

from gridmill import games
from gridmill.recipes.arena_easy_moves import arena_easy_moves
from gridmill.run import Run


def arena() -> Run:
    """Hearts in the arena with lasers, learned from what agents take and put; for longer than the easy arena."""
    return arena_easy_moves().replace_all(
        [
            ("recipe", "arena"),
            ("game", games.arena()),
            ("losses.ppo.entropy_weight.until", 80e6),
            ("trainer.total_timesteps", 100_000_000),
        ]
    )
