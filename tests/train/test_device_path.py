"""The real rollout and learner on a second device (tests/support/second_device.py): the numbers of the CPU, and how
often the host waits for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from device_table import CORES, ENCODERS, far_trainer, measured
from second_device import Counted, counting, near
from small_runs import small_run
from taught import taught
from torch import Tensor

from gridmill import games
from gridmill.policy.kernels import native
from gridmill.run import Run
from gridmill.train import draws
from gridmill.train.host_side import pages_of
from gridmill.train.learner import Learned
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


STEP, MINIBATCH, EPOCH = 1, 0, 10  # how often the host may wait: for a lane of a piece, in a minibatch, in an epoch
EXTRA = {"kept on the host": (12, 6)}  # in a step and in a minibatch, where the host has what the device makes
# Launches of a step of two lanes (one with `attend`) and of a minibatch of two microbatches, as they are now.
LAUNCHES = {"bag, scan": (88, 435), "cnn, lstm": (134, 430), "attend, gru": (73, 495)}


def refuse_more_looks(counted: Counted, trainer: Trainer, name: str, epochs: int) -> None:
    step, minibatch = EXTRA.get(name, (0, 0))
    for section in counted.sections["rollout"]:
        assert section.synchronisations <= STEP * trainer.sizes.lanes * trainer.sizes.pieces + step, section.looks
    for section in counted.sections["minibatch"]:
        assert section.synchronisations <= MINIBATCH + minibatch, section.looks
    beside = counted.sections[""][0]
    assert beside.synchronisations <= epochs * EPOCH, beside.looks


def refuse_more_launches(counted: Counted, name: str) -> None:
    """Of a step in which no episode was cut, and of a minibatch after the first, in which Adam makes its moments."""
    steps, minibatches = counted.sections["rollout"], counted.sections["minibatch"]
    found = min(step.kernels.total() for step in steps), minibatches[-1].kernels.total()
    most = LAUNCHES.get(name, found)
    assert found[0] <= most[0], min(steps, key=lambda step: step.kernels.total()).kernels
    assert found[1] <= most[1], minibatches[-1].kernels


def epochs(run: Run, far: bool, count: int = 2, watch: Counted | None = None) -> tuple[Trainer, list[dict[str, Any]]]:
    trainer = far_trainer(run) if far else Trainer(run)
    if watch is not None:
        watch.begin()
        trainer.watch(watch)
    found = [trainer.epoch() for _ in range(count)]
    trainer.close()
    return trainer, found


SETTINGS: dict[str, dict[str, Any]] = {
    "bag, scan": {},
    "cnn, lstm": {"policy": {"encoder": "cnn", "core": "lstm"}},
    "attend, gru": {"policy": {"encoder": "attend", "core": "gru"}, "async_factor": 1},
}
MORE: dict[str, dict[str, Any]] = {
    "vtrace": {"policy": {"core": "none"}, "advantage": "vtrace", "update_epochs": 2},
    "kept on the host": {"experience_device": "cpu"},
    "priorities": {"prio_alpha": 0.6},
    "two pieces": {"pieces": 2},
    "scaled": {"reward": "scaled", "shared_advantage": 0.5},
}


TAUGHT: dict[str, Callable[[], Run]] = {
    "a teacher leads": lambda: taught(clone={"lead": 0.4}),
    "a script plays": lambda: taught().replace("players", {"arena": 0.5}),
    "a vector": lambda: small_run(games.prospector(), {"core": "lstm"}, num_worlds=12),
}


def run_called(name: str) -> Run:
    return TAUGHT[name]() if name in TAUGHT else small_run(**(SETTINGS | MORE)[name])


@pytest.mark.parametrize(
    "name", [*SETTINGS, *(pytest.param(name, marks=pytest.mark.long) for name in (*MORE, *TAUGHT))]
)
def test_a_run_on_a_device_is_that_of_the_cpu(name: str) -> None:
    """Plain torch everywhere, whole lanes and drawing included, against native kernels over whole epochs."""
    run, count = run_called(name), 1 if name in ("cnn, lstm", "attend, gru") else 2
    ours, expected = epochs(run, far=False, count=count)
    with counting() as counted:
        theirs, found = epochs(run, far=True, count=count, watch=counted)
    refuse_more_looks(counted, theirs, name, count)
    refuse_more_launches(counted, name)
    for column, tensor in ours.experience.columns.items():
        held = near(theirs.experience.columns[column])
        exact = column in ("obs", "actions", "episode_starts", "rewards", "terminals", "truncations", "masks")
        torch.testing.assert_close(held, tensor, **({"rtol": 0, "atol": 0} if exact else {"rtol": 1e-3, "atol": 1e-4}))
    for key, weight in ours.policy.state_dict().items():
        torch.testing.assert_close(near(theirs.policy.state_dict()[key]), weight, rtol=1e-3, atol=1e-4)
    for one, other in zip(expected, found, strict=True):
        assert one["loss/policy"] == pytest.approx(other["loss/policy"], abs=1e-4)
        assert one["skipped_updates"] == other["skipped_updates"] == 0


def learned_with_a_bad_row(far: bool) -> tuple[Trainer, Learned]:
    """Two update epochs of eight minibatches, of which those with one row are no good."""
    run = small_run(update_epochs=2, minibatch_size=24, policy={"core": "none"})
    trainer = far_trainer(run) if far else Trainer(run)
    trainer.rollout.collect()
    trainer.experience.values[:, 5] = float("nan")
    found = trainer.learner.learn(trainer.experience, trainer.progress())
    trainer.close()
    return trainer, found


def test_a_device_leaves_out_a_bad_update_by_itself() -> None:
    """The same updates are made, skipped and counted as on a CPU, where the host looks at each."""
    ours, expected = learned_with_a_bad_row(far=False)
    with counting():
        theirs, found = learned_with_a_bad_row(far=True)
    assert expected.skipped == found.skipped > 0
    assert (expected.updates, expected.in_a_row) == (found.updates, found.in_a_row)
    assert found.bad is not None
    assert expected.bad is not None
    torch.testing.assert_close(near(found.bad.actions), expected.bad.actions)
    assert found.metrics["gradient_norm"] == pytest.approx(expected.metrics["gradient_norm"], rel=1e-3)
    for key, weight in ours.policy.state_dict().items():
        torch.testing.assert_close(near(theirs.policy.state_dict()[key]), weight, rtol=1e-3, atol=1e-4)


def test_three_bad_updates_in_a_row_are_seen() -> None:
    with counting():
        trainer = far_trainer(small_run(update_epochs=3))
        trainer.rollout.collect()
        trainer.experience.values.fill_(float("nan"))
        before = {key: near(weight).clone() for key, weight in trainer.policy.state_dict().items()}
        found = trainer.learner.learn(trainer.experience, trainer.progress())
        trainer.close()
    assert (found.updates, found.skipped, found.in_a_row) == (0, 3, 3)
    for key, weight in trainer.policy.state_dict().items():
        assert torch.equal(near(weight), before[key])


# ---- fewer bits, and graphs that are replayed


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_products_of_fewer_bits_learn_nearly_the_same(precision: str) -> None:
    ours, _ = epochs(small_run(), far=False, count=1)
    with counting():
        theirs, found = epochs(small_run(precision=precision), far=True, count=1)
    assert found[0]["skipped_updates"] == 0
    assert theirs.rollout.state.dtype == torch.float32
    apart = [
        float((near(theirs.policy.state_dict()[key]) - weight).abs().max())
        for key, weight in ours.policy.state_dict().items()
    ]
    assert 0 < max(apart) < 5e-3  # two steps of at most 1e-3


def test_a_scale_that_overflows_is_halved_and_is_no_fault() -> None:
    """Gradients that float16 cannot hold: the update is left out, and neither counted nor the end of the run."""
    with counting():
        trainer = far_trainer(small_run(precision="fp16", policy={"core": "none"}))
        trainer.learner.loss_scale.factor.fill_(2.0**40)
        before = {key: near(weight).clone() for key, weight in trainer.policy.state_dict().items()}
        metrics = trainer.epoch()
        trainer.close()
    assert metrics["skipped_updates"] == 0
    assert trainer.learned is not None
    assert (trainer.learned.updates, trainer.learned.in_a_row) == (0, 0)
    assert all(torch.equal(near(w), before[key]) for key, w in trainer.policy.state_dict().items())
    factor, good = trainer.learner.tensors()["loss_scale"].tolist()
    assert (factor, good) == (2.0**38, 0)
    trainer.learner.restore(trainer.learner.tensors() | {"loss_scale": torch.tensor([64.0, 3.0])})
    assert trainer.learner.tensors()["loss_scale"].tolist() == [64.0, 3.0]


def test_fp16_is_refused_on_a_cpu() -> None:
    with pytest.raises(ValueError, match=r"^trainer.precision: expected fp32 or bf16 on a CPU, got fp16.*; use bf16$"):
        Trainer(small_run(precision="fp16"))


class SameMemory(torch.autograd.Function):
    """As a graph of CUDA's does: the gradient of a weight is in the same memory at every replay."""

    memory: ClassVar[dict[int, Tensor]] = {}

    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        ctx.key = id(weight)
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        kept = SameMemory.memory.setdefault(ctx.key, torch.empty_like(slope))
        return kept.copy_(slope)


