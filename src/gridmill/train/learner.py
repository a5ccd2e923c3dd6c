"""Learner: one epoch's experience -> updates of the policy. Minibatches of whole segments, in pieces that the hands
take in turn; the gradients of the pieces are added up in their order before one optimizer step.

The guard: numbers that are not finite in log-probs, losses or gradients skip the update, which keeps the last good
weights. The caller counts and stops; nothing here writes files.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from gridmill.arithmetic import Sizes
from gridmill.policy.network import Output, Policy
from gridmill.run import Run
from gridmill.train.advantage import gae, vtrace
from gridmill.train.experience import Experience, prioritised, shuffled
from gridmill.train.hands import Hands
from gridmill.train.losses import METRICS, Minibatch, Weights, ppo, weights_at
from gridmill.train.optimizer import Optimizer, add_up, clip_norm
from gridmill.train.schedule import Progress, number_at
from gridmill.train.sight import Sight


@dataclass
class Learned:
    """What an epoch of learning was."""

    metrics: dict[str, float] = field(default_factory=dict)
    updates: int = 0
    skipped: int = 0  # updates whose numbers were not finite
    in_a_row: int = 0  # of these, at the end
    trained_steps: int = 0
    bad: Minibatch | None = None  # the last minibatch that was skipped
    gradients: list[Tensor] = field(default_factory=list)  # of the last update, for the analysis


class Learner:
    """Holds the optimizer and what is learned about rewards; its state is in `tensors`."""

    def __init__(
        self,
        run: Run,
        policy: Policy,
        forward: Callable[..., Output],
        sizes: Sizes,
        hands: Hands,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.run, self.policy, self.forward, self.sizes = run, policy, forward, sizes
        self.hands, self.device, self.autocast = hands, device, autocast
        self.parameters = list(policy.parameters())
        self.optimizer = Optimizer(run.optimizer, policy)
        self.scale = RewardScale(run, sizes.rows)
        self.sight = Sight(policy.spec, sizes.num_agents) if run.trainer.sight_share != 0 else None
        self.in_a_row = 0  # skipped updates, over epochs

    def learn(self, x: Experience, now: Progress) -> Learned:
        """All updates of one epoch."""
        t, done = self.run.trainer, Learned(in_a_row=self.in_a_row)
        rewards = self.scale(x)
        weights, rate = weights_at(self.run.losses, now), number_at(self.run.optimizer.learning_rate, now)
        self.optimizer.use("train")
        self.optimizer.set_rate(rate)
        x.ratios.fill_(1.0)
        sums = torch.zeros(len(METRICS) + 1, device=self.device)
        far = False  # from the policy that collected, by target_kl
        for round_ in range(t.update_epochs):
            if round_ == 0 or t.advantage == "vtrace":
                self._advantages(x, rewards, number_at(t.sight_share, now))
            rng = np.random.default_rng([self.run.seed, now.epochs, round_])
            ones = torch.ones(self.sizes.minibatch_segments)
            if t.prio_alpha > 0:
                beta = t.prio_beta0 + (1 - t.prio_beta0) * now.steps / max(1, now.total_steps)
                chosen, importance = prioritised(x.advantages, self.sizes, t.prio_alpha, beta, rng)
            else:
                chosen, importance = shuffled(self.sizes, rng), [ones] * self.sizes.minibatches
            for segments, weight in zip(chosen, importance, strict=True):
                found = self._update(x, segments.to(x.device), weight.to(x.device), weights, done)
                if found is not None:
                    sums += found
                    far = 0 < t.target_kl < float(found[METRICS.index("kl")])
                if far or done.in_a_row >= 3:
                    break
            if far or done.in_a_row >= 3:
                break
        self.optimizer.use("eval")
        self.in_a_row = done.in_a_row
        done.metrics = self._mean(sums, done) | {"learning_rate": rate, "explained_variance": _explained(x)}
        return done

    def _advantages(self, x: Experience, rewards: Tensor, sight_share: float) -> None:
        t, path = self.run.trainer, x.trajectory(rewards)
        if t.advantage == "vtrace":
            x.advantages = vtrace(path, x.ratios, t.gamma, t.gae_lambda, t.rho_clip, t.c_clip)
        else:
            x.advantages = gae(path, t.gamma, t.gae_lambda)
        x.returns = x.advantages + x.values
        if self.sight is not None and sight_share != 0:
            x.advantages = x.advantages + sight_share * self.sight.sums(x.obs, x.advantages)

    def _update(self, x: Experience, segments: Tensor, weight: Tensor, w: Weights, done: Learned) -> Tensor | None:
        """One minibatch; its metrics, or None if it was skipped."""
        advantages = x.advantages
        if self.run.trainer.normalize_advantages:
            here = x.advantages.view(-1)[x.segment_steps(segments).view(-1)]
            advantages = (x.advantages - here.mean()) / (here.std(correction=0) + 1e-8)
        size = self.sizes.microbatch_size // self.sizes.bptt_horizon
        parts = -(-len(segments) // size)  # of equal size, as far as can be
        pieces = list(zip(segments.tensor_split(parts), weight.tensor_split(parts), strict=True))

        def work(piece: tuple[Tensor, Tensor]) -> tuple[list[Tensor], Tensor, Tensor]:
            batch = x.minibatch(piece[0], advantages, piece[1], self.device)
            with self.autocast():
                out = self.forward(batch.obs, batch.state, batch.starts, batch.masks)
            share = len(piece[0]) / len(segments)
            loss, metrics, ratio = ppo(batch, out, w.times(share))
            gradients = torch.autograd.grad(loss, self.parameters)
            return list(gradients), torch.cat((metrics * share, loss.detach()[None])), ratio

        results = self.hands.map(work, pieces)
        for (part, _), (_, _, ratio) in zip(pieces, results, strict=True):  # a segment may be in several pieces
            x.ratios.view(-1)[x.segment_steps(part).view(-1)] = ratio.reshape(-1).to(x.device)
        gradients = add_up(found for found, _, _ in results)
        metrics = torch.stack([found for _, found, _ in results]).sum(0)
        norm = clip_norm(gradients, self.run.optimizer.max_grad_norm)
        done.trained_steps += len(segments) * self.sizes.bptt_horizon
        if not bool(torch.isfinite(norm + metrics.sum())):  # the one look at the device per minibatch
            done.skipped += 1
            done.in_a_row += 1
            done.bad = x.minibatch(segments, advantages, weight, self.device)
            return None
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        done.updates += 1
        done.in_a_row = 0
        done.gradients = gradients
        return torch.cat((metrics[: len(METRICS)], norm[None]))

    def _mean(self, sums: Tensor, done: Learned) -> dict[str, float]:
        names = (*METRICS, "gradient_norm")
        if done.updates == 0:
            return dict.fromkeys(names, float("nan"))
        return dict(zip(names, (sums / done.updates).tolist(), strict=True))

    # ---- state

    def tensors(self) -> dict[str, Tensor]:
        return self.optimizer.tensors() | self.scale.tensors()

    def restore(self, tensors: dict[str, Tensor]) -> None:
        self.optimizer.restore(tensors)
        self.scale.restore(tensors)


class RewardScale:
    """Rewards as the learner sees them: raw, over the standard deviation of discounted returns, or less their mean."""

    def __init__(self, run: Run, rows: int) -> None:
        self.kind, self.gamma = run.trainer.reward, run.trainer.gamma
        self.running = torch.zeros(rows, dtype=torch.float64)  # each row's discounted return so far
        self.seen = torch.zeros(3, dtype=torch.float64)  # count, mean, sum of squared distances (Welford)

    def __call__(self, x: Experience) -> Tensor:
        if self.kind == "raw":
            return x.rewards
        rewards = x.rewards.cpu().double()
        if self.kind == "centered":
            self._add(rewards)
            return (x.rewards - float(self.seen[1])).to(x.rewards.dtype)
        goes_on = (~(x.terminals | x.truncations)).cpu().double()
        returns = torch.empty_like(rewards)
        for t in range(len(rewards)):
            self.running = self.running * self.gamma + rewards[t]
            returns[t] = self.running
            self.running = self.running * goes_on[t]
        self._add(returns)
        return x.rewards / max(1e-4, float((self.seen[2] / self.seen[0]).sqrt()))

    def _add(self, numbers: Tensor) -> None:
        """Join the statistics of more numbers to those seen (Chan et al. 1979)."""
        count, mean = float(numbers.numel()), numbers.mean()
        squares = (numbers - mean).square().sum()
        total = self.seen[0] + count
        apart = mean - self.seen[1]
        self.seen[2] += squares + apart.square() * self.seen[0] * count / total
        self.seen[1] += apart * count / total
        self.seen[0] = total

    def tensors(self) -> dict[str, Tensor]:
        return {"reward.running": self.running.clone(), "reward.seen": self.seen.clone()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        self.running, self.seen = tensors["reward.running"].clone(), tensors["reward.seen"].clone()


def _explained(x: Experience) -> float:
    """How much of the returns' variance the critic knew: 1 all, 0 nothing, below 0 worse than a constant."""
    spread = float(x.returns.var(correction=0))
    return 1.0 - float((x.returns - x.values).var(correction=0)) / spread if spread > 0 else 0.0
