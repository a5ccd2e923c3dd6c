"""The network that a checkpoint's record describes. Nothing is believed, since a file may come from a stranger: each
part is what it must be and no larger than any game makes it, and code is found only if the person named it too.
"""

from __future__ import annotations

import warnings
from typing import Any

from pydantic import ConfigDict

from gridmill.config import Config, ConfigError, Frozen, user_code
from gridmill.policy import initial
from gridmill.policy.build import build
from gridmill.policy.checkpoint import POLICY, RECORD, Checkpoint, CheckpointError
from gridmill.policy.config import PolicyConfig
from gridmill.policy.network import Policy
from gridmill.policy.spec import Spec
from gridmill.policy.usable import changed_code, refuse_unusable

MOST_WORDS = 4096  # features, tags, vibes, actions
MOST_WINDOW = 16  # a place has four bits for each side
MOST_NUMBERS = 1 << 24  # of an observation


class SavedTrainer(Config):
    """Of the settings of training, what a player must know."""

    model_config = ConfigDict(extra="ignore")
    masks: bool
    gamma: Any = None
    reward: str = ""
    signal: Any = ()


class SavedRun(Config):
    """Of a run, what a player must know."""

    model_config = ConfigDict(extra="ignore")
    policy: PolicyConfig
    trainer: SavedTrainer


class SavedClock(Config):
    """run.json, as far as it says how far a run has come."""

    model_config = ConfigDict(extra="ignore")
    seconds: float
    last: Frozen[str, float]  # metrics by name


class Record(Config):
    """run.json, as far as a player reads it."""

    model_config = ConfigDict(extra="ignore")
    run: SavedRun
    spec: Spec


def read(found: Checkpoint) -> Record:
    """The record; CheckpointError if it is none, CodeNeeded if it names code that nobody named."""
    run = found.record.get("run")
    policy = run.get("policy") if isinstance(run, dict) else None
    try:
        with user_code.from_a_file({"policy": policy}, found.path):  # losses are not for players
            record = Record.load(Record.upgraded(found.record))
        refuse_large(record.spec)
    except user_code.CodeNeeded:
        raise
    except ValueError as error:
        raise CheckpointError(str(error), found.path / RECORD) from None
    return record


def clock(found: Checkpoint) -> SavedClock:
    """How far the run had come; CheckpointError if the record does not say."""
    try:
        return SavedClock.load({name: found.record[name] for name in ("seconds", "last") if name in found.record})
    except ConfigError as error:
        raise CheckpointError(str(error), found.path / RECORD) from None


def run(found: Checkpoint) -> Any:
    """Plain data of the run; CheckpointError if there is none."""
    tree = found.record.get("run")
    if not isinstance(tree, dict):
        raise CheckpointError(
            f"expected the settings of a run, got {type(tree).__name__} - at `$.run`", found.path / RECORD
        )
    return tree


def network(found: Checkpoint) -> tuple[Policy, Record]:
    """The network of a checkpoint with its weights. Sizes are compared before it is made."""
    record = read(found)
    config = record.run.policy
    for line in changed_code(found, {"policy": config.tree()}):
        warnings.warn(line, stacklevel=3)
    if not user_code.named_in({"policy": config.tree()}):  # of parts of the user's own the size is only about
        wanted, there = Policy.size(config, record.spec).parameters, sum(t.numel() for t in found.policy.values())
        if wanted != there:
            raise CheckpointError(f"expected {wanted} weights for its settings, got {there}", found.path / POLICY)
    with initial.left_out():
        policy = build(config, record.spec)
    refuse_unusable(found, policy.state_dict())
    policy.load_state_dict(found.policy)
    return policy, record


def refuse_large(spec: Spec) -> None:
    """ValueError if no game has such words."""
    words = max(len(spec.actions), len(spec.features), len(spec.tags), len(spec.vibes), len(spec.normalizers))
    sizes = (max(spec.window) <= MOST_WINDOW, words <= MOST_WORDS, max(spec.obs_size, spec.num_tokens) <= MOST_NUMBERS)
    tops = all(0 <= top <= MOST_NUMBERS for top in spec.normalizers)
    if not all(sizes) or not tops or min(*spec.window, spec.obs_size, spec.num_tokens) < 0:
        raise ValueError("policy: it has more words than any game")
