"""Whom an agent sees, read from its own tokens: every agent in its window shows its index.

Where rewards are each agent's own, nobody cares what becomes of what it leaves behind or takes from others. An agent to
whose advantage those of the agents around it are added learns to: its gradient is that of the sum of their returns,
and every agent's own critic has taken out what could be foreseen. The whole world as a team drowns in noise; those
in sight are few, and they are the ones that an action reaches.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gridmill.config import ConfigError
from gridmill.env.tokens import NO_TOKEN
from gridmill.policy.device import sent
from gridmill.policy.kernels import arrays, native
from gridmill.policy.spec import Spec

FEATURE = "agent:id"
MOST_AGENTS = 256  # the index is one byte


class VisibleAgents:
    """Of one environment with `num_agents` in each world; rows are those of its `learners` (None: of all agents)."""

    def __init__(self, spec: Spec, num_agents: int, learners: Sequence[int] | None = None) -> None:
        if FEATURE not in spec.features or num_agents > MOST_AGENTS:
            what = f"worlds of {num_agents} agents" if FEATURE in spec.features else f"no feature `{FEATURE}`"
            raise ConfigError(
                f"expected agents that see each other's index, at most {MOST_AGENTS} in a world, got {what}; "
                "set it to 0",
                "$.trainer.shared_advantage",
            )
        chosen = list(range(num_agents) if learners is None else learners)
        self.feature, self.world_rows = spec.features.index(FEATURE), len(chosen)
        self.place = torch.full((num_agents,), -1, dtype=torch.int32)  # which row of its world is an agent's
        self.place[chosen] = torch.arange(len(chosen), dtype=torch.int32)

    def sums(self, obs: Tensor, numbers: Tensor) -> Tensor:
        """Numbers [T, B] of all agents in sight, added up for each; obs uint8 [T, B, tokens, 3]."""
        if obs.device.type == "cpu":
            found = torch.empty(numbers.shape)
            obs_, place, numbers_, found_ = arrays(obs, self.place, numbers.contiguous(), found)
            native.sum_visible(obs_, self.feature, self.world_rows, place, numbers_, found_)
            return found
        return self.plain_sums(obs, numbers)

    def plain_sums(self, obs: Tensor, numbers: Tensor) -> Tensor:
        """The same in torch, a step at a time; a token that shows nobody counts 0, so nothing is searched for."""
        found = torch.zeros_like(numbers)
        place = torch.cat((self.place, torch.full((MOST_AGENTS - len(self.place),), -1)))
        place = sent(place.long(), obs.device)
        row = torch.arange(obs.shape[1], device=obs.device)[:, None]
        first = row // self.world_rows * self.world_rows  # of the row's world
        for t in range(len(obs)):
            shown = place[obs[t, ..., 2].long()]
            there = (obs[t, ..., 0] != NO_TOKEN) & (obs[t, ..., 1] == self.feature) & (shown >= 0)
            other = first + shown.clamp(min=0)
            found[t] = (numbers[t][other] * (there & (other != row))).sum(-1)
        return found
