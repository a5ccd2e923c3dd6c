"""The bench's network in plain torch: dense layers, a core of torch's own, an actor and a critic, and what they cost.

The act + learn bound runs these pieces alone, and a peer's trainer trains them, so that everybody has one network.
`Pieces.epoch` does what no trainer can leave out: act on every row of every step, then forward, backward and optimizer
on every minibatch. It has no env, no storage and no choice of segments. Torch is imported only when something is built.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gridmill.config.schedule import Progress
from gridmill.policy import onednn
from gridmill.run import Run

if TYPE_CHECKING:
    from torch import Tensor, nn

CORES = ("none", "lstm", "gru")
NETWORK = ("act", "forward", "backward", "optimizer")  # the bound; the other phases are what PPO adds to it
PHASES = ("act", "sample", "forward", "loss", "backward", "optimizer")


def why_not(run: Run) -> str | None:
    """Why a run's network has no plain form here; None if it has one."""
    if run.policy.encoder != "mlp" and (run.policy.encoder != "auto" or run.game.obs_kind != "vector"):
        return f"the encoder {run.policy.encoder} reads tokens; the plain network reads vectors (game prospector)"
    if run.policy.core not in CORES:
        return f"torch has no core {run.policy.core}; it has {', '.join(CORES[1:])}"
    return None


def build(run: Run, obs_size: int, num_actions: int) -> nn.ModuleDict:
    """Encoder, core (not with `none`), actor and critic, with the sizes of the run's policy."""
    onednn.settle()
    from torch import nn

    reason = why_not(run)
    if reason is not None:
        raise ValueError(reason)
    hidden, core = run.policy.hidden, run.policy.core
    layers: list[nn.Module] = []
    for size in (obs_size, *[hidden] * run.policy.layers):
        layers += [nn.Linear(size, hidden), nn.ReLU()]
    parts: dict[str, nn.Module] = {"encoder": nn.Sequential(*layers)}
    if core != "none":
        parts["core"] = nn.LSTM(hidden, hidden) if core == "lstm" else nn.GRU(hidden, hidden)
    return nn.ModuleDict(parts | {"actor": nn.Linear(hidden, num_actions), "critic": nn.Linear(hidden, 1)})


def num_weights(network: nn.Module) -> int:
    """Entries of all matrices. Biases are left out: torch's cores have two where one would do."""
    return sum(p.numel() for p in network.parameters() if p.ndim > 1)


def first_state(parts: nn.ModuleDict, rows: int) -> tuple[Tensor, ...]:
    """The state before the first step: (h, c) of an LSTM, (h,) of a GRU, nothing without a core."""
    import torch

    if "core" not in parts:
        return ()
    core: Any = parts["core"]
    return tuple(torch.zeros(rows, core.hidden_size) for _ in range(2 if isinstance(core, torch.nn.LSTM) else 1))


