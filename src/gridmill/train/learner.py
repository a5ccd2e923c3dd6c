"""Learner: one epoch's experience -> updates of the policy. Minibatches of whole segments, in microbatches that the
workers take in turn; their gradients are added up in their order before one optimizer step.

The guard: non-finite values in log-probs, losses or gradients skip the update, which keeps the last good weights. On a
device that happens without a look (verdicts.py). The caller counts and stops; nothing here writes files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gridmill.config.schedule import Progress
from gridmill.losses import Loss, LossResult, Minibatch, terms
from gridmill.policy.device import sent
from gridmill.policy.network import Output, Policy
from gridmill.policy.sequences import starts_known
from gridmill.policy.spec import Spec
from gridmill.run import Run
from gridmill.sizing import Sizes
from gridmill.train.advantage import gae, vtrace
from gridmill.train.experience import Experience, from_piece, piece_of, prioritised, shuffled
from gridmill.train.optimizer import Optimizer, add_up, clip_norm
from gridmill.train.ranks import ALONE, Ranks
from gridmill.train.recorded import RecordedSteps, Segments
from gridmill.train.reward_scale import RewardScale
from gridmill.train.shared_advantage import VisibleAgents
from gridmill.train.verdicts import BAD, FINE, LossScale
from gridmill.train.watch import Watch
from gridmill.train.workers import WorkerPool

Moments = tuple[Tensor, Tensor, Tensor]  # count, mean and standard deviation
MOST_SKIPPED = 3  # updates in a row, after which an epoch ends


@dataclass
class Learned:
    """What an epoch of learning was."""

    metrics: dict[str, float] = field(default_factory=dict)
    updates: int = 0
    skipped: int = 0  # updates whose numbers were not finite
    in_a_row: int = 0  # of these, at the end
    trained_steps: int = 0
    bad: Minibatch | None = None  # the last minibatch that was skipped
    gradients: list[Tensor] = field(default_factory=list)  # of the policy, in the last update, for the analysis
    names: tuple[str, ...] = ()  # of the metrics that updates have
    # Updates that a device made or left out by itself, and nobody has looked at; None: each is looked at.
    unseen: list[tuple[Tensor, Tensor, Tensor, Moments | None]] | None = None


class Objective:
    """What an epoch minimises: the losses that are active now, summed in their order."""

    def __init__(
        self, active: Mapping[str, Loss], heads: Mapping[str, nn.Module], policy: list[nn.Parameter], now: Progress
    ) -> None:
        self.now = now
        live = {name: loss for name, loss in active.items() if loss.recorded() is None}
        self.terms = [(term, heads.get(name)) for name, term in terms(live)]
        # Losses that are shown the steps of replays instead, each by itself.
        self.of_replays = {name: (loss.weighted, heads.get(name)) for name, loss in active.items() if name not in live}
        self.columns = list(dict.fromkeys(c for loss in live.values() for c in (*loss.reads, *loss.needs())))
        # A loss that is not active leaves its own modules as they are; so does everyone what is not to be learned.
        own = [p for name in active if name in heads for p in heads[name].parameters()]
        self.parameters = [p for p in (*policy, *own) if p.requires_grad]

    def __call__(self, batch: Minibatch, out: Output, share: float) -> LossResult:
        """Of a batch of the rollout that is this share of a minibatch; with all metrics."""
        return _sum(term(batch, out, self.now, share, heads) for term, heads in self.terms)


def _sum(results: Iterable[LossResult]) -> LossResult:
    """Losses added up in their order, with the metrics of all."""
    loss, metrics = None, dict[str, Tensor]()
    for found, more in results:
        loss = found if loss is None else loss + found
        metrics |= more
    assert loss is not None
    return loss, metrics


@dataclass(frozen=True)
class Shown:
    """What a loss is shown of replays in one minibatch: which of an epoch's segments."""

    segments: Segments
    chosen: Tensor


