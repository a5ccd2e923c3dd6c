"""Experience: one rollout as preallocated [T, B] arrays, and its segments as minibatches.

A segment is `bptt_horizon` steps of one row. With prio_alpha = 0 every segment is used exactly once per update epoch
in a shuffled order: steps collected are steps trained on. With it, segments are drawn by |advantage| (Schaul et al.
2016).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gridmill.arithmetic import Sizes
from gridmill.policy.spec import Spec
from gridmill.train.advantage import Trajectory
from gridmill.train.losses import Minibatch


class Experience:
    """Storage of one rollout; `t` is the step, rows are those of the env."""

    def __init__(self, sizes: Sizes, spec: Spec, state_size: int, masks: bool, device: torch.device) -> None:
        self.sizes, self.device = sizes, device
        steps, rows = sizes.horizon, sizes.rows
        shape = (spec.num_tokens, 3) if spec.kind == "tokens" else (spec.obs_size,)
        kind = torch.uint8 if spec.kind == "tokens" else torch.float32

        def floats() -> Tensor:
            return torch.zeros(steps, rows, device=device)

        def flags() -> Tensor:
            return torch.zeros(steps, rows, dtype=torch.bool, device=device)

        self.obs = torch.zeros(steps, rows, *shape, dtype=kind, device=device)
        self.starts = torch.zeros(steps, rows, dtype=torch.uint8, device=device)
        self.masks: Tensor | None = None
        if masks:
            self.masks = torch.zeros(steps, rows, len(spec.actions), dtype=torch.uint8, device=device)
        self.actions = torch.zeros(steps, rows, dtype=torch.int32, device=device)
        self.log_probs, self.values, self.rewards = floats(), floats(), floats()
        self.bootstrap, self.advantages, self.returns = floats(), floats(), floats()
        self.ratios = torch.ones(steps, rows, device=device)
        self.terminals, self.truncations = flags(), flags()
        self.last_value = torch.zeros(rows, device=device)
        self.states = torch.zeros(sizes.segments_per_row, rows, state_size, device=device)  # before each segment

    def trajectory(self, rewards: Tensor) -> Trajectory:
        """What advantages are made of; rewards as the learner sees them."""
        return Trajectory(rewards, self.values, self.terminals, self.truncations, self.bootstrap, self.last_value)

    def segment_steps(self, segments: Tensor) -> Tensor:
        """Flat indices [bptt_horizon, n] into the [T * B] steps; segment s is part s // B of row s % B."""
        part, row = segments // self.sizes.rows, segments % self.sizes.rows
        steps = torch.arange(self.sizes.bptt_horizon, device=segments.device)
        return (part * self.sizes.bptt_horizon + steps[:, None]) * self.sizes.rows + row

    def minibatch(self, segments: Tensor, advantages: Tensor, weights: Tensor, device: torch.device) -> Minibatch:
        """The segments on the learner's device. `advantages` [T, B] as the loss shall see them."""
        index = self.segment_steps(segments)
        flat = index.reshape(-1)

        def pick(x: Tensor) -> Tensor:
            # Rows are copied whole; indexing by two arrays would go element by element.
            found = x.reshape(-1, *x.shape[2:]).index_select(0, flat)
            return found.view(*index.shape, *x.shape[2:]).to(device, non_blocking=True)

        states = self.states.flatten(0, 1).index_select(0, segments)
        return Minibatch(
            obs=pick(self.obs),
            starts=pick(self.starts),
            masks=None if self.masks is None else pick(self.masks),
            state=states.to(device, non_blocking=True),
            actions=pick(self.actions),
            log_probs=pick(self.log_probs),
            values=pick(self.values),
            advantages=pick(advantages),
            returns=pick(self.returns),
            weights=weights.to(device, non_blocking=True),
        )


def shuffled(sizes: Sizes, rng: np.random.Generator) -> list[Tensor]:
    """Every segment once: the segments of each minibatch."""
    order = torch.from_numpy(rng.permutation(sizes.segments))
    return list(torch.split(order, sizes.minibatch_segments))


def prioritised(
    advantages: Tensor, sizes: Sizes, alpha: float, beta: float, rng: np.random.Generator
) -> tuple[list[Tensor], list[Tensor]]:
    """Segments drawn with probability p ~ (mean |advantage|)^alpha, and weights (S p)^-beta over their largest."""
    size = advantages.abs().view(sizes.segments_per_row, sizes.bptt_horizon, sizes.rows).mean(1).reshape(-1)
    priority = (size.double().cpu().numpy() + 1e-6) ** alpha
    chance = priority / priority.sum()
    drawn = rng.choice(sizes.segments, size=(sizes.minibatches, sizes.minibatch_segments), p=chance)
    weight = (sizes.segments * chance[drawn]) ** -beta
    weight /= weight.max(axis=1, keepdims=True)
    return list(torch.from_numpy(drawn)), list(torch.from_numpy(weight.astype(np.float32)))
