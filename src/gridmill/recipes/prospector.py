"""Prospector, trained on profit.

The game's own reward is frozen and pays for ending at once, so it is not what is learned from here. The same game with
other weights is: net profit as the game counts it (what is spent counts twice), a little for what is mined, a fine for
losing the ship worth the profit of two trips, and so little for time that nobody stays for nothing. Fuel and repairs
pay much later, hence the long view (gamma, lambda). With much higher fines from the beginning no ship found out that
they pay; a second run that begins with the first's weights can have one (docs/training.md). Evaluation plays the
frozen game and shows its return, profit and survival side by side.
"""

from __future__ import annotations

from gridmill import games
from gridmill.prospector.config import ProspectorConfig
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig, Value


def for_profit() -> ProspectorConfig:
    """The game to learn in."""
    return games.prospector(
        alpha_extract=0.005,
        beta_fuel=0.0,
        gamma_time=0.00005,
        delta_wear=0.0,
        epsilon_heat=0.0,
        zeta_damage=0.0,
        kappa_pirate=0.0,
        scan_cost=0.0,
        invalid_pen=0.01,
        stranded_pen=5.0,
        destroyed_pen=5.0,
        terminal_bonus=0.0,
        spend_again=1.0,
    )


def prospector() -> Run:
    """One ship, two dense layers of 128, learning from profit instead of the frozen reward."""
    return Run(
        recipe="prospector",
        game=for_profit(),
        evaluation_game=games.prospector(),
        policy=PolicyConfig(encoder="mlp", core="none", hidden=128, layers=1),
        losses={"ppo": PPO(entropy_weight=Schedule(start=0.02, end=0.001)), "value": Value(weight=1.0)},
        optimizer=OptimizerConfig(learning_rate=Schedule(start=1e-3, end=1e-4), max_grad_norm=2.0),
        trainer=TrainerConfig(
            total_timesteps=48_000_000,
            num_worlds=1_024,  # 1 024 rows x 32 ticks
            batch_size=32_768,
            minibatch_size=4_096,
            bptt_horizon=32,
            gamma=0.999,
            gae_lambda=0.98,
            reward="scaled",
        ),
    )
