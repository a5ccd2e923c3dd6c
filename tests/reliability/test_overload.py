"""Overload. What does not fit into memory is refused with its arithmetic, before anything is allocated; many
agents are slow, never broken.
"""

from __future__ import annotations

import time

import numpy as np
import psutil
import pytest

import gridmill
from gridmill import recipes, sizing
from gridmill.config import ConfigError
from gridmill.runs import overrides

pytestmark = pytest.mark.S5


@pytest.mark.parametrize(
    "texts",
    [
        ["trainer.num_worlds=1e8", "trainer.batch_size=1e11"],
        ["trainer.num_worlds=1e12"],
        ["trainer.batch_size=281_474_976_710_656"],
        ["trainer.batch_size=1e10", "trainer.minibatch_size=1e10"],
        ["policy.encoder=attend", "policy.hidden=4096", "trainer.batch_size=1e8", "trainer.minibatch_size=1e8"],
        ["game.observation.num_tokens=4096", "trainer.batch_size=1e9"],
    ],
)
def test_more_than_memory_is_refused_before_it_is_taken(texts: list[str], record_property) -> None:
    """Sizes above the machine's memory end in one line with the sum, without taking any."""
    run = overrides.apply(recipes.build("arena"), texts)
    sizing.memory(recipes.build("arena"))  # what is loaded once
    before = psutil.Process().memory_info().rss
    with pytest.raises(
        ConfigError,
        match=r"^not enough memory: .+ = [\d,]+ MiB, (this machine has|the cgroup of this process allows) .+; lower ",
    ):
        sizing.plan(run)
    grown = psutil.Process().memory_info().rss - before
    assert grown < 64 * 2**20
    record_property("figure", f"{grown // 2**20} MiB taken")


def test_the_record_of_an_episode_is_refused_before_it_takes_gigabytes() -> None:
    """Every collective's statistics are in the record of every agent: 4 000 agents took 5 GB for one episode."""
    game = gridmill.games.toy(4_000, 120, 0.0, 1).replace("observation.overflow", "drop")
    names = [f"r{i}" for i in range(100)]
    teams = {f"t{i}": {} for i in range(130)}
    game = game.replace_all([("resources", names), ("collectives", teams)])
    with pytest.raises(
        ValueError,
        match=r"^expected at most 512 MiB for the record of an episode, got 4000 agents x \d+ statistics; use fewer ",
    ):
        gridmill.make(game, num_worlds=1)


@pytest.mark.parametrize("agents", [4, 40, 400, 1_000, 2_000, 4_096])
def test_many_agents_are_slower_not_broken(agents: int, record_property) -> None:
    """Six sizes up to 4 096 agents in a world: every row moves, sees and is counted."""
    game = gridmill.games.toy(agents, 120, 0.0, 20).replace("observation.overflow", "drop")
    run = recipes.build("toy").replace("game", game)
    assert sizing.sizes(run.replace("trainer.batch_size", 64 * 64 * agents)).rows == 64 * agents
    with gridmill.make(game, num_worlds=1, seed=0) as env:
        env.reset()
        rng, start = np.random.default_rng(0), time.perf_counter()
        for _ in range(40):
            env.step(rng.integers(0, env.num_actions, env.num_rows))
        spent = time.perf_counter() - start
        episodes = env.take_episodes()
        assert len(episodes["agent"]) == 2 * agents
        assert (env.obs[:, 0, 0] != 255).all()
    record_property("figure", f"{40 * agents / spent:,.0f} agent-steps/s")
