"""The arena to learn in. Rewards are small, so returns are scaled. A discount of 0.99 is about the length of the chain
from ore to heart. It and lambda were chosen by the first 14 M steps of one seed, out of several settings that are
not shown to differ; docs/numbers.md has them all.
"""

from __future__ import annotations

from gridmill import games
from gridmill.run import PPO, Losses, OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig, Value


def arena_basic_easy_shaped() -> Run:
    """Hearts in the easy arena: a bag of tokens, a gated scan, PPO with one epoch."""
    return Run(
        recipe="arena_basic_easy_shaped",
        game=games.arena_basic_easy_shaped(),
        policy=PolicyConfig(encoder="bag", core="scan", hidden=128),
        losses=Losses(
            ppo=PPO(clip=0.2, entropy_weight=Schedule(start=0.02, end=0.002)),
            value=Value(weight=1.0),
        ),
        optimizer=OptimizerConfig(learning_rate=Schedule(start=2e-3, end=2e-4), eps=1e-5, max_grad_norm=2.0),
        trainer=TrainerConfig(
            total_timesteps=50_000_000,
            num_worlds=64,  # 1 536 rows x 64 ticks
            batch_size=98_304,
            minibatch_size=4_096,
            bptt_horizon=64,
            gamma=0.99,
            gae_lambda=0.97,
            reward="scaled",
        ),
    )
