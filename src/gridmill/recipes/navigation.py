"""Looking for altars, every agent alone: what was seen must be remembered, and places differ in every episode.

It is learned from a curriculum: one kind of land in each episode, or land of all kinds side by side as in the game
itself, with few altars or many. Evaluation plays the game itself, with ten altars in each place.
"""

from __future__ import annotations

from gridmill import games
from gridmill.curriculum.config import CurriculumConfig, Range, TaskSet
from gridmill.games.navigation import Land
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig, Value

LANDS: tuple[Land, ...] = ("maze", "rooms", "open")
PLACES = 3  # of the game itself are drawn; the fourth is a picture


def altars(place: int, most: int) -> Range:
    """From three altars to so many in a place that is drawn."""
    return Range(path=f"map.maps.{place}.layers.1.counts.altar", low=3, high=most)


def navigation() -> Run:
    """Hearts from altars in rooms, mazes and open land, from few altars to many."""
    sets: dict[str, TaskSet] = {
        land: TaskSet(game=games.navigation(land=land), vary=(altars(0, 50),), target=0.9) for land in LANDS
    }
    sets["all"] = TaskSet(vary=tuple(altars(place, 20) for place in range(PLACES)), weight=3.0, target=0.9)
    return Run(
        recipe="navigation",
        game=games.navigation(),
        curriculum=CurriculumConfig(sets=sets, tasks=144),
        policy=PolicyConfig(encoder="bag", core="scan", hidden=128),
        losses={"ppo": PPO(entropy_weight=Schedule(start=0.02, end=0.004)), "value": Value(weight=0.5)},
        optimizer=OptimizerConfig(learning_rate=Schedule(start=2e-3, end=2e-4), max_grad_norm=2.0),
        trainer=TrainerConfig(
            total_timesteps=50_000_000,
            num_worlds=128,  # 512 rows x 64 ticks
            batch_size=32_768,
            minibatch_size=4_096,
            gamma=0.995,
            reward="scaled",
        ),
    )
