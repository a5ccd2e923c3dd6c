"""Advantages by hand, and against the definition summed up step by step in double precision."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gridmill.train.advantage import Trajectory, gae, vtrace


def path(rewards: list[float], values: list[float], last: float, **ends: dict[int, float]) -> Trajectory:
    """One row; terminal={t: 1} and cut={t: value of the final observation}."""
    steps = len(rewards)
    terminal, cut = ends.get("terminal", {}), ends.get("cut", {})

    def column(numbers: list[float]) -> Tensor:
        return torch.tensor(numbers)[:, None]

    return Trajectory(
        rewards=column(rewards),
        values=column(values),
        terminals=column([float(t in terminal) for t in range(steps)]).bool(),
        truncations=column([float(t in cut) for t in range(steps)]).bool(),
        bootstrap=column([cut.get(t, 0.0) for t in range(steps)]),
        last_value=torch.tensor([last]),
    )


def numbers(x: Tensor) -> list[float]:
    return x[:, 0].tolist()


def test_gae_of_three_steps_that_go_on() -> None:
    # gamma 0.5, lambda 0.5: deltas 1 + 0.5*1 - 2 = -0.5; 2 + 0.5*4 - 1 = 3; 0 + 0.5*8 - 4 = 0.
    x = path([1, 2, 0], [2, 1, 4], last=8)
    assert numbers(gae(x, 0.5, 0.5)) == [-0.5 + 0.25 * 3, 3.0, 0.0]


def test_a_termination_is_worth_its_reward_alone() -> None:
    # Step 1 ends: delta 2 - 1 = 1 whatever the values after it; nothing of step 2 flows back.
    x = path([1, 2, 0], [2, 1, 4], last=8, terminal={1: 1})
    assert numbers(gae(x, 0.5, 0.5)) == [-0.5 + 0.25 * 1, 1.0, 0.0]


def test_a_time_limit_is_worth_what_would_have_come() -> None:
    # Step 1 is cut where the final observation is worth 6: delta 2 + 0.5*6 - 1 = 4, not 2 + 0.5*4 - 1.
    x = path([1, 2, 0], [2, 1, 4], last=8, cut={1: 6.0})
    assert numbers(gae(x, 0.5, 0.5)) == [-0.5 + 0.25 * 4, 4.0, 0.0]


def test_an_end_by_the_rules_counts_more_than_the_time_limit() -> None:
    both = path([1, 2, 0], [2, 1, 4], last=8, terminal={1: 1}, cut={1: 6.0})
    ended = path([1, 2, 0], [2, 1, 4], last=8, terminal={1: 1})
    assert torch.equal(gae(both, 0.5, 0.5), gae(ended, 0.5, 0.5))


def test_an_end_at_the_last_step_does_not_look_ahead() -> None:
    assert numbers(gae(path([1], [2], last=100, terminal={0: 1}), 0.9, 0.9)) == [-1.0]
    assert numbers(gae(path([1], [2], last=100, cut={0: 10.0}), 0.5, 0.9)) == [4.0]


def test_vtrace_by_hand() -> None:
    # ratios 2, 0.5, 4 with rho <= 1 and c <= 1: rho = c = (1, 0.5, 1); deltas -0.5, 0.5*3, 0.
    x = path([1, 2, 0], [2, 1, 4], last=8)
    ratios = torch.tensor([[2.0], [0.5], [4.0]])
    assert numbers(vtrace(x, ratios, 0.5, 0.5, 1.0, 1.0)) == [-0.5 + 0.25 * 1.5, 1.5, 0.0]
    # rho <= 3 lets the first two through; c <= 0.5 halves what flows back: 2*-0.5 + 0.25*0.5*1.5.
    assert numbers(vtrace(x, ratios, 0.5, 0.5, 3.0, 0.5)) == [-1.0 + 0.125 * 1.5, 1.5, 0.0]


def test_vtrace_ends_episodes_as_gae_does() -> None:
    ones = torch.ones(3, 1)
    for ends in ({"terminal": {1: 1.0}}, {"cut": {1: 6.0}}, {"terminal": {0: 1.0}, "cut": {2: 5.0}}):
        x = path([1, 2, 0], [2, 1, 4], 8, **ends)
        assert torch.equal(vtrace(x, ones, 0.9, 0.8, 1.0, 1.0), gae(x, 0.9, 0.8))


@given(
    st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 4), st.sampled_from([(0.99, 0.95), (0.9, 0.0), (1, 1)])
)
def test_gae_is_the_discounted_sum_of_errors(seed: int, steps: int, rows: int, rates: tuple[float, float]) -> None:
    gamma, lam = rates
    draw = torch.Generator().manual_seed(seed)

    def some() -> Tensor:
        return torch.randn(steps, rows, generator=draw)

    truncations = some() > 0.8
    x = Trajectory(some(), some(), some() > 0.8, truncations, some() * truncations, some()[0])
    found = gae(x, gamma, lam)
    for row in range(rows):
        for t in range(steps):
            expected, weight = 0.0, 1.0
            for k in range(t, steps):
                ended = bool(x.terminals[k, row] or x.truncations[k, row])
                after = float(x.values[k + 1, row] if k + 1 < steps else x.last_value[row])
                if ended:
                    after = 0.0 if x.terminals[k, row] else float(x.bootstrap[k, row])
                expected += weight * (float(x.rewards[k, row]) + gamma * after - float(x.values[k, row]))
                weight *= gamma * lam
                if ended:
                    break
            assert float(found[t, row]) == pytest.approx(expected, abs=1e-4)
