"""Holding junctions together: a junction takes gear, a heart of 40 mined units, and a way that nobody sees beforehand.

The game pays all agents alike for every junction that is held, so hardly anything an agent does changes what it is
paid. Here each learns from its own steps on the way: mining, delivering, hearts, gear, junctions. Gear that is lost
takes back what it brought, and nothing else can be gained twice. Episodes are short, because most of what is to be
learned happens in the first ticks: one of 10 000 ticks takes 5 M agent-steps in 512 rows. Evaluation plays the game
itself and counts junctions. From scratch this learns little; cogsguard_supervised_to_ppo imitates the script first
(docs/lab/recipes.md).
"""

from __future__ import annotations

from gridmill import games
from gridmill.curriculum.config import CurriculumConfig, TaskSet, Values
from gridmill.games.cogsguard_rewards import ELEMENTS, VIBES
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, SignalTerm, TrainerConfig, Value

GEAR = ("aligner", "miner", "scrambler")
LENGTHS = (250, 500, 1_000, 2_000)  # of an episode
WEIGHTS = {
    "junction.aligned_by_agent": 2.0,
    "junction.scrambled_by_agent": 1.0,
    "cogs/aligned.junction.held": 0.0005,
    "heart.get": 0.3,
    # The 40 units of a heart bring 1.1.
    **{f"{element}.get": 0.003 for element in ELEMENTS},
    **{f"{element}.put": 0.025 for element in ELEMENTS},
    **{f"{gear}.gained": 0.2 for gear in GEAR},
    **{f"{gear}.lost": -0.2 for gear in GEAR},
    "cell.visited": 0.001,
    **{f"action.change_vibe_{vibe}.success": -0.005 for vibe in VIBES},
}


def cogsguard() -> Run:
    """Eight agents that mine, make hearts and hold junctions against the clips."""
    return Run(
        recipe="cogsguard",
        game=games.cogsguard(),
        curriculum=CurriculumConfig(
            sets={"short": TaskSet(vary=(Values(path="max_steps", values=LENGTHS),), target=10.0)},
            choose="uniform",
            tasks=len(LENGTHS),
        ),
        policy=PolicyConfig(encoder="bag", core="scan", hidden=128, name_agents=True),
        losses={"ppo": PPO(entropy_weight=Schedule(start=0.02, end=0.004)), "value": Value(weight=0.5)},
        optimizer=OptimizerConfig(learning_rate=Schedule(start=1e-3, end=1e-4), max_grad_norm=2.0),
        trainer=TrainerConfig(
            total_timesteps=60_000_000,
            num_worlds=64,  # 512 rows x 128 ticks
            batch_size=65_536,
            minibatch_size=4_096,
            gamma=0.998,
            reward="scaled",
            signal=tuple(SignalTerm(value=name, weight=weight) for name, weight in WEIGHTS.items()),
        ),
    )