class Learner:
    """Holds the optimizer, the losses' own modules and what is learned about rewards; its state is in `tensors`."""

    def __init__(
        self,
        run: Run,
        policy: Policy,
        forward: Callable[..., Output],
        sizes: Sizes,
        workers: WorkerPool,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]],
        ranks: Ranks = ALONE,
    ) -> None:
        self.run, self.policy, self.forward, self.sizes = run, policy, forward, sizes
        self.workers, self.device, self.autocast = workers, device, autocast
        self.ranks, self.pieces = ranks, sizes.pieces * ranks.count  # `sizes` are this rank's
        self.parameters = list(policy.parameters())
        self.heads = _heads(run, policy, device)
        own = {f"heads.{name}.{key}": p for name, m in self.heads.items() for key, p in m.named_parameters()}
        self.optimizer = Optimizer(run.optimizer, dict(policy.named_parameters()) | own)
        self.scale = RewardScale(run.trainer.reward, sizes.rows, ranks)
        self.replays = _replays(run, policy.spec, sizes, ranks.count * sizes.segments)
        shared = run.trainer.shared_advantage != 0
        self.visible = VisibleAgents(policy.spec, sizes.num_agents, sizes.learners) if shared else None
        self.loss_scale = LossScale(run.trainer.precision == "fp16", device)
        # A graph of CUDA's writes gradients into the memory of its last replay: those of a microbatch are copied.
        self.replays_graphs = run.trainer.compile in ("reduce-overhead", "max-autotune")
        self.in_a_row = 0  # skipped updates, over epochs
        self.watch: Watch | None = None

    def learn(self, x: Experience, now: Progress) -> Learned:
        """All updates of one epoch."""
        t, done = self.run.trainer, Learned(in_a_row=self.in_a_row)
        rewards = self.scale(x, now.at(t.gamma), now.at(t.reward_time_scale), now.at(t.reward_clip))
        target_kl = now.at(t.target_kl)
        objective = Objective(self.run.active_losses(now), self.heads, self.parameters, now)
        recorded = {name: self.replays[name].epoch(now.epochs) for name in objective.of_replays}
        self.optimizer.use("train")
        rate = self.optimizer.set(now)
        x.ratios.fill_(1.0)
        sums: Tensor | None = None
        stop_by_kl = False
        if self.device.type != "cpu" and self.optimizer.can_skip and target_kl == 0:
            done.unseen = []
        for update_epoch in range(t.update_epochs):
            if update_epoch == 0 or t.advantage == "vtrace":
                self._advantages(x, rewards, now)
            if not objective.terms and not objective.of_replays:
                break
            plan = self._shown(recorded, now, update_epoch)
            chosen = self._chosen(x, now, update_epoch)
            moments = self._moments(x, [segments for segments, _ in chosen], objective)
            for place, (segments, weight) in enumerate(chosen):
                if self.watch is not None:
                    self.watch.step("minibatch")
                shown = {name: Shown(recorded[name], order[place]) for name, order in plan.items()}
                found = self._update(x, segments, weight, objective, done, shown, moments[place])
                if found is not None:
                    sums = found if sums is None else sums + found
                    if target_kl > 0 and "kl" in done.names:
                        stop_by_kl = target_kl < float(found[done.names.index("kl")])
                if stop_by_kl or done.in_a_row >= MOST_SKIPPED:
                    break
            if stop_by_kl or done.in_a_row >= MOST_SKIPPED:
                break
        if self.watch is not None:
            self.watch.finish("minibatch")
        self._look(x, objective, done)
        self.optimizer.use("eval")
        self.in_a_row = done.in_a_row
        explained = _explained(x) if self.pieces == 1 else self._explained_over_pieces(x)
        done.metrics = _means(sums, done) | {"learning_rate": rate, "explained_variance": explained}
        return done

    def _chosen(self, x: Experience, now: Progress, update_epoch: int) -> list[tuple[Tensor, Tensor]]:
        """The segments of each minibatch and their importance: of each piece as many, in the order of the pieces."""
        t, sizes = self.run.trainer, self.sizes
        alpha, beta = now.at(t.prio_alpha), now.at(t.prio_beta0)
        beta = beta + (1 - beta) * now.steps / max(1, now.total_steps)
        advantages, small = x.by_piece(x.advantages), piece_of(sizes)
        drawn, weights = list[Tensor](), list[Tensor]()
        for piece in range(sizes.pieces):
            number = self.ranks.rank * sizes.pieces + piece
            rng = np.random.default_rng(
                [self.run.seed, now.epochs, update_epoch, *([0, number] if self.pieces > 1 else [])]
            )
            if alpha > 0:
                segments, weight = prioritised(advantages[piece], small, alpha, beta, rng)
                weights.append(weight)
            else:
                segments = shuffled(small, rng)
            drawn.append(from_piece(segments, piece, sizes))
        if alpha > 0:
            largest = self.ranks.table(torch.stack([weight.amax(1) for weight in weights])).amax(0)
            importance = (torch.cat(weights, 1) / largest[:, None]).float()
        else:
            importance = torch.ones(sizes.minibatches, sizes.minibatch_segments)
        return list(zip(torch.cat(drawn, 1), importance, strict=True))

    def _shown(
        self, recorded: Mapping[str, Segments], now: Progress, update_epoch: int
    ) -> dict[str, tuple[Tensor, ...]]:
        """Of each loss that learns from replays, the segments of each minibatch: as many as of the rollout."""
        size, found = self.sizes.minibatch_segments * self.ranks.count, {}
        for number, (name, segments) in enumerate(recorded.items()):
            rng = np.random.default_rng([self.run.seed, now.epochs, update_epoch, number + 1])
            found[name] = torch.split(segments.order(self.sizes.segments * self.ranks.count, rng), size)
        return found

    def _advantages(self, x: Experience, rewards: Tensor, now: Progress) -> None:
        t, path = self.run.trainer, x.trajectory(rewards)
        gamma, lam, share = now.at(t.gamma), now.at(t.gae_lambda), now.at(t.shared_advantage)
        if t.advantage == "vtrace":
            advantages = vtrace(path, x.ratios, gamma, lam, now.at(t.rho_clip), now.at(t.c_clip))
        else:
            advantages = gae(path, gamma, lam)
        returns = advantages + x.values
        if self.visible is not None and share != 0:
            advantages = advantages + share * self.visible.sums(x.obs, advantages)
        x.estimate(advantages, returns)

    def _update(
        self,
        x: Experience,
        segments: Tensor,
        weight: Tensor,
        objective: Objective,
        done: Learned,
        shown: Mapping[str, Shown],
        moments: Moments | None,
    ) -> Tensor | None:
        """One minibatch; its metrics, or None if it was skipped."""
        on_host, segments, weight = segments, sent(segments, x.device), sent(weight, x.device)
        given = self._given(x, segments, objective, moments)
        size, whole = self.sizes.microbatch_size // self.sizes.bptt_horizon, len(segments) * self.ranks.count
        parts = -(-len(segments) // self.sizes.pieces // size)  # of a piece, of equal size as far as can be
        first = self.ranks.rank * len(segments)  # among those of all ranks
        places = torch.arange(len(segments)) + first
        microbatches = [
            part
            for piece in zip(*(each.chunk(self.sizes.pieces) for each in (segments, weight, places)), strict=True)
            for part in zip(*(each.tensor_split(parts) for each in piece), strict=True)
        ]

        def work(
            microbatch: tuple[Tensor, Tensor, Tensor],
        ) -> tuple[list[Tensor], dict[str, Tensor], Tensor, Tensor | None]:
            chosen, importance, places = microbatch
            marks = [time.perf_counter()]
            share, found = len(chosen) / whole, list[LossResult]()
            if objective.terms:
                batch = x.minibatch(chosen, objective.columns, given, importance, self.device)
                with self.autocast(), starts_known(x.starts_of(on_host[places - first])):
                    out = self.forward(batch.obs, batch.state, batch.episode_starts, batch.masks)
                found.append(objective(batch, out, share))
            found += [self._of_replays(objective, name, part, places, share) for name, part in shown.items()]
            loss, metrics = _sum(found)
            marks.append(time.perf_counter())
            gradients = _gradients(self.loss_scale.up(loss), objective.parameters)
            if self.replays_graphs and len(microbatches) > 1:
                gradients = [gradient.clone() for gradient in gradients]
            self._tell(("forward", "backward"), marks)
            ratios = metrics.pop("ratios", None)
            numbers = [share * number.detach().float() for number in metrics.values()]
            return gradients, metrics, torch.stack([*numbers, loss.detach().float()]), ratios

        results = self.workers.map(work, microbatches)
        marks = [time.perf_counter()]
        done.names = tuple(results[0][1])
        if self.run.trainer.advantage == "vtrace":
            for (chosen, *_), (*_, ratios) in zip(microbatches, results, strict=True):  # a segment may be in several
                if ratios is not None:
                    x.put_ratios(chosen, ratios)
        pieces = [results[i : i + parts] for i in range(0, len(results), parts)]
        *gradients, metrics = self.ranks.add_up(
            [
                [*add_up(found for found, *_ in piece), torch.stack([numbers for _, _, numbers, _ in piece]).sum(0)]
                for piece in pieces
            ]
        )
        self.loss_scale.down(gradients)
        norm = clip_norm(gradients, objective.now.at(self.run.optimizer.max_grad_norm))
        done.trained_steps += whole * self.sizes.bptt_horizon
        verdict = self.loss_scale.verdict(norm, metrics)
        if done.unseen is None and (said := int(verdict)) != FINE:
            done.skipped += said == BAD
            done.in_a_row += said == BAD
            done.bad = x.minibatch(segments, objective.columns, given, weight, self.device) if said == BAD else done.bad
            return None
        self._move(objective, gradients, done, verdict)
        self._tell(("optimizer",), marks)
        numbers = torch.cat((metrics[:-1], norm[None]))
        if done.unseen is not None:
            done.unseen.append((verdict, segments, weight, moments))
            return torch.where(verdict == FINE, numbers, 0.0)
        done.updates += 1
        done.in_a_row = 0
        return numbers

    def _move(self, objective: Objective, gradients: Sequence[Tensor], done: Learned, verdict: Tensor) -> None:
        """The weights, by one optimizer step; where nobody has looked at the verdict yet, only if it is fine."""
        for parameter, gradient in zip(objective.parameters, gradients, strict=True):
            parameter.grad = gradient
        if self.run.analysis.gradient_epochs:  # as they are now: the step may change them
            done.gradients = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in self.parameters]
        self.optimizer.step(None if done.unseen is None else (verdict != FINE).float())
        if (limit := objective.now.at(self.run.optimizer.clip_range)) > 0:
            self.optimizer.clip(limit)

    def _look(self, x: Experience, objective: Objective, done: Learned) -> None:
        """What became of the updates that a device made by itself: the one look at it in an epoch."""
        if not done.unseen:
            return
        said = torch.stack([verdict for verdict, *_ in done.unseen]).tolist()
        for verdict, (_, segments, weight, moments) in zip(said, done.unseen, strict=True):
            done.updates += verdict == FINE
            if verdict == BAD:
                done.skipped += 1
                given = self._given(x, segments, objective, moments)
                done.bad = x.minibatch(segments, objective.columns, given, weight, self.device)
            done.in_a_row = 0 if verdict == FINE else done.in_a_row + (verdict == BAD)
            if done.in_a_row >= MOST_SKIPPED:
                break

    def _tell(self, names: tuple[str, ...], marks: list[float]) -> None:
        """Parts that ended at the marks after the first, the last one now, for whoever watches."""
        if self.watch is not None:
            for name, begin, end in zip(names, marks, [*marks[1:], time.perf_counter()], strict=True):
                self.watch.span(name, begin, end)

    def _of_replays(self, objective: Objective, name: str, shown: Shown, places: Tensor, share: float) -> LossResult:
        """A loss on steps of replays. A segment goes on from the one before it, which gives the state."""
        batch, before = shown.segments.minibatch(shown.chosen[places], self.device)
        state = torch.zeros(len(places), self.policy.state_size, device=self.device)
        starts, chosen = shown.segments.starts, shown.chosen[places]
        with self.autocast():
            if self.policy.state_size:
                with torch.no_grad(), starts_known(_side_by_side(starts[shown.segments.before[chosen]])):
                    state = self.forward(before.obs, state, before.episode_starts, before.masks).state
            with starts_known(_side_by_side(starts[chosen])):
                out = self.forward(batch.obs, state, batch.episode_starts, batch.masks)
        term, heads = objective.of_replays[name]
        return term(batch, out, objective.now, share, heads)

    def _moments(self, x: Experience, minibatches: list[Tensor], objective: Objective) -> Sequence[Moments | None]:
        """Of the advantages of each minibatch, over the pieces of all ranks; None where there is one piece."""
        if self.pieces == 1 or "advantages" not in objective.columns:
            return [None] * len(minibatches)
        led, numbers = x.columns.get("led"), x.advantages.view(-1)
        parts: list[list[Tensor]] = [[] for _ in range(self.sizes.pieces)]
        for segments in minibatches:
            for piece, some in zip(parts, segments.chunk(self.sizes.pieces), strict=True):
                steps = x.segment_steps(sent(some, x.device)).view(-1)
                piece.append(numbers[steps if led is None else steps[led.view(-1)[steps] == 0]])
        return self.ranks.moments(parts)

    def _given(
        self, x: Experience, segments: Tensor, objective: Objective, moments: Moments | None
    ) -> dict[str, Tensor]:
        """Columns that depend on the whole minibatch: its normalised advantages, and which steps were the policy's."""
        if "advantages" not in objective.columns:
            return {}
        if moments is not None:
            return self._given_over_pieces(x, len(segments), moments)
        steps = x.segment_steps(segments).view(-1)
        given, here = {"advantages": x.advantages}, x.advantages.view(-1)[steps]
        led = x.columns.get("led")
        if led is not None and x.device.type != "cpu":
            return self._given_where_led(x, led, steps)
        if led is not None and bool((led := led != 0).view(-1)[steps].any()):
            own = ~led.view(-1)[steps]
            given["acted"] = (~led).float() * (len(own) / own.sum().clamp(min=1))
            here = here[own]
        if self.run.trainer.normalize_advantages and len(here):
            given["advantages"] = (x.advantages - here.mean()) / (here.std(correction=0) + 1e-8)
        return given

    def _given_over_pieces(self, x: Experience, segments: int, moments: Moments) -> dict[str, Tensor]:
        """The same of a minibatch that lies in several pieces; `segments` are those of this rank."""
        count, mean, std = moments
        given, steps = {"advantages": x.advantages}, segments * self.ranks.count * self.sizes.bptt_horizon
        led = x.columns.get("led")
        if led is not None:
            given["acted"] = (led == 0).float() * (steps / count.clamp(min=1)).float()
        if self.run.trainer.normalize_advantages:
            given["advantages"] = (x.advantages - mean) / (std + 1e-8)
        return given

    def _explained_over_pieces(self, x: Experience) -> float:
        numbers = zip(x.by_piece(x.returns), x.by_piece(x.values), strict=True)
        (_, _, spread), (_, _, missed) = self.ranks.moments([[returns, returns - known] for returns, known in numbers])
        return 1.0 - float(missed) ** 2 / float(spread) ** 2 if float(spread) > 0 else 0.0

    def _given_where_led(self, x: Experience, led: Tensor, steps: Tensor) -> dict[str, Tensor]:
        """The same on a device, without asking whether and where the teacher led."""
        here, own = x.advantages.view(-1)[steps], (led.view(-1)[steps] == 0).float()
        count = own.sum().clamp(min=1)
        given = {"advantages": x.advantages, "acted": (led == 0).float() * (len(own) / count)}
        if self.run.trainer.normalize_advantages:
            mean = (here * own).sum() / count
            deviation = ((here - mean).square() * own).sum().div(count).sqrt()
            given["advantages"] = (x.advantages - mean) / (deviation + 1e-8)
        return given

    # ---- state

    def _heads(self) -> dict[str, Tensor]:
        return {f"heads.{name}.{key}": x for name, m in self.heads.items() for key, x in m.state_dict().items()}

    def tensors(self) -> dict[str, Tensor]:
        heads = {name: tensor.detach().cpu().clone() for name, tensor in self._heads().items()}
        return self.optimizer.tensors() | self.scale.tensors() | self.loss_scale.tensors() | heads

    def restore(self, tensors: dict[str, Tensor]) -> None:
        saved = {name: tensor.shape for name, tensor in tensors.items() if name.startswith("heads.")}
        own = {name: tensor.shape for name, tensor in self._heads().items()}
        if own != saved:
            was, now = (sorted({name.split(".")[1] for name in names}) for names in (saved, own))
            raise ValueError(
                f"losses: the run was saved with the modules of {', '.join(was) or 'no loss'}, this run has those of "
                f"{', '.join(now) or 'no loss'}; resume with the same losses, or start a new run"
            )
        for name, module in self.heads.items():
            module.load_state_dict({key: tensors[f"heads.{name}.{key}"] for key in module.state_dict()})
        self.optimizer.restore(tensors)
        self.scale.restore(tensors)
        self.loss_scale.restore(tensors)


