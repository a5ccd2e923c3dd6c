"""What the rollouts of all ranks brought, put together as if one env had stepped all worlds.

Each rank sends the episodes that ended in its worlds, what its curriculum handed out, and what is broken, in one
message; all of them get the same, so that statistics, windows, curriculum and errors are the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from gridmill.env import Episodes
from gridmill.train.ranks import Ranks

EPISODE, STEP = "episode/", "step/"  # what names of arrays in a message begin with


@dataclass(frozen=True)
class Gathered:
    """Of all worlds."""

    episodes: Episodes
    ended: NDArray[np.bool_]  # [T, worlds]: which steps ended an episode
    steps: dict[str, NDArray[np.float64]]  # what they brought, each [T, worlds], if it is asked for
    handed_out: list[list[list[int]]]  # by the curriculum of each rank
    broken: str  # what is wrong with the numbers of a rank; empty if nothing is


def gather(
    ranks: Ranks,
    episodes: Episodes,
    ended: NDArray[np.bool_],
    steps: Mapping[str, NDArray[np.float64]],
    handed_out: list[tuple[int, int]],
    broken: str,
) -> Gathered:
    """All ranks' parts; `ended` and `steps` are [T, worlds of this rank], in the order of the ranks' worlds."""
    if ranks.count == 1:
        return Gathered(episodes, ended, dict(steps), [], broken)
    ranks.at("gathering episodes")
    told = json.dumps({"handed_out": handed_out, "broken": broken}).encode()
    message: dict[str, NDArray[Any]] = {"told": np.frombuffer(told, np.uint8), "ended": ended}
    message |= {EPISODE + name: column for name, column in episodes.items()}
    message |= {STEP + name: column for name, column in steps.items()}
    sent = save({name: np.ascontiguousarray(array) for name, array in message.items()})
    parts = [load(data) for data in ranks.all_bytes(sent)]
    said = [json.loads(part["told"].tobytes()) for part in parts]
    return Gathered(
        _joined([_named(part, EPISODE) for part in parts], [part["ended"] for part in parts]),
        np.concatenate([part["ended"] for part in parts], 1),
        {name: np.concatenate([part[STEP + name] for part in parts], 1) for name in steps},
        [each["handed_out"] for each in said],
        next((f"rank {rank}: {each['broken']}" for rank, each in enumerate(said) if each["broken"]), ""),
    )


def _named(part: Mapping[str, NDArray[Any]], start: str) -> Episodes:
    return Episodes({name.removeprefix(start): array for name, array in part.items() if name.startswith(start)})


def _joined(episodes: list[Episodes], ended: list[NDArray[np.bool_]]) -> Episodes:
    """Records of all ranks in the order in which one env gives them: by step, then by world, then by agent.

    A rank's own lie in the order of its ends; if it had too many to keep, the first are missing.
    """
    steps = []
    for some, ends in zip(episodes, ended, strict=True):
        at = np.nonzero(ends)[0]
        agents = int(some["agent"].max()) + 1 if some.count else 1
        steps.append(np.repeat(at, agents)[len(at) * agents - some.count :])
    whole = Episodes.joined(episodes)
    return whole.where(np.argsort(np.concatenate(steps), kind="stable")) if whole else whole
