"""Whom an agent sees: the native sums against the plain ones, by hand, in a real world, and where it cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from random_games import agents_of, quiet_make
from small_runs import small_run

from gridmill import games, recipes
from gridmill.config import ConfigError
from gridmill.policy.kernels import native
from gridmill.policy.spec import Spec
from gridmill.train.shared_advantage import FEATURE, VisibleAgents
from gridmill.train.trainer import Trainer

WORDS = {"features": ("tag", FEATURE), "normalizers": (1.0, 255.0), "tags": ("wall",)}
SPEC = Spec(kind="tokens", actions=("noop",), num_tokens=4, **WORDS)


def tokens(*rows: list[tuple[int, int, int]]) -> torch.Tensor:
    """One step; rows are filled up with the end mark."""
    full = [row + [(255, 255, 255)] * (4 - len(row)) for row in rows]
    return torch.tensor([full], dtype=torch.uint8)


def test_by_hand() -> None:
    """Two worlds of two agents. The first sees itself and the other, the second only a wall, the third nobody;
    an index that no agent has counts for nothing."""
    obs = tokens(
        [(0x55, 1, 0), (0x54, 1, 1)], [(0x55, 1, 1), (0x54, 0, 0)], [], [(0x55, 1, 1), (0x11, 1, 0), (0x12, 1, 7)]
    )
    numbers = torch.tensor([[1.0, 10.0, 100.0, 1000.0]])
    for form in (VisibleAgents(SPEC, 2).sums, VisibleAgents(SPEC, 2).plain_sums):
        assert form(obs, numbers).tolist() == [[10.0, 0.0, 0.0, 100.0]]


def test_agents_without_a_row_count_for_nothing() -> None:
    """Two worlds of three agents; the second of each is somebody else's and has no row."""
    obs = tokens(
        [(0x54, 1, 1), (0x53, 1, 2)], [(0x55, 1, 2), (0x54, 1, 0)], [(0x54, 1, 1)], [(0x54, 1, 0), (0x54, 1, 1)]
    )
    numbers = torch.tensor([[1.0, 10.0, 100.0, 1000.0]])
    visible = VisibleAgents(SPEC, 3, (0, 2))
    for form in (visible.sums, visible.plain_sums):
        assert form(obs, numbers).tolist() == [[10.0, 1.0, 0.0, 100.0]]


def test_who_is_in_the_window_is_seen() -> None:
    """Against the positions of a real world, over some ticks."""
    env: Any = quiet_make(games.arena_basic_easy_shaped(), num_worlds=2, seed=4)
    env.reset()
    visible, rng = VisibleAgents(Spec.of(env), env.num_agents), np.random.default_rng(0)
    half = env.window[0] // 2
    pairs = 0
    for _ in range(30):
        env.step(rng.integers(0, env.num_actions, env.num_rows).astype(np.int32))
        obs = torch.from_numpy(env.obs.copy())[None]
        numbers = torch.from_numpy(rng.standard_normal((1, env.num_rows)).astype(np.float32))
        expected = np.zeros(env.num_rows)
        for world in range(2):
            agents = {a["agent"]: (a["row"], a["column"]) for a in agents_of(env.inspect(world))}
            for one, here in agents.items():
                for other, there in agents.items():
                    near = max(abs(here[0] - there[0]), abs(here[1] - there[1])) <= half
                    if one != other and near:
                        pairs += 1
                        expected[world * env.num_agents + one] += float(numbers[0, world * env.num_agents + other])
        for form in (visible.sums, visible.plain_sums):
            np.testing.assert_allclose(form(obs, numbers)[0], expected, atol=1e-5)
    assert pairs > 100


def test_advantages_are_shared_and_returns_are_not() -> None:
    """The critic goes on learning each agent's own return."""
    run = small_run().replace("trainer.normalize_advantages", False)
    own, shared = (Trainer(run.replace("trainer.shared_advantage", share)) for share in (0.0, 0.5))
    for trainer in (own, shared):
        trainer.rollout.collect()
        trainer.learner._advantages(trainer.experience, trainer.experience.rewards, trainer.progress())
    assert torch.equal(own.experience.obs, shared.experience.obs)
    assert torch.equal(own.experience.returns, shared.experience.returns)
    alone = own.experience.advantages
    assert shared.learner.visible is not None
    others = shared.learner.visible.plain_sums(own.experience.obs, alone)
    assert float(others.abs().max()) > 0
    torch.testing.assert_close(shared.experience.advantages, alone + 0.5 * others)


def test_a_game_without_others_refuses() -> None:
    run = recipes.build("prospector").replace("trainer.shared_advantage", 1.0)
    with pytest.raises(ConfigError, match=r"no feature `agent:id`; set it to 0 - at `\$.trainer.shared_advantage`"):
        Trainer(run)
    with pytest.raises(ConfigError, match="worlds of 300 agents"):
        VisibleAgents(SPEC, 300)


@pytest.mark.parametrize(
    "sizes", [((1, 4, 4, 2), 2, 4, 4), ((1, 4, 4, 3), 3, 4, 4), ((1, 4, 4, 3), 0, 4, 4), ((1, 4, 4, 3), 2, 3, 4),
              ((1, 4, 4, 3), 2, 4, 5)],
)  # fmt: skip
def test_wrong_sizes_are_refused(sizes: tuple[tuple[int, ...], int, int, int]) -> None:
    shape, agents, numbers, out = sizes
    arrays = np.zeros((1, numbers), np.float32), np.zeros((1, out), np.float32)
    with pytest.raises(ValueError, match="expected"):
        native.sum_visible(np.zeros(shape, np.uint8), 1, agents, np.zeros(2, np.int32), *arrays)


@pytest.mark.parametrize("place", [-2, 2])
def test_a_place_outside_of_the_world_is_refused(place: int) -> None:
    numbers = np.zeros((1, 4), np.float32)
    with pytest.raises(ValueError, match="expected rows of a world, or -1"):
        native.sum_visible(np.zeros((1, 4, 4, 3), np.uint8), 1, 2, np.array([0, place], np.int32), numbers, numbers)