def test_gradients_are_held_over_the_replays_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several microbatches give the update that they give without graphs."""
    found = {}
    for mode in ("off", "reduce-overhead"):
        monkeypatch.setattr(torch, "compile", lambda policy, mode: Replayed(policy))
        trainer = Trainer(small_run(compile=mode, max_microbatch=32, policy={"core": "none"}))
        assert trainer.sizes.microbatches > 1
        trainer.epoch()
        trainer.close()
        found[mode] = trainer.weights()
    for name, weight in found["off"].items():
        torch.testing.assert_close(found["reduce-overhead"][name], weight)


class Replayed:
    """A policy whose weights' gradients come out of the memory of a graph."""

    def __init__(self, policy: torch.nn.Module) -> None:
        self.policy = policy

    def __call__(self, *inputs: Tensor) -> Any:
        weights = {name: SameMemory.apply(weight) for name, weight in self.policy.named_parameters()}
        return torch.func.functional_call(self.policy, weights, inputs)


# ---- the page


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # of the compiler's own doing
@pytest.mark.parametrize(("encoder", "core"), [(encoder, core) for encoder in ENCODERS for core in CORES])
def test_the_table_of_the_lab(encoder: str, core: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "lab" / "device.md").read_text(encoding="utf-8")
    assert f"| {encoder} | {core} | {measured(encoder, core).line()} |" in text.partition("### Now")[2]
