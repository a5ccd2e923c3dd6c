"""The learner: what a minibatch is given, early stopping, the guard, and which losses are active."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import hash_of, small_run
from tiny import epochs_of, tiny
from torch import nn

from gridmill.config.schedule import Progress
from gridmill.losses import Loss, LossResult, Minibatch
from gridmill.policy.network import Output
from gridmill.policy.spec import Spec
from gridmill.run import PPO, OptimizerConfig, PolicyConfig, Run, Schedule, Value
from gridmill.runs import resume, train
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


class Aside(Loss):
    """Has a head that it does not reach, one that must not be learned, and a part of the loss that is a constant."""

    reach: float = 0.0
    constant: bool = False

    def heads(self, spec: Spec, config: PolicyConfig) -> nn.Module:
        frozen = nn.Linear(config.hidden, 1).requires_grad_(False)
        return nn.ModuleDict({"unused": nn.Linear(config.hidden, 1), "frozen": frozen, "own": nn.Linear(3, 1)})

    def __call__(self, batch: Minibatch, out: Output, now: Progress, heads: Any = None) -> LossResult:
        loss = torch.zeros(()) if self.constant else heads["own"].weight.square().mean()
        return loss + self.reach * heads["frozen"](out.hidden).mean(), {"loss/aside": loss.detach()}


def heads_after(run: Run, epochs: int) -> list[dict[str, torch.Tensor]]:
    """The losses' own modules before the first epoch and after each."""
    trainer = Trainer(run)
    found = []
    for epoch in range(epochs + 1):
        if epoch:
            assert trainer.epoch()["skipped_updates"] == 0
        found.append({n: t for n, t in trainer.learner.tensors().items() if n.startswith("heads.")})
    trainer.close()
    return found


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("reach", [0.0, 1.0])
def test_a_head_outside_of_the_graph_has_a_gradient_of_zero(constant: bool, reach: float) -> None:
    """And one that must not be learned stays, whatever decays weights."""
    run = tiny(2, optimizer__weight_decay=0.1, optimizer__kind="adamw")
    losses = {"aside": Aside(constant=constant, reach=reach)} | ({} if constant and not reach else dict(run.losses))
    before, *_, after = heads_after(run.replace("losses", losses), 2)
    assert torch.equal(before["heads.aside.frozen.weight"], after["heads.aside.frozen.weight"])
    shrunk = before["heads.aside.unused.weight"] * (1 - 1e-3 * 0.1) ** 8  # the decay alone, in eight updates
    torch.testing.assert_close(after["heads.aside.unused.weight"], shrunk)
    own = before["heads.aside.own.weight"] * (1 - 1e-3 * 0.1) ** 8
    assert torch.allclose(after["heads.aside.own.weight"], own) == constant


def test_a_loss_that_is_over_leaves_its_modules_as_they_are() -> None:
    """Its last gradient is not used again."""
    run = tiny(3)
    losses = {**run.losses, "aside": Aside(until=128.0)}
    _, first, second, third = heads_after(run.replace("losses", losses), 3)
    assert all(torch.equal(first[name], second[name]) and torch.equal(first[name], third[name]) for name in first)


@pytest.mark.parametrize("kind", ["adam", "schedule_free"])
def test_the_analysis_sees_gradients_as_they_were(kind: Any) -> None:
    """Schedule-free AdamW divides them in place."""
    trainer = Trainer(tiny(1, optimizer__kind=kind, analysis__gradient_epochs=1, optimizer__max_grad_norm=1e-3))
    trainer.epoch()
    assert trainer.learned is not None
    norm = float(torch.linalg.vector_norm(torch.stack([g.norm() for g in trainer.learned.gradients])))
    trainer.close()
    assert norm == pytest.approx(1e-3, rel=0.01)


def test_weights_stay_within_the_range_of_now() -> None:
    run = tiny(3, optimizer__clip_range=Schedule(start=0.2, end=0.05, until=256))
    trainer = Trainer(run)
    for limit in (0.2, 0.125, 0.05):
        trainer.epoch()
        assert max(float(w.abs().max()) for w in trainer.weights().values()) == pytest.approx(limit, rel=1e-6)
    trainer.close()


# ---- how far a run is


def test_a_metric_that_an_epoch_does_not_have_is_as_it_was() -> None:
    """Episodes of 20 ticks do not end in every rollout of 16: a schedule over the score does not go back meanwhile."""
    follows = Schedule(start=1e-3, end=2e-3, over="metric:score", until=0.1)
    trainer = Trainer(tiny(8, trainer__desync_episodes=False, optimizer__learning_rate=follows))
    records = [trainer.epoch() for _ in range(8)]
    trainer.close()
    seen = [record.get("score") for record in records]
    first = next(epoch for epoch, score in enumerate(seen) if score is not None)
    assert None in seen[first:]
    assert [record["learning_rate"] for record in records] == [1e-3] * (first + 1) + [2e-3] * (7 - first)


def test_a_metric_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    follows = {name: Schedule(start=1.0, end=2.0, over=f"metric:{name}", until=9.0) for name in ("scor", "kl")}
    run = tiny(4, losses__ppo__weight=follows["scor"], losses__value__weight=follows["kl"])
    log = (train(run, tmp_path, panel=False).folder / "log.txt").read_text()
    warning = "warning: a schedule follows the metric `scor`, which no epoch reports; did you mean `score`?"
    assert log.count("a schedule follows") == log.count(warning) == 1


def test_a_score_that_is_not_there_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^score: unknown statistic `berry\.git`; did you mean `berry\.get`\?$"):
        train(tiny(2, score="berry.git", run="x"), tmp_path, panel=False)
    assert list(tmp_path.iterdir()) == []


def test_a_run_ends_when_its_schedules_do_after_a_resume_with_other_batches(tmp_path: Path) -> None:
    """128, 256, then batches of 256 up to 1 024: five epochs, of which the second half is of another size."""
    folder = train(tiny(2), tmp_path, panel=False).folder
    rate = '{"start": 5.0, "end": 0.0, "over": "epochs"}'
    changes = ["trainer.batch_size=256", "trainer.total_timesteps=1024", f"optimizer.learning_rate={rate}"]
    resume(folder, changes, panel=False)
    records = epochs_of(folder)[2:]
    assert [record["agent_steps"] for record in records] == [512, 768, 1024]
    assert [record["total_timesteps"] for record in records] == [1024] * 3
    assert [record["learning_rate"] for record in records] == pytest.approx([3.0, 2.0, 1.0])
    assert records[-1]["eta"] == 0


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
