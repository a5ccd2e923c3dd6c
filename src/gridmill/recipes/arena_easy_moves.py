"""The easy arena, learning from what agents move instead of what the game pays.

The game pays who takes something out of a machine, so agents who learn from its reward put ore in and wait beside it.
Here who puts is paid the most. Ore becomes batteries and batteries become hearts, never the other way round: nothing
can be won by moving things in a circle. Evaluation counts hearts in the same game. docs/lab/recipes.md has the
measurements.
"""

from __future__ import annotations

from gridmill.recipes.arena_basic_easy_shaped import arena_basic_easy_shaped
from gridmill.run import Run, Schedule, SignalTerm

WEIGHTS = {"ore.get": 0.05, "ore.put": 0.35, "battery.get": 0.05, "battery.put": 0.45, "heart.get": 0.1}


def arena_easy_moves() -> Run:
    """Hearts in the easy arena, learned from what agents take and put; each agent learns from its own actions."""
    return arena_basic_easy_shaped().replace_all(
        [
            ("recipe", "arena_easy_moves"),
            ("losses.ppo.entropy_weight", Schedule(start=0.02, end=0.001, until=24e6)),
            ("trainer.total_timesteps", 24_000_000),
            ("trainer.signal", tuple(SignalTerm(value=name, weight=weight) for name, weight in WEIGHTS.items())),
            ("trainer.shared_advantage", 0.0),
        ]
    )
