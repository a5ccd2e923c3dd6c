"""Settings by the names of the seeds' documents: taken where they mean the same, else answered in numbers."""

from __future__ import annotations

import pytest

from gridmill import recipes
from gridmill.config import ConfigError
from gridmill.runs import overrides

RUN = recipes.build("ci")


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("num_envs=8", "trainer.num_worlds", 8),
        ("num_workers=8", "trainer.threads", 8),
        ("trainer.rollout_workers=3", "trainer.threads", 3),
        ("trainer.profiler.enabled=True", "profiler.enabled", True),
        ("trainer.profiler.wait_steps=2", "profiler.wait_steps", 2),
        ("profiler.interval_epochs=1", "profiler.interval_epochs", 1),
        ("evaluator.evaluate_local=True", "evaluation.enabled", True),
        ("evaluator.epoch_interval=50", "evaluation.epochs", 50),
        ("trainer.mixed_precision=True", "trainer.precision", "bf16"),
        ("analyze_weights_interval=3", "analysis.weight_epochs", 3),
        ("env_cfg.desync_episodes=False", "trainer.desync_episodes", False),
    ],
)
def test_taken(text: str, path: str, value: object) -> None:
    assert overrides.apply(RUN, [text]) == RUN.replace(path, value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rollout_steps=128", "rows are 48 here: trainer.batch_size=6144"),
        ("rollout_steps=128 num_envs=4", "rows are 96 here: trainer.batch_size=12288"),
        ("num_minibatches=4 trainer.batch_size=1536", "the batch has 1536: trainer.minibatch_size=384"),
        ("trainer.num_minibatches=4", "the batch has 9216: trainer.minibatch_size=2304"),
        ("base_missions=extractor_hub_30", "a mission is a game: game=extractor_hub"),
        ("cpu_offload=False", "trainer.experience_device=cpu or auto"),
        ("evaluator.parallel=3", "evaluation has evaluation.enabled"),
        ("batch_size=131072", "did you mean `trainer.batch_size`?"),
        ("minibatch_size=16384", "did you mean `trainer.minibatch_size`?"),
    ],
)
def test_answered(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        overrides.apply(RUN, text.split())
    assert said in str(refused.value)
