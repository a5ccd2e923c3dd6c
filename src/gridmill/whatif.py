"""What if: from a moment of a replay, every action of one agent, each played on many times by a policy.

The state before the tick is forked into many worlds of one batch, which the engine steps in its threads. Each rollout
has random numbers of its own, in the world and in the policy; rollout i of one action has those of rollout i of any
other, so that what two actions differ by is seen with fewer of them. `gridmill whatif` prints it; a server may call it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gridmill import evaluate
from gridmill.config.text import printable
from gridmill.env import Env
from gridmill.games.make import make
from gridmill.replay import Playback, Replay, ReplayError
from gridmill.replay.blocks import line

WORLDS = 1024  # at a time
MOST_TICKS = 100_000  # of a rollout in a game without an end
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """The returns of one action: what the agent was paid from the tick on."""

    action: int
    name: str
    possible: bool  # whether the mask says that it would succeed
    chance: float | None  # that the policy takes it
    mean: float
    se: float
    quantiles: tuple[float, ...]  # QUANTILES


@dataclass(frozen=True)
class WhatIf:
    """What came of it. Values and discounted returns are of a trained policy only."""

    game: str
    branch: int
    tick: int
    agent: int
    policy: str
    rollouts: int  # of each action
    ticks: int  # of the longest rollout
    recorded: int | None  # the action that was taken; None after the last tick of a branch, or if it was none
    outcomes: tuple[Outcome, ...]
    best: int
    regret: float | None  # how much better the best action is than the recorded one
    regret_se: float | None
    gamma: float | None = None
    value: float | None = None  # the critic's, in units of the game's rewards
    expected: float | None = None  # the mean discounted return, actions weighed as the policy takes them
    critic_error: float | None = None

    def record(self) -> dict[str, Any]:
        """Plain data."""
        return {"version": 1, **asdict(self), "quantiles": QUANTILES}


def what_if(
    tape: Replay,
    tick: int,
    agent: int,
    policy: str = "",
    rollouts: int = 32,
    horizon: int = 0,
    branch: int = 0,
    seed: int = 0,
    threads: int = 0,
) -> WhatIf:
    """Every action of an agent at a tick, `rollouts` times each, to the end of the episode or for `horizon` ticks.

    `policy` plays on for all agents: random, script:NAME or a folder; by default the one in the file, or named in it.
    """
    for name, value, least in (("rollouts", rollouts, 2), ("horizon", horizon, 0), ("threads", threads, 0)):
        if value < least:
            raise ValueError(f"{name}: expected at least {least}, got {value}")
    if not 0 <= agent < tape.agents:
        raise ValueError(f"agent: expected one in [0, {tape.agents}), got {agent}")
    along = tape.actions_along(branch)
    last = len(along) - tape.branch(branch).ended
    if not 0 <= tick <= last:
        raise ValueError(f"tick: expected one in [0, {last}] of branch {branch}, got {tick}")
    player = _player(tape, policy)
    moment = player.watch(tape, branch, tick, agent)
    returns = _returns(tape, moment, player, rollouts, horizon, seed, threads or os.cpu_count() or 1, agent)
    recorded = int(along[tick, agent]) if tick < len(along) else None
    if recorded == len(moment.names):  # what was taken is no action, and not among those that are tried
        recorded = None
    return _summed(tape, branch, tick, agent, player, moment, returns, recorded)


# ---- who plays on


@dataclass(frozen=True)
class _Moment:
    """A world before a tick, and what a player knows of it."""

    state: bytes
    names: tuple[str, ...]  # of the actions
    possible: NDArray[np.bool_]  # [actions] of the agent
    memory: Any = None  # the player's, of one world
    chances: Floats | None = None  # [actions]
    value: float | None = None


class _OnPlayer(Protocol):
    """Who plays on after the forks: groups of worlds, one for each action, whose draws are the same."""

    name: str
    options: dict[str, Any]  # of `make`
    gamma: float | None

    def watch(self, tape: Replay, branch: int, tick: int, agent: int) -> _Moment:
        """Play up to a tick, remembering what it saw."""

    def begin(self, env: Env, moment: _Moment, groups: int, seed: int) -> None:
        """Get ready for an env in which every world is at the moment."""

    def act(self, env: Env) -> NDArray[np.int32]:
        """Actions of all rows."""

    def values(self, env: Env) -> Floats | None:
        """Of all rows as they are now."""


def _player(tape: Replay, policy: str) -> _OnPlayer:
    record = tape.played_by
    if not policy and record is not None and record.weights is not None:
        return _Trained(f"{record.name} (in the file)", _from_file(tape))
    policy = policy or tape.policy
    if not policy or (evaluate.is_trained(policy) and not Path(policy).exists()):
        raise ReplayError(
            f"whatif: the file names the policy {policy!r:.80}, which is not here and not in the file; "
            "say who plays on: --policy random, script:NAME or a folder"
        )
    if evaluate.is_trained(policy):
        return _Trained(policy, evaluate.load_trained(policy))
    kind, _, name = policy.partition(":")
    if kind == "random":
        return _Random()
    tape.game.expect_script(name, "policy")
    return _Script(name)


def _from_file(tape: Replay) -> Any:
    from gridmill.policy.player import of_record

    record = tape.played_by
    assert record is not None
    assert record.weights is not None
    try:
        return of_record(vars(record), record.tensors, record.weights.unpack())
    except (ValueError, TypeError, KeyError, RuntimeError) as reason:
        raise ReplayError(f"replay: its policy cannot be made: {line(reason)}") from None


def _moment(playback: Playback, agent: int, **more: Any) -> _Moment:
    env = playback.env
    names = tuple(env.action_names) or tuple(map(str, range(env.num_actions)))
    assert env.masks is not None
    return _Moment(env.save([0]), names, env.masks[agent] != 0, **more)


class _Random:
    """Any action."""

    def __init__(self) -> None:
        self.name, self.options = "random", dict[str, Any]()
        self.gamma: float | None = None

    def watch(self, tape: Replay, branch: int, tick: int, agent: int) -> _Moment:
        with Playback(tape, branch) as playback:
            playback.seek(tick)
            return _moment(playback, agent)

    def begin(self, env: Env, moment: _Moment, groups: int, seed: int) -> None:
        self.rng, self.groups = np.random.default_rng(seed), groups

    def act(self, env: Env) -> NDArray[np.int32]:
        drawn = self.rng.integers(0, env.num_actions, env.num_rows // self.groups, dtype=np.int32)
        return np.tile(drawn, self.groups)

    def values(self, env: Env) -> None:
        return None


class _Script:
    """A script of the game: a teacher of the batch, so what it remembers is forked with the worlds."""

    def __init__(self, script: str) -> None:
        self.name, self.options = f"script:{script}", {"teacher": script}
        self.gamma: float | None = None

    def watch(self, tape: Replay, branch: int, tick: int, agent: int) -> _Moment:
        with Playback(tape, branch, **self.options) as playback:
            playback.seek(tick)
            wanted = int(playback.env.teacher_actions[agent])
            chances = (np.arange(playback.env.num_actions) == wanted).astype(np.float64)  # -1: it wants none of them
            return _moment(playback, agent, chances=chances)

    def begin(self, env: Env, moment: _Moment, groups: int, seed: int) -> None:
        pass

    def act(self, env: Env) -> NDArray[np.int32]:
        return env.teacher_actions

    def values(self, env: Env) -> None:
        return None


class _Trained:
    """A network; what it remembers is its recurrent state."""

    def __init__(self, name: str, player: Any) -> None:
        self.name, self.player = name, player
        self.options: dict[str, Any] = {}
        self.gamma: float | None = player.gamma

    def watch(self, tape: Replay, branch: int, tick: int, agent: int) -> _Moment:
        player, memory = self.player, None
        with Playback(tape, branch) as playback:
            player.bind(playback.env, 0)
            while True:
                env = playback.env
                thought = player.think(env.obs, memory, env.masks)
                if playback.tick == tick:
                    break
                memory = thought.state
                playback.step()
            chances = thought.log_probs().exp()[agent].numpy().astype(np.float64)
            scale = player.reward_scale
            value = None if scale is None else scale * float(thought.values[agent])
            return _moment(playback, agent, memory=memory, chances=chances, value=value)

    def begin(self, env: Env, moment: _Moment, groups: int, seed: int) -> None:
        self.player.bind(env, seed)
        self.groups, self.step = groups, 0
        self.memory = None if moment.memory is None else np.tile(moment.memory, (env.num_worlds, 1))

    def act(self, env: Env) -> NDArray[np.int32]:
        self.memory = self.player.reset(self.memory, env.terminals | env.truncations)
        thought = self.player.think(env.obs, self.memory, env.masks)
        self.memory = thought.state
        rows = env.num_rows // self.groups
        parts = [slice(first, first + rows) for first in range(0, env.num_rows, rows)]
        allowed = thought.allowed
        groups = [
            thought._replace(logits=thought.logits[part], allowed=None if allowed is None else allowed[part])
            for part in parts
        ]
        self.step += 1
        return np.concatenate([self.player.choose(group, self.step) for group in groups])

    def values(self, env: Env) -> Floats | None:
        if self.player.reward_scale is None:
            return None
        thought = self.player.think(env.obs, self.memory, env.masks)
        return np.asarray(self.player.reward_scale * thought.values.numpy(), np.float64)


# ---- rollouts


@dataclass(frozen=True)
class _Returns:
    """Of every rollout [actions, rollouts]: what was paid; the same discounted, with what the critic expects after."""

    paid: Floats
    discounted: Floats
    ticks: int


def _returns(
    tape: Replay, moment: _Moment, player: _OnPlayer, rollouts: int, horizon: int, seed: int, threads: int, agent: int
) -> _Returns:
    actions = len(moment.names)
    most = max(1, WORLDS // actions)
    parts = [
        _chunk(tape, moment, player, min(most, rollouts - first), horizon, [seed, first], threads, agent)
        for first in range(0, rollouts, most)
    ]
    paid, discounted = (
        np.concatenate(each, axis=1) for each in zip(*((p.paid, p.discounted) for p in parts), strict=True)
    )
    return _Returns(paid, discounted, max(part.ticks for part in parts))


def _chunk(
    tape: Replay,
    moment: _Moment,
    player: _OnPlayer,
    rollouts: int,
    horizon: int,
    seed: list[int],
    threads: int,
    agent: int,
) -> _Returns:
    """World a * rollouts + r is rollout r of action a."""
    groups, gamma = len(moment.names), 1.0 if player.gamma is None else player.gamma
    worlds = groups * rollouts
    draws = np.random.default_rng(seed).integers(0, 2**64, rollouts + 1, np.uint64)
    options = {"masks": True, "threads": min(threads, worlds, os.cpu_count() or 1), **player.options}
    env: Env = make(tape.game, num_worlds=worlds, seed=tape.seed, **options)
    with env:
        env.reset()
        env.restore(moment.state, range(worlds))
        env.reseed(range(worlds), np.tile(draws[:rollouts], groups).tolist())
        player.begin(env, moment, groups, int(draws[-1] >> np.uint64(1)))
        rows = np.arange(worlds) * env.num_agents + agent
        alive, paid, discounted = np.ones(worlds), np.zeros(worlds), np.zeros(worlds)
        ticks = 0
        for actions in _ticks(env, player, rows, np.repeat(np.arange(groups, dtype=np.int32), rollouts), horizon):
            env.step(actions)
            paid += alive * env.rewards[rows]
            discounted += alive * gamma**ticks * env.rewards[rows]
            ticks += 1
            alive[env.terminals[rows] | env.truncations[rows]] = 0.0
            if not alive.any():
                break
        if alive.any() and (values := player.values(env)) is not None:
            discounted += alive * gamma**ticks * values[rows]
    shape = (groups, rollouts)
    return _Returns(paid.reshape(shape), discounted.reshape(shape), ticks)


def _ticks(
    env: Env, player: _OnPlayer, rows: NDArray[np.int64], first: NDArray[np.int32], horizon: int
) -> Iterator[NDArray[np.int32]]:
    """The actions of every tick; in the first, the agent's are given."""
    actions = player.act(env).copy()
    actions[rows] = first
    yield actions
    done = 1
    while done < (horizon or MOST_TICKS):
        yield player.act(env)
        done += 1


