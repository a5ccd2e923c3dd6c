"""The arena with lasers, learned from variants: what is rewarded, what an attack costs, whether machines start stocked.

What is paid in a variant is drawn from buckets of weights and caps; hearts always pay. A variant is scored by hearts,
whatever it pays, and evaluation plays the arena itself, where only hearts do.
"""

from __future__ import annotations

from gridmill import games
from gridmill.curriculum.config import CurriculumConfig, Range, TaskSet, Values
from gridmill.grid import Game, Inventory, RewardTerm
from gridmill.recipes.arena import arena
from gridmill.run import Run

SHAPED = ("ore", "battery", "laser", "armor")
MACHINES = ("mine", "generator", "altar", "lasery", "armory")


def with_stages() -> Game:
    """The arena with a reward term for every stage; as it stands they are worth nothing."""
    game = games.arena()
    stages = [RewardTerm(weight=0.0, value=Inventory(resource=resource), cap=1.0) for resource in SHAPED]
    return game.replace("rewards", [*stages, *game.rewards]).replace("name", "arena_stages")


def arena_curriculum() -> Run:
    """Hearts in the arena, learned from variants: reward weights and caps, attack cost, stocked machines."""
    vary: list[Values | Range] = []
    for place in range(len(SHAPED)):
        vary.append(Values(path=f"rewards.{place}.weight", values=(0.0, 0.1, 0.5, 0.9, 1.0)))
        vary.append(Values(path=f"rewards.{place}.cap", values=(1.0, 2.0)))
    vary.append(Values(path="attack.cost.laser", values=(1, 100)))
    for name in MACHINES:
        vary.append(Values(path=f"objects.{name}.converter.initial_resource_count", values=(0, 1)))
    sets = {"arena": TaskSet(game=with_stages(), vary=tuple(vary), target=5.0)}
    return arena().replace_all(
        [
            ("recipe", "arena_curriculum"),
            ("curriculum", CurriculumConfig(sets=sets, tasks=64, tries=4, patience=16)),
            ("trainer.signal", ()),  # what a variant pays
            ("trainer.total_timesteps", 200_000_000),
        ]
    )