def _replays(run: Run, spec: Spec, sizes: Sizes, segments: int) -> dict[str, RecordedSteps]:
    """The replays that losses learn from, by loss; ConfigError if they cannot be learned from."""
    return {
        name: RecordedSteps(
            wanted, spec, run.trainer.masks, sizes.bptt_horizon, segments, run.seed, f"$.losses.{name}.replays"
        )
        for name, loss in run.losses.items()
        if (wanted := loss.recorded()) is not None
    }


def _heads(run: Run, policy: Policy, device: torch.device) -> dict[str, nn.Module]:
    """The losses' own modules by loss; a seed gives the same ones, and nobody else's random numbers change."""
    found: dict[str, nn.Module] = {}
    for name, loss in run.losses.items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.seed)
            module = loss.heads(policy.spec, policy.config)
        if module is not None:
            found[name] = module.to(device)
    return found


def _gradients(loss: Tensor, parameters: list[nn.Parameter]) -> list[Tensor]:
    """Zero where a loss does not reach: without `value` the critic's, of a constant all."""
    if not loss.requires_grad:
        return [torch.zeros_like(parameter) for parameter in parameters]
    return list(torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True))


def _side_by_side(starts: Tensor) -> NDArray[np.uint8]:
    """Of segments [n, T] on the host, as a forward has them."""
    found: NDArray[np.uint8] = starts.t().numpy()
    return found


def _means(sums: Tensor | None, done: Learned) -> dict[str, float]:
    names = (*done.names, "gradient_norm")
    if sums is None or not done.updates:
        return dict.fromkeys(names, float("nan"))
    return dict(zip(names, (sums / done.updates).tolist(), strict=True))


def _explained(x: Experience) -> float:
    """How much of the returns' variance the critic knew: 1 all, 0 nothing, below 0 worse than a constant."""
    spread = float(x.returns.var(correction=0))
    return 1.0 - float((x.returns - x.values).var(correction=0)) / spread if spread > 0 else 0.0
