"""Two processes with one thread each against one process with two threads, in turns, on the same pieces.

    torchrun --nproc-per-node 2 bench/ranks.py                # the easy arena, 20 blocks
    torchrun --nproc-per-node 2 bench/ranks.py --blocks 8 --epochs 2

Both compute the same bits. Rank 0 has a trainer of its own beside the one that it shares with rank 1, which waits
meanwhile without work. In a block the two take turns epoch by epoch (a b b a a b ..), so that a noisy machine disturbs
both alike; the line is the median of the blocks' ratios of agent-steps per second, with its interval of 95 %. Then how
much of the shared epochs rank 0 spent in calls that talk to rank 1 (with the wait for it), and what one exchange of
gradients takes when nobody has anything else to do.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gridmill import recipes
from gridmill.run import Run
from gridmill.runs.group import led
from gridmill.sizing import for_ranks
from gridmill.train.ranks import Joined, Ranks, join, launched
from gridmill.train.trainer import Trainer
from gridmill.workshop.statistics import median, paired_ratio

EXCHANGES = 50


class Talk:
    """Seconds inside of calls that wait for the other rank."""

    def __init__(self, ranks: Ranks) -> None:
        assert isinstance(ranks, Joined)
        self.seconds, plain = 0.0, ranks._waiting

        @contextmanager
        def timed() -> Iterator[None]:
            began = time.perf_counter()
            with plain():
                yield
            self.seconds += time.perf_counter() - began

        ranks._waiting = timed  # type: ignore[method-assign]


def run_of() -> Run:
    changes = [("trainer.threads", 1), ("trainer.device", "cpu"), ("trainer.pieces", 2), ("trainer.num_worlds", 64)]
    changes += [("trainer.batch_size", 76_800), ("trainer.minibatch_size", 25_600), ("trainer.async_factor", 2)]
    return recipes.build("arena_basic_easy_shaped").replace_all(changes)


def block(ranks: Ranks, shared: Trainer, alone: Trainer | None, epochs: int, talk: Talk) -> tuple[float, float, float]:
    """Agent-steps per second of both, in one block, and the share of the shared epochs that was talk."""
    seconds, talked = {True: 0.0, False: 0.0}, 0.0
    for turn in range(2 * epochs):
        together = (turn + 1) // 2 % 2 == 0
        ranks.agree(0, False)  # both begin at once
        began, before = time.perf_counter(), talk.seconds
        if together:
            shared.epoch()
            talked += talk.seconds - before
        elif alone is not None:
            alone.epoch()
        seconds[together] += time.perf_counter() - began
    steps = epochs * shared.sizes.batch_size
    return steps / seconds[True], steps / max(1e-9, seconds[False]), talked / seconds[True]


def exchange(ranks: Ranks, trainer: Trainer) -> float:
    """Median seconds of one sum of gradients."""
    gradients = [torch.zeros_like(parameter) for parameter in trainer.policy.parameters()]
    taken = []
    for _ in range(EXCHANGES):
        ranks.agree(0, False)
        began = time.perf_counter()
        ranks.add_up([gradients])
        taken.append(time.perf_counter() - began)
    return median(taken)


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--blocks", type=int, default=20)
    asked.add_argument("--epochs", type=int, default=2, help="of each in a block")
    arguments = asked.parse_args()
    rank, count = launched()
    run = for_ranks(run_of(), count)
    if rank == 0:
        with led(run) as ranks:
            measure(ranks, run, arguments)
    else:
        ranks, _ = join()
        measure(ranks, run, arguments)
        ranks.close()


def measure(ranks: Ranks, run: Run, arguments: argparse.Namespace) -> None:
    shared = Trainer(run, None, ranks)
    alone = Trainer(run.replace("trainer.threads", 2)) if ranks.rank == 0 else None
    talk = Talk(ranks)
    block(ranks, shared, alone, 1, talk)  # memory has been touched
    rates = [block(ranks, shared, alone, arguments.epochs, talk) for _ in range(arguments.blocks)]
    once = exchange(ranks, shared)
    if ranks.rank == 0:
        ours, theirs = ([pair[which] for pair in rates] for which in (0, 1))
        found = paired_ratio(ours, theirs)
        print(
            f"2 processes x 1 thread against 1 x 2: {median(ours):,.0f} against {median(theirs):,.0f} agent-steps/s, "
            f"ratio {found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}], {arguments.blocks} blocks"
        )
        size = sum(parameter.numel() for parameter in shared.policy.parameters())
        print(f"in calls that talk or wait: {median([share for *_, share in rates]):.1%} of the time")
        print(f"one exchange of {4 * size / 2**20:.1f} MiB of gradients: {1e3 * once:.2f} ms")
        assert alone is not None
        known = alone.weights()
        same = all(torch.equal(known[name], tensor) for name, tensor in shared.weights().items())
        print(f"weights after {shared.epochs} epochs each: {'the same' if same else 'DIFFERENT'}")
    for trainer in filter(None, (shared, alone)):
        trainer.close()


if __name__ == "__main__":
    main()
