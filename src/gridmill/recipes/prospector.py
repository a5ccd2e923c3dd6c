"""Prospector, trained on profit.

The game's own reward is frozen and pays for ending at once, so it is not what is learned from here: every step pays the
change of the ship's worth instead. Evaluation shows the frozen return, profit and survival side by side.
"""

from __future__ import annotations

from gridmill import games
from gridmill.run import PPO, Losses, OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig, Value


def prospector() -> Run:
    """One ship, two dense layers of 128, learning from profit instead of the frozen reward."""
    return Run(
        recipe="prospector",
        game=games.prospector(),
        policy=PolicyConfig(encoder="mlp", core="none", hidden=128, layers=2),
        losses=Losses(ppo=PPO(entropy_weight=Schedule(start=0.02, end=0.002)), value=Value(weight=0.5)),
        optimizer=OptimizerConfig(learning_rate=Schedule(start=1e-3, end=1e-4), max_grad_norm=1.0),
        trainer=TrainerConfig(
            total_timesteps=20_000_000,
            num_worlds=512,  # 512 rows x 64 ticks
            batch_size=32_768,
            minibatch_size=4_096,
            gamma=0.998,
            reward="scaled",
        ),
    )
