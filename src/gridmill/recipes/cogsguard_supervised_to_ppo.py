"""CogsGuard from its script to PPO: imitate first, then learn from rewards with a pull that stays.

The script acts in half of the rows at first, so that the policy sees what comes late in an episode, and in none when
PPO begins. A supervised phase that simply ends loses what it gained: the weight of imitation falls to a floor, and
stays there.
"""

from __future__ import annotations

from gridmill.losses.clone import Clone
from gridmill.recipes.cogsguard import cogsguard
from gridmill.run import PPO, Run, Schedule, Value

SUPERVISED = 10_000_000
WEANED = 30_000_000  # the pull has come to its floor


def cogsguard_supervised_to_ppo() -> Run:
    """Imitate CogsGuard's script for 10 M agent-steps, then PPO with some imitation until the end."""
    clone = Clone(
        weight=Schedule(start=1.0, end=0.05, begin=SUPERVISED, until=WEANED),
        lead=Schedule(start=0.5, end=0.0, until=SUPERVISED),
    )
    return cogsguard().replace_all(
        [
            ("recipe", "cogsguard_supervised_to_ppo"),
            ("teacher", "cogsguard"),
            ("supervised_steps", SUPERVISED),
            ("losses", {"ppo": PPO(entropy_weight=0.002), "value": Value(weight=0.5), "clone": clone}),
            ("optimizer.learning_rate", Schedule(start=1e-3, end=1e-4)),
            ("trainer.total_timesteps", 60_000_000),
        ]
    )
