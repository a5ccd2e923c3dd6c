"""Runs with a teacher, small enough to train in a moment: the easy arena with six agents in four worlds."""

from __future__ import annotations

from typing import Any

from small_runs import small_run

from gridmill import games
from gridmill.losses.clone import Clone
from gridmill.run import PPO, Run, Value

EPOCH = 4 * 6 * 16  # agent-steps: worlds x agents x ticks


def taught(changes: dict[str, Any] | None = None, clone: dict[str, Any] | None = None, **more: Any) -> Run:
    """PPO, the critic and imitation of the arena's script; `changes` by their paths."""
    game = games.arena_basic_easy_shaped(num_agents=6, max_steps=40)
    run = small_run(game, **more).replace("teacher", "arena")
    losses = {"ppo": PPO(), "value": Value(), "clone": Clone(**(clone or {}))}
    usual = {"losses": losses, "trainer.total_timesteps": 8 * EPOCH, "checkpoint.seconds": 0.0}
    return run.replace_all([*(usual | (changes or {})).items()])
