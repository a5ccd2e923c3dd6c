"""Prospector, trained on profit, with a script to begin with.

The game's own reward is frozen and pays for ending at once, so it is not what is learned from here: the signal is. Net
profit as the game counts it (what is spent counts twice), a little for what is mined, a fine for losing the ship, and
so little for time that nobody stays for nothing. Fuel and repairs pay much later, hence the long view (gamma, lambda).
With high fines from the beginning no ship finds out that they pay, so the fine grows when it has; and whether a ship
finds out at all was chance, so it imitates the shuttle at first, and keeps a little of it. Tables show the game's
return, profit and survival side by side.
"""

from __future__ import annotations

from gridmill import games
from gridmill.losses.clone import Clone
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, SignalTerm, TrainerConfig, Value

FINE = Schedule(start=-4.0, end=-28.0, begin=20e6, until=56e6)  # for losing the ship
PROFIT: dict[str, float | Schedule] = {
    "step.credits": 1.0,
    "step.extracted": 0.005,
    "step.ticks": -0.00005,
    "step.invalid": -0.01,
    "step.spent": -1.0,
    "step.stranded": FINE,
    "step.destroyed": FINE,
}


def prospector() -> Run:
    """One ship, two dense layers of 128, learning from profit instead of the game's reward."""
    return Run(
        recipe="prospector",
        game=games.prospector(),
        policy=PolicyConfig(encoder="mlp", core="none", hidden=128, layers=1),
        teacher="shuttle",
        losses={
            "ppo": PPO(entropy_weight=Schedule(start=0.02, end=0.0002)),
            "value": Value(weight=1.0),
            "clone": Clone(weight=Schedule(start=0.3, end=0.01, until=12e6)),
        },
        optimizer=OptimizerConfig(learning_rate=Schedule(start=1e-3, end=1e-4), max_grad_norm=2.0),
        trainer=TrainerConfig(
            total_timesteps=64_000_000,
            num_worlds=1_024,  # 1 024 rows x 32 ticks
            batch_size=32_768,
            minibatch_size=4_096,
            bptt_horizon=32,
            signal=tuple(SignalTerm(value=part, weight=weight) for part, weight in PROFIT.items()),
            gamma=0.999,
            gae_lambda=0.98,
            reward="scaled",
            reward_clip=0.0,  # a fine is many times the deviation of returns
        ),
    )
