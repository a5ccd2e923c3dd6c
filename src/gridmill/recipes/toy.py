"""The benchmark world: nothing to win, so all that can be seen is how fast it trains."""

from __future__ import annotations

from gridmill import games
from gridmill.run import Run, TrainerConfig


def toy() -> Run:
    """Agents walking among walls, to measure speed; there are no rewards."""
    return Run(
        recipe="toy",
        game=games.toy(),
        trainer=TrainerConfig(num_worlds=64, batch_size=81_920, minibatch_size=8_192, bptt_horizon=64),
    )
