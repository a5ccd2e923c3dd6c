"""The epochs of a run one by one: what callbacks, or a loop over `epochs(run)`, receive after each and can do.

There is one loop, the session's, which is a generator: it gives an `Epoch` after every epoch and does all the rest
itself (log, checkpoints, evaluation, signals). `train(run, callbacks=[...])` goes through it to its end.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from gridmill.policy.checkpoint import NotSaved
from gridmill.train.trainer import BrokenNumbers, Trainer

if TYPE_CHECKING:
    from gridmill.runs.loop import Session


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    folder: Path
    agent_steps: int
    epochs: int
    score: float | None  # mean of the newest agent-episodes
    seconds: float
    exit_code: int
    validation: Any = None  # what shadow validation of observations found; None if it was off


class Epoch:
    """A finished epoch; its line in metrics.jsonl has been written, and its checkpoint if one was due."""

    def __init__(self, session: Session, metrics: dict[str, Any]) -> None:
        self.metrics = metrics
        self.number = int(metrics["epoch"])  # 1 for the first of the run
        self._session = session

    def __repr__(self) -> str:
        steps = f"{self.metrics['agent_steps']:,} of {self.metrics['total_timesteps']:,} steps"
        return f"<Epoch {self.number} of {self.folder}: {steps}>"

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self._session.folder

    @property
    def trainer(self) -> Trainer:
        """Everything in memory: `trainer.policy`, `trainer.env`, `trainer.run`. Reading it changes nothing."""
        return self._session.trainer

    @property
    def checkpoint(self) -> Path | None:
        """The newest checkpoint saved so far; None before the first."""
        return self._session.saved

    def log(self, text: str) -> None:
        """Write lines to log.txt and the terminal."""
        self._session.log.note(text)

    def save(self) -> Path | None:
        """Save a checkpoint now, even if none is due; None if it could not be written.

        RuntimeError with several ranks: all take part in a checkpoint, and agree on it once per epoch.
        """
        if self._session.together:
            raise RuntimeError("with several ranks, checkpoints are agreed on once per epoch; set checkpoint.epochs")
        return self._session.saved if self._session.save() else None

    def stop(self, why: str = "") -> None:
        """End the run after this epoch: it is saved, evaluated and reported as at its end, and can be resumed.

        With several ranks it takes one more epoch, at whose end they agree to stop.
        """
        self._session.asked = f"stopped by the program{f': {why}' if why else ''}"


Callback = Callable[[Epoch], object]


class CallbackFailed(RuntimeError):
    """A callback raised an exception: one line with its name and place; the original exception is the cause."""

    def __init__(self, callback: Callback, epoch: int, error: Exception) -> None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(str(error).split())
        super().__init__(
            f"callback `{_name(callback)}` failed after epoch {epoch}, in {Path(frame.filename).name} line "
            f"{frame.lineno}: {type(error).__name__}: {said}"
        )


class Left(Exception):
    """The program has left the loop."""


class Epochs:
    """Goes through a run: `for epoch in epochs(run)`. `result` is there once it is over.

    Nothing starts before the first epoch is requested. Leaving the loop by `break` or by an error ends the run as
    `Epoch.stop` does, without its last evaluation; if this object is still referenced, the run ends when it is closed:
    `with epochs(run) as loop`.
    """

    def __init__(self, loop: Generator[Epoch, None, Result]) -> None:
        self._loop = loop
        self.result: Result | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Epoch:
        try:
            return next(self._loop)
        except StopIteration as over:
            self.result = over.value or self.result
            raise StopIteration from None

    def raise_in(self, error: BaseException) -> None:
        """The run ends with this error, where it stands now."""
        try:
            self._loop.throw(error)
        except StopIteration as over:
            self.result = over.value

    def close(self) -> None:
        """End the run if it is not over; it is saved."""
        with contextlib.suppress(Left):
            self.raise_in(Left("it left the loop"))

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def refuse_others(callbacks: Sequence[Callback]) -> None:
    """TypeError for what cannot be called."""
    for callback in callbacks:
        if not callable(callback):
            raise TypeError(f"callbacks: expected functions that take one Epoch, got {callback!r:.60}")


def go_through(loop: Epochs, callbacks: Sequence[Callback]) -> Result:
    """To the end of a run, with all callbacks after every epoch, in their order."""
    for epoch in loop:
        for callback in callbacks:
            try:
                callback(epoch)
            except (BrokenNumbers, NotSaved) as error:  # of a checkpoint that it asked for: not its fault
                loop.raise_in(error)
                break
            except Exception as error:
                failed = CallbackFailed(callback, epoch.number, error)
                failed.__cause__ = error
                loop.raise_in(failed)
            except BaseException as error:
                loop.raise_in(error)
    assert loop.result is not None
    return loop.result


def _name(callback: Callback) -> str:
    return str(getattr(callback, "__qualname__", type(callback).__qualname__))
