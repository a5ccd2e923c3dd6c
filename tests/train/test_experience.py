"""Segments of a rollout: where their steps lie, that each is used once, and drawing by priority."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import WORDS, small_run
from torch import Tensor

from gridmill.sizing import Sizes
from gridmill.sizing import sizes as sizes_of
from gridmill.train.experience import Experience, core_columns, from_piece, piece_of, prioritised, shuffled

CPU = torch.device("cpu")


def small(**trainer: Any) -> Sizes:
    """Two worlds of three agents, six steps in segments of three: twelve segments."""
    usual: dict[str, Any] = {
        "num_worlds": 2,
        "async_factor": 1,
        "bptt_horizon": 3,
        "batch_size": 36,
        "minibatch_size": 12,
    }
    return sizes_of(small_run(**(usual | trainer)))


@pytest.mark.parametrize("state", [0, 5])
def test_a_minibatch_is_whole_segments(state: int) -> None:
    sizes = small()
    x = Experience(sizes, core_columns(WORDS, True), state, CPU)
    numbered = torch.arange(36.0).view(6, 6)  # step * 6 + row
    x.values.copy_(numbered)
    x.log_probs.copy_(numbered + 0.5)
    x.estimate(numbered, -numbered)
    x.actions.copy_(numbered.int())
    x.episode_starts.copy_((numbered % 5 == 0).to(torch.uint8))
    x.obs[..., 0, 0] = numbered.to(torch.uint8)
    assert x.masks is not None
    x.masks[..., 2] = numbered.to(torch.uint8)
    x.states.copy_(torch.arange(12.0).view(2, 6, 1).expand(2, 6, state))
    names = ("actions", "log_probs", "values", "advantages", "returns")
    # Segment 4 is the first half of row 4, segment 7 the second half of row 1.
    found = x.minibatch(torch.tensor([4, 7]), names, {"advantages": numbered * 2}, torch.tensor([1.0, 0.5]), CPU)
    expected = torch.tensor([[4.0, 19.0], [10.0, 25.0], [16.0, 31.0]])
    assert torch.equal(found.values, expected)
    assert torch.equal(found.log_probs, expected + 0.5)
    assert torch.equal(found.returns, -expected)
    assert torch.equal(found.advantages, expected * 2)
    assert torch.equal(found.actions, expected.int())
    assert torch.equal(found.episode_starts, (expected % 5 == 0).to(torch.uint8))
    assert torch.equal(found.obs[..., 0, 0], expected.to(torch.uint8))
    assert found.masks is not None
    assert torch.equal(found.masks[..., 2], expected.to(torch.uint8))
    assert torch.equal(found.state, torch.tensor([[4.0], [7.0]]).expand(2, state))
    assert found.weights.tolist() == [1.0, 0.5]


def test_segments_are_the_whole_rollout() -> None:
    sizes = small()
    x = Experience(sizes, core_columns(WORDS, False), 0, CPU)
    assert x.masks is None
    steps = x.segment_steps(torch.arange(12))
    assert steps.shape == (3, 12)
    assert sorted(steps.flatten().tolist()) == list(range(36))


def test_shuffled_uses_every_segment_once() -> None:
    sizes = small()
    rounds = [shuffled(sizes, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    for minibatches in rounds:
        assert [len(segments) for segments in minibatches] == [4, 4, 4]
        assert sorted(minibatches.flatten().tolist()) == list(range(12))
    assert torch.equal(rounds[0], rounds[1])
    assert not torch.equal(rounds[0], rounds[2])


def test_segments_of_pieces_are_those_of_their_rows() -> None:
    """Segment s of a piece is part s // rows of its row s % rows."""
    sizes = dataclasses.replace(small(), pieces=3)
    rows = sizes.rows // 3  # two
    for piece in range(3):
        for segment in range(piece_of(sizes).segments):
            part, row = divmod(segment, rows)
            assert int(from_piece(torch.tensor(segment), piece, sizes)) == part * sizes.rows + piece * rows + row
    drawn = torch.cat([from_piece(torch.arange(piece_of(sizes).segments), piece, sizes) for piece in range(3)])
    assert sorted(drawn.tolist()) == list(range(sizes.segments))


def priorities() -> tuple[Sizes, Tensor]:
    """One world of two agents, two segments each, with mean |advantage| 1, 2, 3, 4."""
    sizes = sizes_of(
        small_run(
            num_worlds=1, async_factor=1, bptt_horizon=2, batch_size=12, minibatch_size=6,
        )
    )  # fmt: skip
    signs = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])
    part = torch.tensor([[1.0, 2.0, 3.0]] * 2 + [[4.0, 5.0, 6.0]] * 2)
    uneven = torch.tensor([[0.5], [-0.5], [0.5], [-0.5]])  # the mean of |advantage| over a segment stays
    return sizes, (part + uneven) * signs


def test_priorities_by_hand() -> None:
    sizes, advantages = priorities()
    chance = np.sqrt(np.arange(1, 7)) / np.sqrt(np.arange(1, 7)).sum()  # alpha = 1/2
    counts = np.zeros(6)
    for seed in range(1500):
        drawn, _ = prioritised(advantages, sizes, 0.5, 0.5, np.random.default_rng(seed))
        counts += np.bincount(drawn.flatten().numpy(), minlength=6)
    total = counts.sum()
    assert total == 1500 * 6
    assert np.all(np.abs(counts / total - chance) < 5 * np.sqrt(chance / total))


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_importance_weights_by_hand(beta: float) -> None:
    sizes, advantages = priorities()
    chance = np.arange(1, 7) / 21  # alpha = 1
    drawn, weights = prioritised(advantages, sizes, 1.0, beta, np.random.default_rng(3))
    assert [len(segments) for segments in drawn] == [3, 3]
    for segments, weight in zip(drawn, weights, strict=True):
        plain = (6 * chance[segments.numpy()]) ** -beta
        np.testing.assert_allclose(weight, plain, rtol=1e-5)


def test_with_beta_1_the_weighted_mean_is_the_plain_one() -> None:
    """What importance weights are for, before they are divided by their largest."""
    sizes, advantages = priorities()
    numbers = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0])
    sums = []
    for seed in range(1500):
        drawn, weights = prioritised(advantages, sizes, 1.0, 1.0, np.random.default_rng(seed))
        for segments, weight in zip(drawn, weights, strict=True):
            sums.append(float((weight.numpy() * numbers[segments.numpy()]).mean()))
    assert np.mean(sums) == pytest.approx(numbers.mean(), abs=5 * np.std(sums) / np.sqrt(len(sums)))


def test_rows_without_any_advantage_can_be_drawn() -> None:
    sizes, advantages = priorities()
    drawn, weights = prioritised(torch.zeros_like(advantages), sizes, 0.6, 0.4, np.random.default_rng(0))
    assert len(set(drawn.flatten().tolist())) > 1
    assert weights.flatten().tolist() == [1.0] * 6
