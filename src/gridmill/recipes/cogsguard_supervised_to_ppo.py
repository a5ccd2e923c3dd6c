"""CogsGuard from its script to PPO: imitate first, then learn from rewards with a pull that stays.

The script acts in half of the rows at first, so that the policy sees what comes late in an episode, and in none for the
last part of the supervised phase. Its advice comes from a map that it remembers, which the policy cannot know, so the
pull falls soon to a small floor.
"""

from __future__ import annotations

from gridmill.losses.clone import Clone
from gridmill.recipes.cogsguard import cogsguard
from gridmill.run import PPO, Run, Schedule, Value

LED = 3_000_000  # the script acts in some rows until then
SUPERVISED = 5_000_000
WEANED = 10_000_000  # the pull has come to its floor


def cogsguard_supervised_to_ppo() -> Run:
    """Imitate CogsGuard's script for 5 M agent-steps, then PPO with a little imitation until the end."""
    clone = Clone(
        weight=Schedule(start=1.0, end=0.03, begin=SUPERVISED, until=WEANED),
        lead=Schedule(start=0.5, end=0.0, until=LED),
    )
    return cogsguard().replace_all(
        [
            ("recipe", "cogsguard_supervised_to_ppo"),
            ("teacher", "cogsguard"),
            ("supervised_steps", SUPERVISED),
            ("losses", {"ppo": PPO(entropy_weight=0.002), "value": Value(weight=0.5), "clone": clone}),
        ]
    )
