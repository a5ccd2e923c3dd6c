"""The weights that a run begins with, if it names some: those of another run."""

from __future__ import annotations

from pathlib import Path

from gridmill.policy import checkpoint, record
from gridmill.policy.transfer import refuse_unlike, transfer
from gridmill.run import Run
from gridmill.train.trainer import Trainer


def named(run: Run) -> checkpoint.Checkpoint | None:
    """The weights that a run shall begin with, if it names some; refused if the networks are not alike."""
    if not run.policy.init_from:
        return None
    load = checkpoint.load_policy if run.trainer.reward == "raw" else checkpoint.load
    found = checkpoint.latest(Path(run.policy.init_from), load)
    _, saved = record.network(found)  # refuses weights that are not those of its settings
    try:
        refuse_unlike(run.policy, saved.run.policy, saved.spec)
    except ValueError as error:
        raise ValueError(f"policy.init_from = {found.path}: {error}") from None
    return found


def transfer_to(trainer: Trainer, start: checkpoint.Checkpoint) -> str:
    """Give the policy the weights it shall begin with, and rewards the scale that its critic knows; what was known."""
    saved = record.read(start)
    try:
        told = transfer(trainer.policy, start.policy, saved.run.policy, saved.spec)
    except ValueError as error:
        raise ValueError(f"policy.init_from = {start.path}: {error}") from None
    theirs, ours = saved.run.trainer.reward, trainer.run.trainer.reward
    if theirs != ours:
        return f"{told}; its critic learned from {theirs} rewards, here they are {ours}"
    if ours != "raw":
        trainer.learner.scale.begin_with(start.trainer)
        told += f"; rewards are {ours} as they were there"
    return told
