"""What a session knows before its first epoch: weights to begin with, code that changed, the recipe and the commit."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from gridmill.policy import checkpoint, record
from gridmill.policy.transfer import refuse_unlike
from gridmill.policy.transfer import transfer as transfer_weights
from gridmill.run import Run
from gridmill.train.trainer import Trainer


def init_from(run: Run) -> checkpoint.Checkpoint | None:
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


def transfer(trainer: Trainer, start: checkpoint.Checkpoint) -> str:
    """Give the policy the weights it shall begin with, and rewards the scale that its critic knows; what was known."""
    saved = record.read(start)
    try:
        told = transfer_weights(trainer.policy, start.policy, saved.run.policy, saved.spec)
    except ValueError as error:
        raise ValueError(f"policy.init_from = {start.path}: {error}") from None
    theirs, ours = saved.run.trainer.reward, trainer.run.trainer.reward
    if theirs != ours:
        return f"{told}; its critic learned from {theirs} rewards, here they are {ours}"
    if ours != "raw":
        trainer.learner.scale.begin_with(start.trainer)
        told += f"; rewards are {ours} as they were there"
    return told


def still_true(found: checkpoint.Checkpoint, saved: Run, run: Run) -> checkpoint.Checkpoint:
    """A checkpoint without statistics of what a resumed run measures in another way: they begin anew."""
    tensors = dict(found.trainer)
    if run.trainer.reward != saved.trainer.reward:
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("reward.")}
    if run.score != saved.score:
        tensors["recent"] = torch.zeros(0, dtype=torch.float64)
    return replace(found, trainer=tensors)


def followed(tree: Any) -> set[str]:
    """The metrics that schedules in plain data of a run go over."""
    if isinstance(tree, dict) and {"start", "end", "over"} <= tree.keys():
        return {tree["over"].removeprefix("metric:")} if tree["over"].startswith("metric:") else set()
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return {name for part in parts for name in followed(part)}


def shipped_recipe(run: Run) -> Run | None:
    """The recipe as it is written, if it is one of ours; code of somebody's own is not run only to print a heading."""
    from gridmill import recipes

    return recipes.build(run.recipe) if run.recipe in recipes.names() else None


@functools.cache
def versions() -> dict[str, str]:
    """Of the package and of what it computes with; looked up once, for that reads files."""
    return {name: version(name) for name in ("gridmill", "torch", "numpy")}


@functools.cache
def commit() -> str:
    """The commit of the source the package runs from, if it has one."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
