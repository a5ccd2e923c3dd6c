"""Stable-Baselines3 on the fast batch against one env per world: steps per CPU second of one thread, in turns.

    python bench/vec_env.py --game prospector --envs 64 --rounds 5
    python bench/vec_env.py --game arena --envs 1536 --rounds 9 --dense

Both have the same number of envs of one game. `batch` is `gridmill.adapters.vec_env`, one native step for all; `one by
one` is Stable-Baselines3's DummyVecEnv of as many single-agent Gymnasium envs, each with a world of its own. `step` is
the VecEnv alone with random actions, `learn` is `PPO.learn`, its network and updates included. With --dense it is a
step with dense boxes against a step with tokens: of the adapter, which users of `obs="dense"` have, and of the batch
alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, Literal

import gymnasium
import numpy as np
import torch

from gridmill import games
from gridmill.adapters import vec_env

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what importing it may warn about
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

TICKS = 128  # of a rollout
TURN = 8  # ticks


def batch(game: str, envs: int, obs: Literal["tokens", "dense"] = "tokens") -> Any:
    agents = games.build(game).num_agents
    if envs % agents:
        raise SystemExit(f"--envs: expected a multiple of {agents}, the agents of a world of {game}, got {envs}")
    return vec_env(game, num_worlds=envs // agents, threads=1, seed=0, obs=obs)


def one_by_one(game: str, envs: int) -> Any:
    return DummyVecEnv([lambda: gymnasium.make(f"gridmill/{game}-v0") for _ in range(envs)])


def step(env: Any, ticks: int) -> int:
    rng = np.random.default_rng(0)
    env.reset()
    for _ in range(ticks):
        env.step(rng.integers(0, env.action_space.n, env.num_envs))
    return ticks * int(env.num_envs)


def learner(env: Any) -> Callable[[Any, int], int]:
    model = PPO("MlpPolicy", env, n_steps=TICKS, batch_size=1024, n_epochs=4, seed=0, device="cpu")

    def learn(env: Any, ticks: int) -> int:
        before = model.num_timesteps
        model.learn(ticks * env.num_envs, reset_num_timesteps=False)
        return int(model.num_timesteps - before)

    return learn


def dense(game: str, envs: int, rounds: int) -> None:
    """A step with dense boxes to a step with tokens: of the adapter, then of the batch, which writes both.

    Pairs play the same episodes, a few ticks each in turns, so that resets and a busy neighbour slow both alike.
    """
    adapters = batch(game, envs), batch(game, envs, "dense")
    batches = batch(game, envs).batch, batch(game, envs).batch
    batches[1].dense_into(np.zeros((batches[1].num_rows, *batches[1].dense_shape), np.uint8))
    rng = np.random.default_rng(0)
    actions = [rng.integers(0, batches[0].num_actions, batches[0].num_rows).astype(np.int32) for _ in range(TICKS)]
    for what, pair in (("adapter", adapters), ("batch", batches)):
        for one in pair:
            one.reset()
        found = sorted([in_turns(pair, actions) for _ in range(rounds + 1)][1:])  # the first warms up
        figures = f"{statistics.median(found):.2f}x a step ({found[0]:.2f} to {found[-1]:.2f})"
        print(f"{game}, {envs} rows, {what}: with dense {figures}")


def in_turns(pair: tuple[Any, Any], actions: list[Any]) -> float:
    """CPU seconds of the second to those of the first."""
    used = [0.0, 0.0]
    for begin in range(0, len(actions), TURN):
        for which, one in enumerate(pair):
            began = time.process_time()
            for each in actions[begin : begin + TURN]:
                one.step(each)
            used[which] += time.process_time() - began
    return used[1] / used[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="prospector")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dense", action="store_true", help="what dense observations cost beside tokens")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.dense:
        dense(given.game, given.envs, given.rounds)
        return
    made = {"batch": batch(given.game, given.envs), "one by one": one_by_one(given.game, given.envs)}
    print(f"{given.game}, {given.envs} envs, {given.rounds} rounds of {TICKS} ticks, median steps per CPU second")
    for what in ("step", "learn"):
        work = {name: step if what == "step" else learner(env) for name, env in made.items()}
        rates: dict[str, list[float]] = {name: [] for name in made}
        for _ in range(given.rounds + 1):  # the first warms up
            for name, env in made.items():
                began = time.process_time()
                steps = work[name](env, TICKS)
                rates[name].append(steps / (time.process_time() - began))
        ratios = [a / b for a, b in zip(rates["batch"][1:], rates["one by one"][1:], strict=True)]
        figures = ", ".join(f"{name} {statistics.median(found[1:]):,.0f}" for name, found in rates.items())
        print(f"{what}: {figures}; ratio {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})")


if __name__ == "__main__":
    main()
