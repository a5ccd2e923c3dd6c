"""Track: copies of the metrics for TensorBoard and Weights & Biases (extra `track`), chosen by run.track.

Each tracker works in a thread of its own behind a queue, so a dead server, a full disk or a slow library cannot hold
training up: what does not go through is dropped, counted and said once. A package that is missing is said before
training starts.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from gridmill.config import ConfigError
from gridmill.config.install import pip_install
from gridmill.run import Run

Numbers = Mapping[str, float]
MOST_WAITING = 1_000  # epochs
PATIENCE = 30.0  # seconds a tracker has to finish when the run ends
ANSWER = 20.0  # seconds the W&B server has to answer before the copy goes to disk instead


class Sink(Protocol):
    """Where a tracker's numbers go; `notice` is what a person should know about it, if anything."""

    notice: str

    def write(self, step: int, numbers: Numbers) -> None: ...

    def close(self) -> None: ...


class Tracker:
    """Hands numbers to a sink without ever waiting for it."""

    def __init__(self, name: str, open_sink: Callable[[], Sink]) -> None:
        self.name = name
        self.missed = 0
        self.trouble: str | None = None  # the first thing that went wrong; whoever shows it sets it back to None
        self._said = False
        self._open_sink = open_sink
        self._waiting: queue.Queue[tuple[int, Numbers] | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._work, name=f"track {name}", daemon=True)
        self._thread.start()

    def put(self, step: int, numbers: Numbers) -> None:
        """Take a copy's numbers along, now or never."""
        try:
            self._waiting.put_nowait((step, numbers))
        except queue.Full:
            self._miss("it cannot keep up")

    def close(self, patience: float = PATIENCE) -> None:
        """Let it finish, for a while."""
        try:
            self._waiting.put(None, timeout=patience)
        except queue.Full:
            self._miss("it cannot keep up")
            return
        self._thread.join(patience)
        if self._thread.is_alive():
            self._miss(f"not finished {patience:.0f} s after the run")

    def _miss(self, reason: object) -> None:
        self.missed += 1
        if not self._said:
            self._said = True
            self.trouble = f"{self.name}: {' '.join(str(reason).split())[:200]}; training continues"

    def _work(self) -> None:
        # Whatever a tracker's library raises stays here: nothing of it may reach the training loop.
        try:
            sink: Sink | None = self._open_sink()
            if sink is not None and sink.notice:
                self.trouble = f"{self.name}: {sink.notice}"
        except Exception as reason:
            self._miss(reason)
            sink = None
        while (item := self._waiting.get()) is not None:
            if sink is None:
                self.missed += 1
                continue
            try:
                sink.write(*item)
            except Exception as reason:
                self._miss(reason)
        if sink is not None:
            try:
                sink.close()
            except Exception as reason:
                self._miss(reason)


def refuse_missing(run: Run) -> None:
    """Refuse a tracker whose package is not installed."""
    if run.track.tensorboard:
        _package("tensorboard", "tensorboard.summary", "true")
    if run.track.wandb != "off":
        _package("wandb", "wandb", run.track.wandb)


def trackers(run: Run, folder: Path) -> list[Tracker]:
    """Those that run.track switches on, started."""
    found = []
    if run.track.tensorboard:
        summary = _package("tensorboard", "tensorboard.summary", "true")
        found.append(Tracker("TensorBoard", lambda: _TensorBoard(summary, folder)))
    if run.track.wandb != "off":
        wandb = _package("wandb", "wandb", run.track.wandb)
        found.append(Tracker("W&B", lambda: _WeightsAndBiases(wandb, run, folder)))
    return found


def _package(name: str, module: str, wanted: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as reason:
        raise ConfigError(
            f"expected the package `{name}` for track.{name} = {wanted}, got {reason}; "
            f"{pip_install('gridmill[track]')}",
            f"$.track.{name}",
        ) from None


class _TensorBoard:
    """Scalars in folder/tensorboard."""

    notice = ""

    def __init__(self, summary: Any, folder: Path) -> None:
        self._writer = summary.Writer(str(folder / "tensorboard"))

    def write(self, step: int, numbers: Numbers) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _WeightsAndBiases:
    """A W&B run in folder/wandb; if the server does not answer, an offline one that can be sent later."""

    def __init__(self, wandb: Any, run: Run, folder: Path) -> None:
        self.notice = ""

        def start(mode: str) -> Any:
            quiet = wandb.Settings(
                console="off", silent=True, init_timeout=ANSWER, login_timeout=1.0, x_disable_stats=True
            )
            return wandb.init(
                project=run.track.project,
                name=folder.name,
                group=folder.name,
                dir=str(folder),
                mode=mode,
                config=run.tree(),
                settings=quiet,
            )

        try:
            self._run = start(run.track.wandb)
        except Exception as reason:
            if run.track.wandb == "offline":
                raise
            self._run = start("offline")
            first = (str(reason).splitlines() or [type(reason).__name__])[0]
            self.notice = f"offline in {folder / 'wandb'} (`wandb sync` sends it later), because: {first}"

    def write(self, step: int, numbers: Numbers) -> None:
        self._run.log(dict(numbers), step=step)

    def close(self) -> None:
        self._run.finish()
