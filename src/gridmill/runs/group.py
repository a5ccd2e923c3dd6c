"""A run of several processes: rank 0 has the session with its folder, the others follow.

Rank 0 says at the start what is trained and with which state, and once an epoch whether it saves; all agree on the end.
The others read no recipe and no checkpoint and write no file, so they may be on machines that see none of them.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors.torch import load, save
from torch import Tensor

from gridmill.config import user_code
from gridmill.run import Run
from gridmill.runs.epoch import Result
from gridmill.runs.stop import Stop
from gridmill.train.guard import Guard
from gridmill.train.ranks import Joined, Ranks, join
from gridmill.train.trainer import BrokenNumbers, Trainer

BROKEN, STOPPED = 4, 5  # exit codes: values that are not finite, the guard
ENDED = 1_000  # agreed on in the place of a signal: rank 0's program wants no more epochs


# ---- rank 0


@contextmanager
def led(run: Run) -> Iterator[Ranks]:
    """All ranks of a run, told what they train; if this one fails, the others are told why."""
    ranks, _ = join(lambda: ({"run": run.tree(), "code": user_code.taken()}, run.ranks.timeout))
    with _told_why(ranks):
        yield ranks
    ranks.close()


def dismiss() -> None:
    """There is nothing to train."""
    ranks, _ = join(lambda: ({"run": None}, 60.0))
    ranks.close()


def hand_over(trainer: Trainer, restored: Mapping[str, Tensor] | None) -> None:
    """Give the others the state that rank 0 begins with: of a checkpoint, or the first weights."""
    if trainer.ranks.count == 1:
        return
    state = trainer.learner.scale.tensors() if restored is None else restored
    tensors = {f"policy/{name}": tensor for name, tensor in trainer.weights().items()}
    tensors |= {f"trainer/{name}": tensor.contiguous() for name, tensor in state.items()}
    trainer.ranks.of_first(json.dumps({"restored": restored is not None, "last": trainer.last}).encode())
    trainer.ranks.of_first(save(tensors))


def lines(trainer: Trainer) -> list[str]:
    """What the log says of the processes, if there are several."""
    t, ranks, own = trainer.run.trainer, trainer.ranks, trainer.own
    if ranks.count == 1:
        return []
    how = "NCCL and gloo" if trainer.device.type == "cuda" else "gloo"
    share = f"{own.num_worlds} of {t.num_worlds} worlds and {own.threads} thread{'s' if own.threads > 1 else ''} each"
    return [f"ranks: {ranks.count} ({how}), {share}, trainer.pieces = {t.pieces}"]


@contextmanager
def _told_why(ranks: Ranks) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if isinstance(ranks, Joined):
            ranks.leave(f"{type(error).__name__}: {error}")
        raise


# ---- the others


def follow() -> Result:
    """Train with rank 0 until all agree that it is over."""
    began = time.monotonic()
    ranks, hello = join()
    if hello["run"] is None:
        ranks.close()
        return Result(Path(), 0, 0, None, 0.0, 0)
    with _told_why(ranks), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rank 0 says them
        user_code.take(hello["code"])
        trainer = Trainer(Run.load(hello["run"]), None, ranks)
        try:
            _take_over(trainer)
            code = _Follower(trainer).go()
        finally:
            trainer.close()
    ranks.close()
    score = float(trainer.recent.mean()) if len(trainer.recent) else None
    return Result(Path(), trainer.agent_steps, trainer.epochs, score, time.monotonic() - began, code)


def _take_over(trainer: Trainer) -> None:
    """The state that rank 0 hands over."""
    head, tensors = json.loads(trainer.ranks.of_first()), load(trainer.ranks.of_first())
    weights, state = (
        {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
        for start in ("policy/", "trainer/")
    )
    if head["restored"]:
        trainer.restore(weights, state, head["last"])
    else:
        trainer.policy.load_state_dict(weights)
        trainer.learner.scale.begin_with(state)


class _Follower:
    """The loop of a session without its folder; it asks the others exactly when the session does."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.guard, self.asked = trainer, Guard(trainer.run.guard), 0

    def _tell(self, number: int) -> None:
        self.asked = number

    def go(self) -> int:
        """Until the end; the exit code."""
        t, signal = self.trainer, 0
        with Stop(self._tell, patient=True):
            while not t.done and not signal:
                try:
                    metrics = t.epoch()
                except BrokenNumbers:  # rank 0 says so
                    return BROKEN
                signal = self._agree()
                warned = self.guard.look(metrics)
                if t.learner.in_a_row >= 3:
                    return BROKEN
                if warned and t.run.guard.stop:
                    return STOPPED
            self._agree()
        return 128 + signal if signal and signal != ENDED else 0

    def _agree(self) -> int:
        """The signal that ends the run, if there is one; our part of a checkpoint, if there is to be one."""
        signal, saves = self.trainer.ranks.agree(self.asked, False)
        if saves:
            self.trainer.tensors()
        return signal
