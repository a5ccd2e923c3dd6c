"""Looking for altars, every agent alone: what was seen must be remembered, and places differ in every episode."""

from __future__ import annotations

from gridmill import games
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig, Value


def navigation() -> Run:
    """Hearts of altars scattered over rooms, mazes and caves."""
    return Run(
        recipe="navigation",
        game=games.navigation(),
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
