"""The arena with lasers, where only hearts pay: learned from what agents move, as in the easy one, for longer.

From hearts alone it is not learned: a heart takes three ore, three batteries and a walk between machines, and policies
settle down before they have made any. docs/lab/recipes.md has the measurements.
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
