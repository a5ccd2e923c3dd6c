"""The real rollout and learner on a second device (tests/support/second_device.py): the numbers of the CPU, and how
often the host waits for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from device_table import far_trainer
from second_device import counting, near
from small_runs import small_run

from gridmill.policy.kernels import native
from gridmill.run import Run
from gridmill.train import draws
from gridmill.train.host_side import pages_of
from gridmill.train.trainer import Trainer

# ---- drawing


@pytest.mark.parametrize(("seed", "step"), [(0, 0), (7, 2**32 + 9), (2**64 - 1, 2**32 - 1)])
def test_actions_are_drawn_from_the_numbers_of_the_native_kernel(seed: int, step: int) -> None:
    rng = np.random.default_rng(3)
    masks = rng.integers(2, size=(500, 21)).astype(np.uint8)
    masks[:, 4] = 1
    logits = torch.from_numpy(rng.normal(0, 3, (500, 21)).astype(np.float32)).masked_fill(
        torch.from_numpy(masks) == 0, -1e9
    )
    actions, log_probs = np.zeros(500, np.int32), np.zeros(500, np.float32)
    native.sample_actions(logits.numpy(), masks, seed, step, 0, actions, log_probs)
    uniform = draws.uniforms(seed, step, 2, 500, torch.device("cpu"))
    assert not torch.equal(uniform[0], uniform[1])
    chosen, chances = draws.draw(logits, uniform[0])
    assert np.array_equal(chosen.numpy(), actions)
    np.testing.assert_allclose(chances, log_probs, atol=1e-5)


def test_a_number_on_the_edge_draws_an_action_that_can_be() -> None:
    logits = torch.tensor([[0.0, 1.0, -1e9], [-1e9, 0.0, 0.0]])
    assert draws.draw(logits, torch.ones(2))[0].tolist() == [1, 2]
    assert draws.draw(logits, torch.zeros(2))[0].tolist() == [0, 1]


# ---- memory


def test_arrays_are_registered_as_whole_pages_and_none_twice() -> None:
    block = np.zeros(40_000, np.uint8)
    pages = pages_of([block[100:9000], block[9000:9100], block[30_000:30_010]])
    assert len(pages) == 2
    for (start, size), (first, last) in zip(pages, [(100, 9100), (30_000, 30_010)], strict=True):
        assert start % 4096 == size % 4096 == 0
        assert start <= block.ctypes.data + first
        assert start + size >= block.ctypes.data + last
    assert pages[0][0] + pages[0][1] < pages[1][0]


# ---- a whole run


def epochs(run: Run, far: bool, count: int = 2) -> tuple[Trainer, list[dict[str, Any]]]:
    trainer = far_trainer(run) if far else Trainer(run)
    found = [trainer.epoch() for _ in range(count)]
    trainer.close()
    return trainer, found


SETTINGS: dict[str, dict[str, Any]] = {
    "bag, scan": {},
    "cnn, lstm": {"policy": {"encoder": "cnn", "core": "lstm"}},
    "attend, gru": {"policy": {"encoder": "attend", "core": "gru"}, "async_factor": 1},
    "vtrace": {"policy": {"core": "none"}, "advantage": "vtrace", "update_epochs": 2},
    "kept on the host": {"experience_device": "cpu"},
    "priorities, adamw": {"prio_alpha": 0.6},
    "scaled": {"reward": "scaled", "shared_advantage": 0.5},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_on_a_device_is_that_of_the_cpu(name: str) -> None:
    """Plain torch everywhere, whole lanes and drawing included, against native kernels over whole epochs."""
    run = small_run(**SETTINGS[name])
    ours, expected = epochs(run, far=False)
    with counting():
        theirs, found = epochs(run, far=True)
    for column, tensor in ours.experience.columns.items():
        held = near(theirs.experience.columns[column])
        exact = column in ("obs", "actions", "episode_starts", "rewards", "terminals", "truncations", "masks")
        torch.testing.assert_close(held, tensor, **({"rtol": 0, "atol": 0} if exact else {"rtol": 1e-3, "atol": 1e-4}))
    for key, weight in ours.policy.state_dict().items():
        torch.testing.assert_close(near(theirs.policy.state_dict()[key]), weight, rtol=1e-3, atol=1e-4)
    for one, other in zip(expected, found, strict=True):
        assert one["loss/policy"] == pytest.approx(other["loss/policy"], abs=1e-4)
        assert one["skipped_updates"] == other["skipped_updates"] == 0
