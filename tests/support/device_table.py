"""What the device path asks of a device, part by part: the table of docs/lab/device.md.

`python tests/support/device_table.py` prints it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from second_device import Section, counting, device
from small_runs import short_game, small_run

from gridmill.policy.network import Policy
from gridmill.run import PolicyConfig, Run
from gridmill.train import trainer as trainer_module
from gridmill.train.trainer import Trainer

ENCODERS = ("bag", "cnn", "attend")
CORES = ("none", "scan", "lstm", "gru")
SEGMENT = 64


@dataclass(frozen=True)
class Row:
    """What one encoder with one core takes."""

    step: Section  # a step of the rollout in which no episode was cut: its kernels
    looks: dict[str, int]  # of the worst step, by file and line
    minibatch: Section  # the last one, of one microbatch
    breaks: int

    def line(self) -> str:
        numbers = sum(self.looks.values()), self.step.kernels.total(), self.minibatch.synchronisations
        return " | ".join(map(str, (*numbers, self.minibatch.kernels.total(), self.breaks)))


def run_of(encoder: str, core: str, **trainer: Any) -> Run:
    """One lane, a rollout of one segment, two minibatches of one microbatch each."""
    rows = 12
    usual: dict[str, Any] = {"async_factor": 1, "bptt_horizon": SEGMENT, "batch_size": SEGMENT * rows}
    usual |= {"minibatch_size": SEGMENT * rows // 2, "max_microbatch": SEGMENT * rows // 2}
    return small_run(short_game(), {"encoder": encoder, "core": core}, **(usual | trainer))


def far_trainer(run: Run) -> Trainer:
    """A trainer whose network, learner and experience are on the second device."""
    with mock.patch.object(trainer_module, "_device", return_value=device()):
        return Trainer(run)


def measured(encoder: str, core: str, epochs: int = 1) -> Row:
    """The second epoch of a run: in the first the optimizer makes its moments."""
    with counting() as counted:
        trainer = far_trainer(run_of(encoder, core))
        for _ in range(epochs):
            counted.begin()
            trainer.watch(counted)
            trainer.epoch()
        trainer.close()
    steps = counted.sections["rollout"]
    worst = max(steps, key=lambda step: step.synchronisations)
    least = min(steps, key=lambda step: step.kernels.total())
    return Row(least, dict(worst.looks), counted.sections["minibatch"][-1], breaks_of(encoder, core))


def breaks_of(encoder: str, core: str, steps: int = 3) -> int:
    """Where torch.compile must give up and go on in Python, forward with gradients and without."""
    from small_runs import WORDS, random_tokens, zeros

    policy = Policy(PolicyConfig(encoder=encoder, core=core, hidden=32), WORDS, 3)
    obs = torch.from_numpy(random_tokens(steps * 4, 1)).view(steps, 4, 12, 3)
    inputs = obs, torch.zeros(4, policy.state_size), zeros(steps, 4), torch.ones(steps, 4, 4, dtype=torch.uint8)
    torch._dynamo.reset()
    return int(torch._dynamo.explain(policy)(*inputs).graph_break_count)


def table() -> str:
    lines = ["| encoder | core | syncs/step | kernels/step | syncs/minibatch | kernels/minibatch | graph breaks |"]
    lines.append("|---|---|---|---|---|---|---|")
    for encoder in ENCODERS:
        for core in CORES:
            row = measured(encoder, core)
            lines.append(f"| {encoder} | {core} | {row.line()} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
