"""Prospector, trained on profit.

The game's own reward is frozen and pays for ending at once, so it is not what is learned from here: the signal is. Net
profit as the game counts it (what is spent counts twice), a little for what is mined, a fine for losing the ship worth
the profit of two trips, and so little for time that nobody stays for nothing. Fuel and repairs pay much later, hence
the long view (gamma, lambda). With much higher fines from the beginning no ship found out that they pay; a second run
that begins with the first's weights can have one (docs/training.md). Tables show the game's return, profit and survival
side by side.
"""

from __future__ import annotations

from gridmill import games
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, SignalTerm, TrainerConfig, Value

PROFIT = {
    "step.credits": 1.0,
    "step.extracted": 0.005,
    "step.ticks": -0.00005,
    "step.invalid": -0.01,
    "step.spent": -1.0,
    "step.stranded": -5.0,
    "step.destroyed": -5.0,
}


def prospector() -> Run:
    """One ship, two dense layers of 128, learning from profit instead of the frozen reward."""
    return Run(
        recipe="prospector",
        game=games.prospector(),
        policy=PolicyConfig(encoder="mlp", core="none", hidden=128, layers=1),
        losses={"ppo": PPO(entropy_weight=Schedule(start=0.02, end=0.001)), "value": Value(weight=1.0)},
        optimizer=OptimizerConfig(learning_rate=Schedule(start=1e-3, end=1e-4), max_grad_norm=2.0),
        trainer=TrainerConfig(
            total_timesteps=48_000_000,
            num_worlds=1_024,  # 1 024 rows x 32 ticks
            batch_size=32_768,
            minibatch_size=4_096,
            bptt_horizon=32,
            signal=tuple(SignalTerm(value=part, weight=weight) for part, weight in PROFIT.items()),
            gamma=0.999,
            gae_lambda=0.98,
            reward="scaled",
        ),
    )
