"""What came of it: the returns of every action, regret, the critic's error; as plain data and for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gridmill.config.text import printable
from gridmill.evaluate.means import standard_error
from gridmill.replay import Replay
from gridmill.whatif.players import Moment, OnPlayer
from gridmill.whatif.rollouts import Returns

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


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


def summed(
    tape: Replay,
    branch: int,
    tick: int,
    agent: int,
    player: OnPlayer,
    moment: Moment,
    returns: Returns,
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
            standard_error(paid[action]),
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
        regret_se=None if apart is None else standard_error(apart),
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
