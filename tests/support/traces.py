"""What the tests of Prospector share: the three action suites, and a comparison of two worlds, to the bit."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from gridmill.prospector import ProspectorConfig, ProspectorEnv
from gridmill.prospector.bots import BOTS, Bot

# What a valid action costs the most, dearest first: purchases, then what burns fuel.
DEAREST = (67, 63, 65, 64, 62, 66, 61, 7, 10, 8, 9, 32, 33, 30, 29, 28)
Suite = Callable[[ProspectorEnv, np.ndarray], int]


def uniform(seed: int) -> Suite:
    """Any id, some of them out of range."""
    rng = np.random.default_rng(seed)
    return lambda env, obs: int(rng.integers(-5, 75))


def most_expensive(mask: np.ndarray) -> int:
    return next(action for action in DEAREST if mask[action])


def adversarial(seed: int) -> Suite:
    """The first invalid id if there is one, else the most expensive valid one. There always is one at the station."""

    def choose(env: ProspectorEnv, obs: np.ndarray) -> int:
        mask = env.action_masks()
        invalid = np.flatnonzero(mask == 0)
        return int(invalid[0]) if len(invalid) else most_expensive(mask)

    return choose


def wasteful(seed: int) -> Suite:
    """Adversarial in turns, with a valid action now and then, so that the ship gets around and runs dry."""
    rng = np.random.default_rng(seed)
    invalid = adversarial(seed)

    def choose(env: ProspectorEnv, obs: np.ndarray) -> int:
        turn, mask = rng.random(), env.action_masks()
        if turn < 0.2:
            return int(rng.choice(np.flatnonzero(mask[:68])))
        return invalid(env, obs) if turn < 0.8 else most_expensive(mask)

    return choose


def scenario(seed: int) -> Suite:
    """The four bots in turn, an episode each, with one id in ten at random."""
    rng = np.random.default_rng(seed)
    bots = [Bot(name, 1) for name in BOTS]
    episode = [0]

    def choose(env: ProspectorEnv, obs: np.ndarray) -> int:
        if obs[6] == 1.0:  # the clock has not moved: a new episode
            episode[0] += 1
            bots[episode[0] % len(bots)].reset()
        action = int(bots[episode[0] % len(bots)].act(obs[None])[0])
        return int(rng.integers(-5, 75)) if rng.random() < 0.1 else action

    return choose


SUITES: dict[str, Callable[[int], Suite]] = {
    "uniform": uniform,
    "adversarial": adversarial,
    "wasteful": wasteful,
    "scenario": scenario,
}


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def same_values(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Equal keys in order, equal types, equal bits."""
    return list(one) == list(other) and all(
        type(a) is type(b) and (bits(a) == bits(b) if isinstance(a, float) else a == b)
        for a, b in zip(one.values(), other.values(), strict=True)
    )


def compare(suite: str, seed: int, time_max: float, steps: int) -> dict[str, int]:
    """Run reference and native side by side; fails at the first bit that differs. Returns what was seen."""
    config = ProspectorConfig(time_max=time_max)
    slow = ProspectorEnv(config, seed=seed, impl="reference")
    fast = ProspectorEnv(config, seed=seed, impl="native")
    choose = SUITES[suite](seed)
    seen = {"episodes": 0, "invalid": 0, "truncated": 0, "field": 0}
    (obs, info), (other, other_info) = slow.reset(), fast.reset()
    for step in range(steps):
        where = f"{suite}, seed {seed}, step {step}"
        assert obs.tobytes() == other.tobytes(), f"{where}: observations at {np.flatnonzero(obs != other)}"
        assert slow.rng_state == fast.rng_state, f"{where}: random state"
        assert same_values(info, other_info), f"{where}: {info} and {other_info}"
        assert (slow.action_masks() == fast.action_masks()).all(), f"{where}: masks"
        action = choose(slow, obs)
        obs, reward, terminated, truncated, info = slow.step(action)
        other, other_reward, *flags, other_info = fast.step(action)
        assert bits(reward) == bits(other_reward), f"{where}: rewards {reward!r} and {other_reward!r}"
        assert flags == [terminated, truncated], f"{where}: ends"
        seen["invalid"] += info["invalid_action"]
        seen["truncated"] += truncated
        seen["field"] += info["node_context"] == "field"
        if terminated or truncated:
            seen["episodes"] += 1
            assert same_values(info, other_info), f"{where}: last info"
            assert obs.tobytes() == other.tobytes(), f"{where}: last observation"
            # Every third episode begins from a seed, the others go on in the stream.
            new = seed + seen["episodes"] if seen["episodes"] % 3 == 0 else None
            (obs, info), (other, other_info) = slow.reset(seed=new), fast.reset(seed=new)
    return seen
