"""The arena to learn in. Rewards are small, so returns are scaled, and the critic has a large share of the loss.

Agents who learn for themselves alone come to guard what they put into a machine, and wait beside it. So, once they can
make hearts, the advantages of those in sight count as much as their own. docs/lab/recipes.md has the measurements.
"""

from __future__ import annotations

from gridmill import games
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig, Value


def arena_basic_easy_shaped() -> Run:
    """Hearts in the easy arena: a bag of tokens, a gated scan, PPO with one epoch."""
    return Run(
        recipe="arena_basic_easy_shaped",
        game=games.arena_basic_easy_shaped(),
        policy=PolicyConfig(encoder="bag", core="scan", hidden=128),
        losses={
            "ppo": PPO(clip=0.2, entropy_weight=Schedule(start=0.02, end=0.001, until=24e6)),
            "value": Value(weight=2.0),
        },
        optimizer=OptimizerConfig(learning_rate=Schedule(start=2e-3, end=2e-4), eps=1e-5, max_grad_norm=2.0),
        trainer=TrainerConfig(
            total_timesteps=48_000_000,
            num_worlds=42,  # 1 008 rows x 50 ticks
            batch_size=50_400,
            minibatch_size=4_200,
            bptt_horizon=50,
            gamma=0.998,
            gae_lambda=0.95,
            reward="scaled",
            shared_advantage=Schedule(start=0.0, end=1.0, begin=3e6, until=10e6),
        ),
    )
