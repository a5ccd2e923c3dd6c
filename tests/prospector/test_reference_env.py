"""trainer.env_impl=reference: the same weights as with the native worlds, to the bit, also over a resume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from gridmill import games, recipes
from gridmill.config import ConfigError
from gridmill.run import Run, TrainerConfig
from gridmill.runs import overrides
from gridmill.train.trainer import Trainer

SMALL = [
    "policy.hidden=16",
    "policy.core=lstm",
    "game.time_max=60",
    "trainer.num_worlds=6",
    "trainer.batch_size=192",
    "trainer.minibatch_size=96",
    "trainer.bptt_horizon=16",
    "trainer.threads=1",
]


def small(impl: str, *more: str) -> Run:
    recipe = recipes.build("prospector")
    losses = {name: loss for name, loss in recipe.losses.items() if name != "clone"}
    alone = recipe.replace_all([("losses", losses), ("teacher", "")])  # scripts run in the native core only
    return overrides.apply(alone, [*SMALL, f"trainer.env_impl={impl}", *more])


@contextmanager
def trainer(run: Run) -> Iterator[Trainer]:
    made = Trainer(run)
    try:
        yield made
    finally:
        made.close()


def told(metrics: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in metrics.items() if not name.startswith(("time/", "sps"))}


def assert_same_weights(one: Trainer, other: Trainer) -> None:
    for name, weight in one.weights().items():
        assert torch.equal(weight, other.weights()[name]), name


@pytest.mark.parametrize(
    "more", [(), ("trainer.masks=false", "trainer.async_factor=3", "game.time_max=40.5", "seed=7")]
)
def test_the_reference_trains_to_the_same_weights(more: tuple[str, ...]) -> None:
    with trainer(small("reference", *more)) as slow, trainer(small("native", *more)) as fast:
        ended = 0
        for _ in range(4):
            mine, theirs = slow.epoch(), fast.epoch()
            assert told(mine) == told(theirs)
            ended += int(mine["episodes"])
        assert ended > 10
        for name in ("obs", "final_obs", "rewards", "terminals", "truncations"):
            assert np.array_equal(getattr(slow.env, name), getattr(fast.env, name)), name
        assert (slow.env.masks is None) == bool(more)
        assert slow.env.stat_names == fast.env.stat_names
        assert slow.env.action_names == fast.env.action_names
        assert_same_weights(slow, fast)


def test_the_reference_goes_on_to_the_bit() -> None:
    run = small("reference")
    with trainer(run) as whole, trainer(run) as second:
        whole.epoch()
        second.restore(whole.weights(), whole.tensors(), whole.last)
        for _ in range(2):
            assert told(whole.epoch()) == told(second.epoch())
        assert_same_weights(whole, second)


def test_worlds_of_one_kind_do_not_go_on_in_the_other() -> None:
    with trainer(small("reference")) as slow, trainer(small("native")) as fast:
        with pytest.raises(ValueError, match=r"^expected worlds of the reference; resume with the trainer\.env_impl"):
            slow.env.restore(fast.env.save())
        with pytest.raises(ValueError, match=r"not a saved state"):
            fast.env.restore(slow.env.save())
    with trainer(small("reference")) as six, trainer(small("reference", "trainer.num_worlds=12")) as twelve:
        with pytest.raises(ValueError, match=r"the number of worlds or the version differs$"):
            six.env.restore(twelve.env.save())
        with pytest.raises(ValueError, match=r"^the reference saves all its worlds or none$"):
            six.env.save([0])


def test_stepping_by_hand_is_that_of_every_env() -> None:
    with trainer(small("reference")) as slow, trainer(small("native")) as fast:
        for actions in np.random.default_rng(0).integers(-5, 80, (40, 6)):
            slow.env.step(actions)
            fast.env.step(actions)
            assert np.array_equal(slow.env.obs, fast.env.obs)
        slow.env.reset()
        fast.env.reset()
        assert np.array_equal(slow.env.obs, fast.env.obs)
        with pytest.raises(RuntimeError, match=r"^recv\(0\): nothing was sent"):
            slow.env.recv(0)


def test_grids_have_no_reference() -> None:
    with pytest.raises(ConfigError, match=r"^expected auto or native for toy, got reference"):
        Run(recipe="toy", game=games.toy(), trainer=TrainerConfig(env_impl="reference"))
    with pytest.raises(ConfigError, match=r"trainer\.env_impl"):
        overrides.apply(recipes.build("ci"), ["trainer.env_impl=reference"])
