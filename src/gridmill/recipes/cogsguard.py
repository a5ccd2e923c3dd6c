"""Holding junctions together: rewards come late and are shared, so the horizon is long."""

from __future__ import annotations

from gridmill import games
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig, Value


def cogsguard() -> Run:
    """Eight agents that mine, make hearts and hold junctions against the clips."""
    return Run(
        recipe="cogsguard",
        game=games.cogsguard(),
        policy=PolicyConfig(encoder="bag", core="scan", hidden=128),
        losses={"ppo": PPO(entropy_weight=Schedule(start=0.02, end=0.004)), "value": Value(weight=0.5)},
        optimizer=OptimizerConfig(learning_rate=Schedule(start=1e-3, end=1e-4), max_grad_norm=2.0),
        trainer=TrainerConfig(
            total_timesteps=200_000_000,
            num_worlds=64,  # 512 rows x 128 ticks
            batch_size=65_536,
            minibatch_size=8_192,
            gamma=0.998,
            reward="scaled",
        ),
    )