# ---- figures


def _summed(
    tape: Replay,
    branch: int,
    tick: int,
    agent: int,
    player: _OnPlayer,
    moment: _Moment,
    returns: _Returns,
    recorded: int | None,
) -> WhatIf:
    paid, rollouts = returns.paid, returns.paid.shape[1]
    chances = moment.chances
    outcomes = tuple(
        Outcome(
            action,
            name,
            bool(moment.possible[action]),
            None if chances is None else float(chances[action]),
            float(paid[action].mean()),
            float(paid[action].std(ddof=1) / np.sqrt(rollouts)),
            tuple(float(q) for q in np.quantile(paid[action], QUANTILES)),
        )
        for action, name in enumerate(moment.names)
    )
    best = int(np.argmax(paid.mean(1)))
    apart = None if recorded is None else paid[best] - paid[recorded]
    expected = None
    if chances is not None and player.gamma is not None:
        expected = float(chances @ returns.discounted.mean(1))
    known = moment.value is not None and expected is not None
    return WhatIf(
        game=tape.game.name,
        branch=branch,
        tick=tick,
        agent=agent,
        policy=player.name,
        rollouts=rollouts,
        ticks=returns.ticks,
        recorded=recorded,
        outcomes=outcomes,
        best=best,
        regret=None if apart is None else float(apart.mean()),
        regret_se=None if apart is None else float(apart.std(ddof=1) / np.sqrt(rollouts)),
        gamma=player.gamma,
        value=moment.value,
        expected=expected,
        critic_error=moment.value - expected if known and moment.value is not None and expected is not None else None,
    )


