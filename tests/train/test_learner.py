"""The learner: what a minibatch is given, early stopping, the guard, and which losses are active."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from small_runs import hash_of, small_run
from tiny import tiny

from gridmill.losses import Minibatch
from gridmill.run import PPO, OptimizerConfig, Schedule, Value
from gridmill.train.trainer import Trainer

# ---- what a minibatch is given


def test_advantages_are_normalised_over_the_whole_minibatch() -> None:
    """Over a minibatch and not its microbatches; a minibatch of one step has no spread, and still a number."""
    trainer = Trainer(small_run(max_microbatch=16))
    seen: list[Minibatch] = []
    take = trainer.experience.minibatch

    def spy(*arguments: Any) -> Minibatch:
        seen.append(take(*arguments))
        return seen[-1]

    trainer.experience.minibatch = spy  # type: ignore[method-assign, assignment]
    trainer.epoch()
    trainer.close()
    assert len(seen) == 12
    for microbatches in (seen[:6], seen[6:]):
        whole = torch.cat([each.advantages.flatten() for each in microbatches])
        assert float(whole.mean()) == pytest.approx(0, abs=1e-5)
        assert float(whole.std()) == pytest.approx(1, abs=0.02)
        assert abs(float(microbatches[0].advantages.mean())) > 1e-3


def test_a_minibatch_of_one_step_is_learned_from() -> None:
    trainer = Trainer(small_run(bptt_horizon=1, num_worlds=1, async_factor=1, batch_size=3, minibatch_size=1))
    metrics = trainer.epoch()
    trainer.close()
    assert metrics["skipped_updates"] == 0
    assert math.isfinite(metrics["loss/value"])


# ---- stopping early


def test_target_kl_leaves_the_rest_of_the_epoch() -> None:
    fast = OptimizerConfig(learning_rate=0.05)
    steps = {}
    for limit in (0.0, 1e-3, 1e9):
        trainer = Trainer(small_run(optimizer=fast, target_kl=limit, update_epochs=3, minibatch_size=24))
        trainer.epoch()
        trainer.close()
        steps[limit] = trainer.trained_steps
    assert steps[0.0] == steps[1e9] == 3 * 192
    assert 24 < steps[1e-3] < 192  # not even one update epoch


def test_non_finite_values_skip_the_update_and_stop_after_three() -> None:
    trainer = Trainer(small_run(update_epochs=3))
    before = hash_of(trainer.weights())
    trainer.rollout.collect()
    trainer.experience.values.fill_(math.nan)
    learned = trainer.learner.learn(trainer.experience, trainer.progress())
    trainer.close()
    assert (learned.updates, learned.skipped, learned.in_a_row) == (0, 3, 3)
    assert learned.bad is not None
    assert hash_of(trainer.weights()) == before


# ---- which losses count


def weights_after(epochs: int, **changes: Any) -> str:
    trainer = Trainer(tiny(4, **changes))
    for _ in range(epochs):
        trainer.epoch()
    trainer.close()
    return hash_of(trainer.weights())


def test_a_loss_that_is_off_is_as_if_it_were_not_there() -> None:
    without = {"losses": {"ppo": PPO()}}
    assert weights_after(2, losses__value__until=256.0) == weights_after(2)
    assert weights_after(3, losses__value__until=256.0) != weights_after(3)
    assert weights_after(2, losses__value__begin=256.0) == weights_after(2, **without)
    assert weights_after(3, losses__value__begin=256.0) != weights_after(3, **without)


def test_the_columns_of_a_loss_that_is_off_are_not_picked() -> None:
    trainer = Trainer(tiny(4, losses={"value": Value(), "ppo": PPO(begin=128.0)}))
    take, seen = trainer.experience.minibatch, set[frozenset[str]]()

    def spy(*arguments: Any) -> Minibatch:
        found = take(*arguments)
        seen.add(frozenset(vars(found)))
        return found

    trainer.experience.minibatch = spy  # type: ignore[method-assign]
    forward = {"obs", "episode_starts", "masks", "state", "weights"}
    for expected in ({"values", "returns"}, {"values", "returns", "actions", "log_probs", "advantages"}):
        metrics = trainer.epoch()
        assert seen == {frozenset(forward | expected)}
        assert ("kl" in metrics) == ("actions" in expected)
        seen.clear()
    trainer.close()


def test_a_run_without_an_active_loss_collects_and_learns_nothing() -> None:
    trainer = Trainer(tiny(4, losses={"ppo": PPO(begin=1e9)}))
    before = hash_of(trainer.weights())
    metrics = trainer.epoch()
    trainer.close()
    assert hash_of(trainer.weights()) == before
    assert math.isnan(metrics["gradient_norm"])
    assert trainer.trained_steps == 0


# ---- numbers that may change

USED: dict[str, tuple[float, float, dict[str, Any]]] = {
    "trainer.gamma": (0.99, 0.5, {}),
    "trainer.gae_lambda": (0.95, 0.3, {}),
    "trainer.rho_clip": (1.0, 0.3, {"trainer__advantage": "vtrace"}),
    "trainer.c_clip": (1.0, 0.3, {"trainer__advantage": "vtrace"}),
    "trainer.target_kl": (1.0, 1e-9, {}),
    "trainer.prio_alpha": (0.8, 0.1, {}),
    "trainer.prio_beta0": (0.2, 0.9, {"trainer__prio_alpha": 0.8}),
    "trainer.shared_advantage": (0.5, 2.0, {}),
    "optimizer.max_grad_norm": (0.5, 0.001, {"optimizer__eps": 1e-2}),
    "losses.value.clip": (0.5, 0.001, {}),
}


@pytest.mark.parametrize("path", USED)
def test_a_schedule_is_the_number_it_has_now(path: str) -> None:
    number, other, more = USED[path]
    more = {"trainer__update_epochs": 3, "optimizer__learning_rate": 0.02} | more
    name = path.replace(".", "__")
    still = weights_after(2, **more, **{name: number})
    assert weights_after(2, **more, **{name: Schedule(start=number, end=number)}) == still
    assert weights_after(2, **more, **{name: Schedule(start=number, end=other, until=128)}) != still
