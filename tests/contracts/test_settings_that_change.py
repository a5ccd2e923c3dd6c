"""Which numbers of a run may change while it runs: every number is a `Number`, which takes a schedule, or it is listed
here with the reason why it cannot. A setting of either kind that is new fails until somebody has decided.
"""

from __future__ import annotations

from typing import Any, get_args

import pytest
from taught import taught
from test_every_option import paths

from gridmill import losses
from gridmill.config import Config, user_code
from gridmill.config.schedule import Progress, Schedule
from gridmill.losses import Loss
from gridmill.losses.contrastive import Contrastive
from gridmill.run import OptimizerConfig, Run
from gridmill.train.trainer import Trainer

NUMBERS = {
    "losses.clone.lead", "losses.clone.weight",
    "losses.contrastive.temperature", "losses.contrastive.weight",
    "losses.kickstart.value_weight", "losses.kickstart.weight",
    "losses.ppo.clip", "losses.ppo.entropy_weight", "losses.ppo.weight",
    "losses.value.clip", "losses.value.weight",
    "optimizer.beta1", "optimizer.clip_range", "optimizer.beta2", "optimizer.eps", "optimizer.learning_rate",
    "optimizer.max_grad_norm", "optimizer.weight_decay",
    "trainer.c_clip", "trainer.gae_lambda", "trainer.gamma", "trainer.prio_alpha", "trainer.prio_beta0",
    "trainer.reward_clip", "trainer.reward_time_scale", "trainer.rho_clip", "trainer.shared_advantage",
    "trainer.target_kl",
}  # fmt: skip

# Sizes: what is allocated, compiled or counted by them is made once.
SIZES = {
    "losses.contrastive.offset", "losses.contrastive.size",
    "players",
    "policy.heads", "policy.hidden", "policy.latents", "policy.layers",
    "trainer.async_factor", "trainer.batch_size", "trainer.bptt_horizon", "trainer.max_microbatch",
    "trainer.minibatch_size", "trainer.num_worlds", "trainer.pieces", "trainer.threads", "trainer.update_epochs",
}  # fmt: skip
# Where something begins or ends on the way: schedules and phases are made of these.
PLACES = {
    *(f"losses.{name}.{end}" for name in losses.names() for end in ("begin", "until")),
    "seed", "supervised_steps", "trainer.total_timesteps", "trainer.window_env_steps",
}  # fmt: skip
# How tasks are chosen: by the run's own scores, which change what they mean as it goes on.
CHOOSING = {
    "curriculum.explore", "curriculum.fast", "curriculum.least_progress", "curriculum.patience", "curriculum.slow",
    "curriculum.tasks", "curriculum.tries",
}  # fmt: skip
# Read once, when the network is made.
FIRST = {"policy.actor_gain"}
# How often a run is looked at, saved, judged or warned about: nothing is learned from these.
LOOKING = {
    "analysis.gradient_epochs", "analysis.weight_epochs",
    "checkpoint.epochs", "checkpoint.keep", "checkpoint.seconds",
    "evaluation.episodes", "evaluation.epochs", "evaluation.final_seconds",
    "evaluation.replays_every_epochs", "evaluation.seconds",
    "guard.max_kl", "guard.min_entropy", "guard.min_explained_variance",
    "monitor.epochs", "monitor.seconds", "ranks.compare_epochs", "ranks.timeout",
    "profiler.active_steps", "profiler.interval_epochs", "profiler.rollout_timing", "profiler.wait_steps",
    "profiler.warmup_steps",
}  # fmt: skip


def annotation(path: str) -> Any:
    """What a setting takes."""
    names = path.split(".")
    kind: Any = Run
    if names[0] == "losses":
        kind, names = user_code.find(names[1], losses.__name__, Loss, "loss"), names[2:]
    for name in names[:-1]:
        kind = kind.model_fields[name].annotation
    return kind.model_fields[names[-1]].annotation


def members(kind: Any) -> set[Any]:
    """The plain types an annotation is made of."""
    inner = get_args(kind)
    return {kind} if not inner else {found for part in inner for found in members(part)}


def test_every_number_takes_a_schedule_or_is_listed() -> None:
    scheduled, fixed = set(), set()
    for path in paths(Run):
        kinds = members(annotation(path))
        if any(isinstance(kind, type) and issubclass(kind, Schedule) for kind in kinds):
            scheduled.add(path)
        elif kinds & {int, float} and not any(isinstance(k, type) and issubclass(k, Config) for k in kinds):
            fixed.add(path)
    assert scheduled == NUMBERS
    assert fixed == SIZES | PLACES | CHOOSING | FIRST | LOOKING


def test_the_optimizer_follows_its_schedules() -> None:
    """Halfway of a run, every number of every group is halfway."""
    ends = {"beta1": (0.5, 0.9), "beta2": (0.9, 0.99), "eps": (1e-5, 1e-3), "weight_decay": (0.0, 0.1)}
    config = OptimizerConfig(kind="adamw", **{name: Schedule(start=a, end=b) for name, (a, b) in ends.items()})
    trainer = Trainer(taught({"optimizer": config}))
    trainer.learner.optimizer.set(Progress(50, 100, 0, 1))
    (part,) = trainer.learner.optimizer.parts
    trainer.close()
    for group in part.param_groups:
        found = dict(zip(("beta1", "beta2"), group["betas"], strict=True)) | group
        for name, (a, b) in ends.items():
            assert found[name] == pytest.approx((a + b) / 2), name


@pytest.mark.parametrize("path", sorted(NUMBERS - {"losses.kickstart.value_weight", "losses.kickstart.weight"}))
def test_a_schedule_is_taken_and_trained_with(path: str) -> None:
    run = taught({"losses.contrastive": Contrastive(), path: Schedule(start=0.5, end=0.25)}, advantage="vtrace")
    trainer = Trainer(run)
    metrics = trainer.epoch()
    trainer.close()
    assert metrics["skipped_updates"] == 0
