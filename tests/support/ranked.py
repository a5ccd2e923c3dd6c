"""Several ranks of one run on this machine, each forked from a process that has imported torch (`warm`).

What torchrun would set in their environment is set here; rank 0 keeps the store. `started` gives processes to disturb,
`ranked` waits for them and gives what each returned.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tiny import tiny
from warm import FORKS

from gridmill.run import Run
from gridmill.runs import epochs, resume, train
from gridmill.runs.group import led
from gridmill.sizing import for_ranks
from gridmill.train.ranks import join, launched
from gridmill.train.trainer import Trainer

COLUMNS = ("obs", "actions", "log_probs", "values", "rewards", "terminals", "truncations", "bootstrap", "advantages")


class Rank:
    """A process, and the end of a pipe that it says its answer into."""

    def __init__(self, process: Any, pipe: Any) -> None:
        self.process, self.pipe = process, pipe

    def answer(self) -> Any:
        """What its function returned; its traceback as text, if it failed; None if it was killed."""
        try:
            return self.pipe.recv()
        except EOFError:
            return None
        finally:
            self.process.join(30)


@contextlib.contextmanager
def started(count: int, function: Callable[..., Any], *arguments: Any) -> Iterator[list[Rank]]:
    """One process a rank, each calls the function; afterwards none is left."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    try:
        for rank in range(count):
            ours, theirs = multiprocessing.Pipe(duplex=False)
            process = FORKS.Process(target=_become, args=(rank, count, port, theirs, function, arguments))
            process.start()
            theirs.close()
            ranks.append(Rank(process, ours))
        yield ranks
    finally:
        for each in ranks:
            each.process.kill()
            each.process.join()


def ranked(count: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What the function returned in each rank."""
    with started(count, function, *arguments) as ranks:
        found = [each.answer() for each in ranks]
    for rank, one in enumerate(found):
        assert not isinstance(one, str), f"rank {rank}:\n{one}"
    return found


def _become(
    rank: int, count: int, port: int, pipe: Any, function: Callable[..., Any], arguments: Sequence[Any]
) -> None:
    said = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count}
    said |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
    os.environ.update({name: str(value) for name, value in said.items()} if count > 1 else {})
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    try:
        pipe.send(function(*arguments))
    except BaseException:
        pipe.send(traceback.format_exc())


# ---- what ranks do


def run_of(epochs: int, **changes: Any) -> Run:
    """A tiny run of eight worlds."""
    usual = {"trainer__num_worlds": 8, "trainer__batch_size": 256, "trainer__minibatch_size": 64}
    return tiny(1, "lstm", **usual | {"trainer__total_timesteps": 256 * epochs} | changes)


def trained(folder: Path, run: Run) -> tuple[int, int]:
    """A whole run; exit code and epochs."""
    found = train(run, folder, panel=False)
    return found.exit_code, found.epochs


def resumed(folder: Path, changes: Sequence[str]) -> tuple[int, int]:
    found = resume(folder, list(changes), panel=False)
    return found.exit_code, found.epochs


def stopped_by_the_program(folder: Path, run: Run, how: str) -> tuple[int, int, int]:
    """A run whose program wants no more after the second epoch; exit code, epochs, and how many it was shown."""
    shown = []
    loop = epochs(run, folder, panel=False)
    for epoch in loop:
        shown.append(epoch.number)
        if epoch.number == 2:
            if how == "break":
                break
            epoch.stop("enough")
    loop.close()
    assert loop.result is not None
    return loop.result.exit_code, loop.result.epochs, len(shown)


def rollouts(epochs: int, run: Run) -> list[dict[str, np.ndarray[Any, Any]]]:
    """What this rank's rollouts stored, of some epochs, between which it learns."""
    run = for_ranks(run, launched()[1])
    with contextlib.ExitStack() as held:
        if launched()[0]:
            ranks, _ = join()
        else:
            ranks = held.enter_context(led(run))
        trainer = Trainer(run, None, ranks)
        held.callback(trainer.close)
        found = []
        for _ in range(epochs):
            trainer.epoch()
            found.append({name: getattr(trainer.experience, name).numpy().copy() for name in COLUMNS})
    return found


def broken(folder: Path, run: Run) -> tuple[int, int]:
    """A run in which a reward of rank 1 is no number in the third epoch."""
    plain = Trainer._episodes

    def episodes(self: Trainer) -> Any:
        if self.ranks.rank == 1 and self.epochs == 2:
            self.experience.rewards[1, 3] = float("nan")
        return plain(self)

    Trainer._episodes = episodes  # type: ignore[method-assign]
    return trained(folder, run)
