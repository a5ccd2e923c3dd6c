"""The smallest run that learns: for every change, and to see that an installation works."""

from __future__ import annotations

from gridmill.recipes.arena_basic_easy_shaped import arena_basic_easy_shaped
from gridmill.run import Run


def ci() -> Run:
    """arena_basic_easy_shaped in two worlds of 24 agents: a minute on two cores."""
    return arena_basic_easy_shaped().replace_all(
        [
            ("recipe", "ci"),
            ("trainer.num_worlds", 2),  # 48 rows x 192 ticks
            ("trainer.batch_size", 9_216),
            ("trainer.minibatch_size", 2_304),
            ("trainer.total_timesteps", 1_843_200),
        ]
    )
