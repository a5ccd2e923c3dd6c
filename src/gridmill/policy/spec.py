"""Spec: what a policy needs to know of an environment, by name; and Layout: how its token bytes find their meaning.

A Spec is in every checkpoint. A Layout reads the bytes of one environment (`seen`) in the words of a policy (`own`):
what the policy has no word for is not looked at, so a checkpoint can play another game. No torch here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from gridmill.config import Config, ConfigError
from gridmill.env.env import Env
from gridmill.env.tokens import GLOBAL_LOCATION

ENUMERATED = 16  # features with at most so many values have a row for each value
SIGNED = "last_reward"  # 128 means zero
AGENT = "agent:id"


class Spec(Config):
    """Shapes and words of an environment."""

    kind: Literal["tokens", "vector"]
    actions: tuple[str, ...]
    obs_size: int = 0  # of a vector
    num_tokens: int = 0
    window: tuple[int, int] = (0, 0)
    features: tuple[str, ...] = ()
    normalizers: tuple[float, ...] = ()
    tags: tuple[str, ...] = ()
    vibes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _has_words(self) -> Spec:
        if len(self.normalizers) != len(self.features):
            raise ConfigError(f"expected {len(self.features)} of them, got {len(self.normalizers)}", "$.normalizers")
        if self.kind == "tokens" and "tag" in self.features and not self.tags:
            raise ConfigError("expected the names of tags, got none", "$.tags")
        return self

    @staticmethod
    def of(env: Env, name_agents: bool = False) -> Spec:
        """The spec of an env; with `name_agents` the agents of a small world have a word each instead of a number."""
        spec = Spec(kind=env.obs_kind, actions=tuple(env.action_names), **env.vocabulary())
        if not name_agents or AGENT not in spec.features or env.num_agents > ENUMERATED:
            return spec
        return spec.replace(f"normalizers.{spec.features.index(AGENT)}", env.num_agents - 1)

    @property
    def names_agents(self) -> bool:
        """Whether agents have words of their own."""
        return AGENT in self.features and self.values_of(AGENT) is not None

    def values_of(self, feature: str) -> list[str] | None:
        """The names of a feature's values, or None if its value is an amount."""
        if feature == "tag":
            return list(self.tags)
        if feature == "vibe":
            return list(self.vibes)
        if feature == "last_action":
            return list(self.actions)
        top = self.normalizers[self.features.index(feature)]
        return [str(value) for value in range(int(top) + 1)] if top < ENUMERATED else None


@dataclass(frozen=True)
class Layout:
    """Tables from bytes to rows of an embedding: row = place[location] * slots + slot[feature, value].

    An amount has two rows: one for being there, and one, `amount[feature, value]` times, for how much.
    """

    place: NDArray[np.int32]  # [256]
    slot: NDArray[np.int32]  # [features, 256]
    amount: NDArray[np.float32]  # [features, 256]
    places: int
    slots: int

    @staticmethod
    def of(own: Spec, seen: Spec | None = None) -> Layout:
        """How a policy with the words of `own` reads the bytes of `seen` (default: the same)."""
        seen = own if seen is None else seen
        first = {word: number for number, word in enumerate(slots_of(own))}
        slot = np.full((len(seen.features), 256), -1, np.int32)
        amount = np.zeros((len(seen.features), 256), np.float32)
        for i, feature in enumerate(seen.features):
            if feature not in own.features:
                continue
            values = own.values_of(feature)
            if values is None:  # whether a number is an amount is the policy's to say, whatever its range is elsewhere
                slot[i] = first[feature, ""]
                amount[i] = _amounts(feature)
            else:
                for number, value in enumerate((seen.values_of(feature) or values)[:256]):
                    slot[i, number] = first.get((feature, value), -1)
        return Layout(_places(own.window, seen.window), slot, amount, own.window[0] * own.window[1] + 1, len(first))

    @property
    def rows(self) -> int:
        return self.places * self.slots


def slots_of(spec: Spec) -> tuple[tuple[str, str], ...]:
    """The words of a spec in the order of their slots: a feature and its value, or "" and "amount" of an amount."""
    return tuple((feature, value) for feature in spec.features for value in spec.values_of(feature) or ["", "amount"])


def _amounts(feature: str) -> NDArray[np.float32]:
    """What a byte of an amount counts: small numbers matter most, 15 is about one.

    In double precision, rounded once: NumPy's logarithm of a float32 has other last bits on a CPU with AVX-512.
    """
    if feature == SIGNED:
        return (np.arange(256, dtype=np.float32) - 128) / np.float32(32)
    return np.array([math.log2(1 + value) / 4 for value in range(256)], np.float32)


def _places(own: tuple[int, int], seen: tuple[int, int]) -> NDArray[np.int32]:
    """Places by location byte (row and column in four bits each); windows of two sizes share their centre."""
    place = np.full(256, -1, np.int32)
    down, right = own[0] // 2 - seen[0] // 2, own[1] // 2 - seen[1] // 2
    for row in range(seen[0]):
        for column in range(seen[1]):
            r, c = row + down, column + right
            if 0 <= r < own[0] and 0 <= c < own[1]:
                place[row << 4 | column] = r * own[1] + c
    place[GLOBAL_LOCATION] = own[0] * own[1]
    return place


def places_of(own: tuple[int, int], seen: tuple[int, int]) -> NDArray[np.int64]:
    """For every place of a window `seen` the place of `own` that is as far from the centre, or -1; then "nowhere"."""
    by_byte = _places(own, seen)
    bytes_ = [row << 4 | column for row in range(seen[0]) for column in range(seen[1])]
    return by_byte[[*bytes_, GLOBAL_LOCATION]].astype(np.int64)
