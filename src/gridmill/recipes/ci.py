"""The smallest run that learns: for every change, and to see that an installation works. A shorter view and a lighter
critic learn the first hearts sooner, and stop at fewer.
"""

from __future__ import annotations

from gridmill.recipes.arena_basic_easy_shaped import arena_basic_easy_shaped
from gridmill.run import Run, Schedule


def ci() -> Run:
    """arena_basic_easy_shaped in two worlds of 24 agents: a minute on two cores."""
    return arena_basic_easy_shaped().replace_all(
        [
            ("recipe", "ci"),
            ("losses.ppo.entropy_weight", Schedule(start=0.02, end=0.002)),
            ("losses.value.weight", 1.0),
            ("trainer.num_worlds", 2),  # 48 rows x 192 ticks
            ("trainer.batch_size", 9_216),
            ("trainer.minibatch_size", 2_304),
            ("trainer.bptt_horizon", 64),
            ("trainer.total_timesteps", 1_843_200),
            ("trainer.gamma", 0.99),
            ("trainer.gae_lambda", 0.97),
            ("trainer.shared_advantage", 0.0),
        ]
    )