def act(parts: nn.ModuleDict, obs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """One step of all rows, [rows, obs] -> logits, values, state; a single cell is faster than a sequence of one."""
    import torch

    hidden = parts["encoder"](obs)
    if "core" in parts:
        core: Any = parts["core"]
        weights = (core.weight_ih_l0, core.weight_hh_l0, core.bias_ih_l0, core.bias_hh_l0)
        if len(state) == 2:
            state = torch.lstm_cell(hidden, state, *weights)
        else:
            state = (torch.gru_cell(hidden, state[0], *weights),)
        hidden = state[0]
    return parts["actor"](hidden), parts["critic"](hidden).squeeze(-1), state


def replay(parts: nn.ModuleDict, obs: Tensor) -> tuple[Tensor, Tensor]:
    """Whole segments from a state of zeros, [time, segments, obs] -> logits and values, [time, segments, ...]."""
    hidden = parts["encoder"](obs)
    if "core" in parts:
        hidden = parts["core"](hidden)[0]
    return parts["actor"](hidden), parts["critic"](hidden).squeeze(-1)


class Stopwatch:
    """Seconds by phase, of the wall clock and of the CPU."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.cpu: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.cpu[phase] = self.cpu.get(phase, 0.0) + time.process_time() - cpu
        self.wall[phase] = self.wall.get(phase, 0.0) + time.perf_counter() - wall


class Pieces:
    """The pieces of an epoch on the run's shapes: rows x horizon to act on, minibatches of whole segments to learn."""

    def __init__(self, run: Run, obs_size: int, num_actions: int, rows: int) -> None:
        import torch

        trainer = run.trainer
        torch.manual_seed(run.seed)
        self.run, self.rows, self.num_actions = run, rows, num_actions
        self.steps = trainer.batch_size // rows
        self.segments = trainer.minibatch_size // trainer.bptt_horizon
        self.minibatches = trainer.update_epochs * (trainer.batch_size // trainer.minibatch_size)
        if self.steps * rows != trainer.batch_size or self.segments * trainer.bptt_horizon != trainer.minibatch_size:
            raise ValueError(
                f"expected batch_size to be a multiple of {rows} rows and minibatch_size of bptt_horizon, "
                f"got {trainer.batch_size}, {trainer.minibatch_size} and {trainer.bptt_horizon}"
            )
        self.parts = build(run, obs_size, num_actions)
        self.optimizer = torch.optim.Adam(
            self.parts.parameters(), lr=1e-4, eps=Progress(0, 1, 0, 1).at(run.optimizer.eps), fused=True
        )
        shape = (trainer.batch_size // trainer.minibatch_size, trainer.bptt_horizon, self.segments)
        # One memory for both: what the values are does not change what they cost.
        self.learned = torch.rand(*shape, obs_size) * 2 - 1
        self.acted = self.learned.view(self.steps, rows, obs_size)
        self.actions = torch.randint(num_actions, shape)
        self.advantages, self.returns = torch.randn(shape), torch.randn(shape)
        self.old = torch.full(shape[1:], -4.0)

    def epoch(self) -> Stopwatch:
        """Everything once, timed by phase."""
        import torch

        watch, state = Stopwatch(), first_state(self.parts, self.rows)
        with torch.no_grad():
            for obs in self.acted:
                with watch("act"):
                    logits, _, state = act(self.parts, obs, state)
                with watch("sample"):
                    logprobs = logits.log_softmax(-1)
                    drawn = torch.multinomial(logprobs.exp(), 1)
                    logprobs.gather(-1, drawn)
        for k in range(self.minibatches):
            self._learn(k % len(self.learned), watch)
        return watch

    def _learn(self, k: int, watch: Stopwatch) -> None:
        """One minibatch. The loss is cut off from the network, so that each has its own time."""
        import torch

        with watch("forward"):
            logits, values = replay(self.parts, self.learned[k])
        with watch("loss"):
            cut = (logits.detach().requires_grad_(), values.detach().requires_grad_())
            gradients = torch.autograd.grad(self._loss(k, *cut), cut)
        with watch("backward"):
            torch.autograd.backward([logits, values], list(gradients))
        with watch("optimizer"):
            limit = Progress(0, 1, 0, 1).at(self.run.optimizer.max_grad_norm)
            if limit > 0:
                torch.nn.utils.clip_grad_norm_(self.parts.parameters(), limit)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)

    def _loss(self, k: int, logits: Tensor, values: Tensor) -> Tensor:
        """Clipped surrogate, squared error of the critic, entropy."""
        import torch

        logprobs = logits.log_softmax(-1)
        taken = logprobs.gather(-1, self.actions[k].unsqueeze(-1)).squeeze(-1)
        ratio = (taken - self.old).exp()
        advantages = self.advantages[k]
        surrogate = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        entropy = -(logprobs.exp() * logprobs).sum(-1).mean()
        return -surrogate - 0.01 * entropy + 0.5 * (values - self.returns[k]).square().mean()
