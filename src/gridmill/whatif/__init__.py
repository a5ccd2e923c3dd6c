"""What if: from a moment of a replay, every action of one agent, each played on many times by a policy.

The state before the tick is forked into many worlds of one batch, which the engine steps in its threads. Each rollout
has random numbers of its own, in the world and in the policy; rollout i of one action has those of rollout i of any
other, so that what two actions differ by is seen with fewer of them. `gridmill whatif` prints it; a server may call it.
"""

from __future__ import annotations

import os

from gridmill.env.arguments import seed_of
from gridmill.replay import Replay
from gridmill.whatif.outcomes import QUANTILES, Outcome, WhatIf, lines, summed
from gridmill.whatif.players import player_of
from gridmill.whatif.rollouts import returns_of

__all__ = ["QUANTILES", "Outcome", "WhatIf", "lines", "what_if"]


MOST_ROLLOUTS = 100_000  # of an action; each plays to the end of the episode


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

    `policy` continues for all agents: random, script:NAME or a folder; by default the one in the file, or named in it.
    """
    for name, value, least in (("rollouts", rollouts, 2), ("horizon", horizon, 0), ("threads", threads, 0)):
        if value < least:
            raise ValueError(f"{name}: expected at least {least}, got {value}")
    if rollouts > MOST_ROLLOUTS:
        raise ValueError(f"rollouts: expected at most {MOST_ROLLOUTS}, got {rollouts}")
    seed = seed_of(seed)
    if not 0 <= agent < tape.agents:
        raise ValueError(f"agent: expected one in [0, {tape.agents}), got {agent}")
    along = tape.actions_along(branch)
    last = len(along) - tape.branch(branch).ended
    if not 0 <= tick <= last:
        raise ValueError(f"tick: expected one in [0, {last}] of branch {branch}, got {tick}")
    player = player_of(tape, policy)
    moment = player.watch(tape, branch, tick, agent)
    returns = returns_of(tape, moment, player, rollouts, horizon, seed, threads or os.cpu_count() or 1, agent)
    recorded = int(along[tick, agent]) if tick < len(along) else None
    if recorded == len(moment.names):  # what was taken is no action, and not among those that are tried
        recorded = None
    return summed(tape, branch, tick, agent, player, moment, returns, recorded)
