"""Learning works. Recipes reach their score within a budget of steps; no clock is looked at.

`toy` pays nothing, and `cogsguard` is not learned from scratch: they have no row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import berries, epochs_of, tiny

from gridmill import recipes
from gridmill.run import OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig
from gridmill.runs import train

pytestmark = pytest.mark.N3

REWARD = 0.002  # of a step of one agent; an untrained policy gets a tenth of it
HEARTS = 4.0  # per agent and episode; random play makes 1.4
BERRIES = 5.0  # random play makes 1.97 (512 episodes)
RECIPES = {"arena_basic_easy_shaped": 15.0, "ci": 4.0}  # random play makes 1.4
# Steps of the beginning of a run, and the score.
FIRST_STEPS = {
    "arena_easy_moves": (1_000_000, 2.5),  # random play makes 1.4
    "navigation": (800_000, 0.3),  # 0.17
}
BEGINNINGS = {
    "arena": (4_000_000, 1.5),  # random play makes 0.3
    "arena_easy_moves": (8_000_000, 15.0),  # 1.4; the length of `make demo`
    "navigation": (4_000_000, 0.45),  # 0.17
    "prospector": (8_000_000, 1_000.0),  # 5
}


def arena_run(steps: int) -> Run:
    """The recipe `ci` in 64 worlds: the first steps of a run of 50 M."""
    whole = 50e6
    return recipes.build("ci").replace_all(
        [
            ("run", "mine"),
            ("trainer.num_worlds", 64),
            ("trainer.batch_size", 98_304),
            ("trainer.minibatch_size", 4_096),
            ("trainer.total_timesteps", steps),
            ("trainer.device", "cpu"),
            ("optimizer.learning_rate.until", whole),  # as far along as the whole run would be
            ("losses.ppo.entropy_weight.until", whole),
        ]
    )


@pytest.mark.long
def test_the_arena_pays_more_and_more(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """The recipe `ci` in 64 worlds: within 1.1 M agent-steps the reward of a step is ten times the first."""
    result = train(arena_run(11 * 98_304), tmp_path, panel=False)
    assert result.exit_code == 0
    rewards = [record["reward"] for record in epochs_of(result.folder)]
    record_property("figure", f"reward {rewards[0]:.5f} -> {rewards[-1]:.5f}, {result.agent_steps:,} steps")
    assert rewards[0] < REWARD / 5
    assert rewards[-1] >= REWARD


@pytest.mark.long
def test_the_arena_is_learned_from_scratch(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """The same for 3 M agent-steps: hearts."""
    result = train(arena_run(3_000_000), tmp_path, panel=False)
    record_property("figure", f"heart.get {result.score:.2f}, {result.agent_steps:,} steps, {result.seconds:.0f} s")
    assert result.exit_code == 0
    assert result.score is not None
    assert result.score >= HEARTS


@pytest.mark.parametrize("core", ["scan", *(pytest.param(core, marks=pytest.mark.long) for core in ("none", "lstm"))])
def test_a_small_game_is_learned_in_seconds(
    core: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Berries, for every core: twice what random play picks."""
    run = tiny(1, core).replace_all(
        [
            ("run", "mine"),
            ("game", berries()),
            ("policy", PolicyConfig.load({"core": core, "hidden": 32})),
            ("optimizer", OptimizerConfig(learning_rate=Schedule(start=5e-3, end=5e-4), max_grad_norm=2.0)),
            (
                "trainer",
                TrainerConfig(
                    total_timesteps=80_000,
                    num_worlds=64,
                    threads=1,
                    batch_size=2_560,
                    minibatch_size=640,
                    bptt_horizon=20,
                    update_epochs=2,
                    gamma=0.9,
                    device="cpu",
                    reward="scaled",
                ),
            ),
        ]
    )
    result = train(run, tmp_path, panel=False)
    record_property("figure", f"{core}: berry.get {result.score:.2f}, {result.seconds:.1f} s")
    assert result.score is not None
    assert result.score >= BERRIES


@pytest.mark.parametrize("name", FIRST_STEPS)
def test_recipes_learn_from_the_first_steps(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A few seconds of two recipes, on every change."""
    steps, score = FIRST_STEPS[name]
    reaches(beginning(name, steps).replace("trainer.threads", 1), 0, score, tmp_path, record_property)


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", RECIPES)
def test_recipes_reach_their_score(
    name: str, seed: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Whole runs, three seeds each. What the supervised recipes reach is in docs/lab/recipes.md."""
    reaches(recipes.build(name), seed, RECIPES[name], tmp_path, record_property)


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", BEGINNINGS)
def test_long_recipes_learn_from_the_start(
    name: str, seed: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """The first steps of runs that take longer, three seeds each, with the learning rates of the whole run."""
    steps, score = BEGINNINGS[name]
    reaches(beginning(name, steps), seed, score, tmp_path, record_property)


def beginning(name: str, steps: int) -> Run:
    """The first steps of a recipe's run, as far along as the whole run would be."""
    run = recipes.build(name)
    whole = ("optimizer.learning_rate.until", run.trainer.total_timesteps)
    return run.replace_all([whole, ("trainer.total_timesteps", steps)])


def reaches(run: Run, seed: int, score: float, folder: Path, record_property: Callable[[str, object], None]) -> None:
    result = train(run.replace_all([("run", "mine"), ("seed", seed), ("trainer.device", "cpu")]), folder, panel=False)
    assert result.score is not None
    record_property("figure", f"{run.recipe}: {result.score:.2f}, {result.agent_steps:,} steps, {result.seconds:.0f} s")
    assert result.score >= score
