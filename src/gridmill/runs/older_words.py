"""Settings by the names that other trainers have for them: taken where they mean the same, else answered with ours."""

from __future__ import annotations

from typing import Any

from gridmill.config import ConfigError
from gridmill.run import Run

TAKEN = {
    "num_envs": "trainer.num_worlds",
    "num_workers": "trainer.threads",
    "rollout_workers": "trainer.threads",
    "ppo_env_impl": "trainer.env_impl",
    "evaluator.evaluate_local": "evaluation.enabled",
    "evaluator.epoch_interval": "evaluation.epochs",
    "checkpoint_interval": "checkpoint.epochs",
    "evaluate_interval": "evaluation.epochs",
    "analyze_weights_interval": "analysis.weight_epochs",
    "env_cfg.desync_episodes": "trainer.desync_episodes",
}
PARTS = {"trainer.profiler.": "profiler.", "trainer.evaluation.": "evaluation.", "trainer.checkpoint.": "checkpoint."}


def ours(path: str) -> str:
    """The path as we call it; one that is not in the table stays as it is."""
    for theirs, part in PARTS.items():
        if path.startswith(theirs):
            return part + path.removeprefix(theirs)
    return TAKEN.get(path) or TAKEN.get(path.removeprefix("trainer.")) or path


def answer(run: Run, path: str, value: Any) -> None:
    """Refuse a setting that we have in another form, with what to write instead, in numbers of this run."""
    name, t = path.removeprefix("trainer."), run.trainer
    rows = t.num_worlds * run.game.num_agents
    number = value if isinstance(value, int) and value > 0 else None
    said = {
        "rollout_steps": f"steps of each world in an epoch are batch_size / rows; rows are {rows} here: "
        + (f"trainer.batch_size={number * rows}" if number else "trainer.batch_size=STEPS x rows"),
        "num_minibatches": f"a minibatch has a size, the batch has {t.batch_size}: "
        + (f"trainer.minibatch_size={max(1, t.batch_size // number)}" if number else "trainer.minibatch_size=N"),
        "base_missions": "a mission is a game: game=extractor_hub; `gridmill games` lists them",
        "cpu_offload": "where the batch is kept: trainer.experience_device=cpu or auto",
        "zero_copy": "the arrays are the core's own memory, always; there is nothing to set",
    }.get(name)
    if said is not None:
        raise ConfigError(f"`{path}` has another form here: {said}", "$")
    if path.startswith("evaluator."):
        raise ConfigError(f"`{path}`: evaluation has evaluation.enabled, .epochs, .seconds, .episodes", "$")
