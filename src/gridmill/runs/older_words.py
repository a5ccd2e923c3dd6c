"""Settings by the names that other trainers have for them: taken where they mean the same, else answered with ours."""

from __future__ import annotations

from typing import Any, NoReturn

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


OTHER_FORMS = ("rollout_steps", "num_minibatches", "base_missions", "cpu_offload", "zero_copy")


def has_another_form(path: str) -> bool:
    """Whether `answer` has something to say about a setting."""
    return path.removeprefix("trainer.") in OTHER_FORMS or path.startswith("evaluator.")


def answer(run: Run, path: str, value: Any) -> NoReturn:
    """Refuse a setting that we have in another form, with what to write instead, in numbers of this run."""
    if path.startswith("evaluator."):
        raise ConfigError(f"`{path}`: evaluation has evaluation.enabled, .epochs, .seconds, .episodes", "$")
    t = run.trainer
    rows = t.num_worlds * run.game.num_agents
    number = value if isinstance(value, int) and value > 0 else None
    said = (
        f"steps of each world in an epoch are batch_size / rows; rows are {rows} here: "
        + (f"trainer.batch_size={number * rows}" if number else "trainer.batch_size=STEPS x rows"),
        f"a minibatch has a size, the batch has {t.batch_size}: "
        + (f"trainer.minibatch_size={max(1, t.batch_size // number)}" if number else "trainer.minibatch_size=N"),
        "a mission is a game: game=extractor_hub; `gridmill games` lists them",
        "where the batch is kept: trainer.experience_device=cpu or auto",
        "the arrays are the core's own memory, always; there is nothing to set",
    )
    answers = dict(zip(OTHER_FORMS, said, strict=True))
    raise ConfigError(f"`{path}` has another form here: {answers[path.removeprefix('trainer.')]}", "$")
