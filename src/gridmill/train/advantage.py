"""Advantages as pure functions of [T, B] arrays: GAE (Schulman et al. 2016) and V-trace (Espeholt et al. 2018).

A step that ended its episode by the game's rules is worth its reward; one that was cut by the time limit is worth its
reward and the value of what would have come next, `bootstrap`. Where the teacher takes over from the policy or hands
back, the critic's value stands for what follows: it was not the doing of whoever acted before. On a CPU steps are taken
one by one, which is fast there; on a device in parts (policy/recurrence.py).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gridmill.policy.recurrence import scanned


class Trajectory(NamedTuple):
    """What advantages are made of, all [T, B] but for the last value."""

    rewards: Tensor
    values: Tensor
    terminals: Tensor  # bool: ended by the rules
    truncations: Tensor  # bool: cut by the time limit
    bootstrap: Tensor  # V(final observation) where truncated, else 0
    last_value: Tensor  # [B], V of the observation after the last step
    led: Tensor | None = None  # [T, B], not 0 where the teacher acted


def _next_values(x: Trajectory) -> tuple[Tensor, Tensor]:
    """The value each step leads to, and 1 where the episode goes on."""
    after = torch.cat((x.values[1:], x.last_value[None]))
    cut = x.truncations & ~x.terminals
    goes_on = (~(x.terminals | x.truncations)).to(x.values.dtype)
    return after * goes_on + x.bootstrap * cut.to(x.values.dtype), goes_on


def _carry(x: Trajectory, goes_on: Tensor) -> Tensor:
    """1 where what comes later tells about a step: in the same episode, and by whoever acted in it."""
    if x.led is None:
        return goes_on
    led = x.led != 0
    same = torch.ones_like(goes_on)
    same[:-1] = (led[1:] == led[:-1]).to(goes_on.dtype)
    return goes_on * same


def gae(x: Trajectory, gamma: float, lam: float) -> Tensor:
    """Advantages [T, B]; add the values for returns."""
    after, goes_on = _next_values(x)
    carry = _carry(x, goes_on)
    deltas = x.rewards + gamma * after - x.values
    if deltas.device.type != "cpu":
        return scanned(gamma * lam * carry, deltas, torch.zeros_like(x.last_value), backwards=True)
    advantages = torch.empty_like(deltas)
    carried = torch.zeros_like(x.last_value)
    for t in range(deltas.shape[0] - 1, -1, -1):
        carried = deltas[t] + gamma * lam * carry[t] * carried
        advantages[t] = carried
    return advantages


def vtrace(x: Trajectory, ratios: Tensor, gamma: float, lam: float, rho_clip: float, c_clip: float) -> Tensor:
    """Advantages [T, B] corrected for a policy that has moved on since: ratios are new over old probabilities."""
    after, goes_on = _next_values(x)
    rho, c = ratios.clamp(max=rho_clip), ratios.clamp(max=c_clip) * _carry(x, goes_on)
    deltas = rho * (x.rewards + gamma * after - x.values)
    if deltas.device.type != "cpu":
        return scanned(gamma * lam * c, deltas, torch.zeros_like(x.last_value), backwards=True)
    advantages = torch.empty_like(deltas)
    carried = torch.zeros_like(x.last_value)
    for t in range(deltas.shape[0] - 1, -1, -1):
        carried = deltas[t] + gamma * lam * c[t] * carried
        advantages[t] = carried
    return advantages
