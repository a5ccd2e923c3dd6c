"""Extractor hub from its script to PPO: hearts take four agents, four elements and vibes, so rewards alone are rare.

Imitation comes first, with the script in half of the rows; then PPO, with a pull to the script that stays.
"""

from __future__ import annotations

from gridmill import games
from gridmill.losses.clone import Clone
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig, Value

SUPERVISED = 5_000_000
WEANED = 20_000_000  # the pull has come to its floor; with a third of that floor the policy forgets again


def extractor_hub_supervised_to_ppo() -> Run:
    """Imitate the script of the extractor hub for 5 M agent-steps, then PPO with some imitation until the end."""
    clone = Clone(
        weight=Schedule(start=1.0, end=0.15, begin=SUPERVISED, until=WEANED),
        lead=Schedule(start=0.5, end=0.0, until=SUPERVISED),
    )
    return Run(
        recipe="extractor_hub_supervised_to_ppo",
        game=games.extractor_hub(),
        teacher="extractor_hub",
        supervised_steps=SUPERVISED,
        policy=PolicyConfig(encoder="bag", core="scan", hidden=128),
        losses={"ppo": PPO(entropy_weight=0.002), "value": Value(weight=0.5), "clone": clone},
        optimizer=OptimizerConfig(learning_rate=Schedule(start=1e-3, end=1e-4), max_grad_norm=2.0),
        trainer=TrainerConfig(
            total_timesteps=55_000_000,
            num_worlds=128,  # 512 rows x 64 ticks
            batch_size=32_768,
            minibatch_size=4_096,
            gamma=0.997,
            reward="scaled",
        ),
    )