def lines(found: WhatIf) -> list[str]:
    """What came of it for people, in 80 columns."""
    head = [
        printable(f"{printable(found.game, 80)}: agent {found.agent} at tick {found.tick}; {found.policy}", 80),
        f"{found.rollouts} rollouts of each action, {found.ticks} ticks at most; returns of the agent",
        "",
        f"  {'action':<22}{'chance':>8}{'mean':>10}{'std. error':>12}{'5 %':>8}{'median':>9}{'95 %':>9}",
    ]
    rows = []
    for one in sorted(found.outcomes, key=lambda outcome: -outcome.mean):
        mark = "*" if one.action == found.recorded else " "
        name = printable(one.name if one.possible else f"{one.name} (fails)")
        chance = "-" if one.chance is None else f"{100 * one.chance:.1f} %"
        low, _, middle, _, high = (f"{q:.4g}" for q in one.quantiles)
        rows.append(f"{mark} {name[:22]:<22}{chance:>8}{one.mean:>10.4g}{one.se:>12.2g}{low:>8}{middle:>9}{high:>9}")
    end = [""]
    if found.recorded is not None and found.regret is not None:
        taken, best = (printable(found.outcomes[action].name) for action in (found.recorded, found.best))
        end.append(f"* taken: {taken}, regret {found.regret:.4g} +- {found.regret_se:.2g} against {best}")
    if found.critic_error is not None:
        end.append(
            f"critic {found.value:.4g}, mean discounted return {found.expected:.4g} (gamma {found.gamma:g}): "
            f"error {found.critic_error:+.4g}"
        )
    return [*head, *rows, *end]
