"""Track: copies of the metrics for TensorBoard and Weights & Biases (extra `track`), chosen by run.track.

Each tracker works in a thread of its own behind a queue, so a dead server, a full disk or a slow library cannot hold
training up: what does not go through is dropped, counted and said once. A package that is missing is said before
training starts.
"""

from __future__ import annotations

import importlib
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import psutil

from gridmill.config import ConfigError
from gridmill.config.install import pip_install
from gridmill.run import Run

Numbers = Mapping[str, float]
MOST_WAITING = 1_000  # epochs
PATIENCE = 30.0  # seconds all trackers have to finish when the run ends
ANSWER = 20.0  # seconds the W&B server has to answer before the copy goes to disk instead
SENDING = 20.0  # seconds W&B has to send what is left; what it has not sent by then stays on disk


class Sink(Protocol):
    """Where a tracker's numbers go; `notice` is what a person should know about it, if anything."""

    notice: str

    def write(self, step: int, numbers: Numbers) -> None: ...

    def close(self) -> None: ...


class Tracker:
    """Hands numbers to a sink without ever waiting for it.

    `leave` ends whatever the sink's library would wait for when the process exits; called if it has not finished.
    """

    def __init__(self, name: str, open_sink: Callable[[], Sink], leave: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.missed = 0
        self.trouble: str | None = None  # the first thing that went wrong; whoever shows it sets it back to None
        self._said = False
        self._open_sink, self._leave = open_sink, leave
        self._waiting: queue.Queue[tuple[int, Numbers] | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._work, name=f"track {name}", daemon=True)
        self._thread.start()

    def put(self, step: int, numbers: Numbers) -> None:
        """Take a copy's numbers along, now or never."""
        try:
            self._waiting.put_nowait((step, numbers))
        except queue.Full:
            self._miss("it cannot keep up")

    def end(self) -> None:
        """Nothing more will come: it finishes when it has worked off what waits."""
        while True:
            try:
                return self._waiting.put_nowait(None)
            except queue.Full:
                self._miss("it cannot keep up")
                with suppress(queue.Empty):
                    self._waiting.get_nowait()

    def wait(self, until: float) -> None:
        """For its end, up to a time of the monotonic clock."""
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self._miss(f"not finished {PATIENCE:.0f} s after the run")
            self._leave()

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


def close(all_: Sequence[Tracker]) -> None:
    """Let all of them finish, for a while that they share."""
    until = time.monotonic() + PATIENCE
    for tracker in all_:
        tracker.end()
    for tracker in all_:
        tracker.wait(until)


def refuse_missing(run: Run) -> None:
    """Refuse a tracker whose package is not installed."""
    if run.track.tensorboard:
        _package("tensorboard", "tensorboard.summary", "true")
    if run.track.wandb != "off":
        _wandb(run)


def trackers(run: Run, folder: Path) -> list[Tracker]:
    """Those that run.track switches on, started."""
    found = []
    if run.track.tensorboard:
        summary = _package("tensorboard", "tensorboard.summary", "true")
        found.append(Tracker("TensorBoard", lambda: _TensorBoard(summary, folder)))
    if run.track.wandb != "off":
        wandb = _wandb(run)
        service = _Service(wandb)
        found.append(Tracker("W&B", lambda: _WeightsAndBiases(wandb, run, folder, service), service.leave))
    return found


def _wandb(run: Run) -> Any:
    """W&B's client, without reports of its own errors: at the exit of Python they wait half a minute for an answer."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    return _package("wandb", "wandb", run.track.wandb)


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


class _Service:
    """The process that W&B's client starts, and waits for when Python exits: minutes, if the server is silent."""

    def __init__(self, wandb: Any) -> None:
        self._wandb = wandb
        self._others = _services()  # a program may use W&B itself
        self.left = False

    def end(self) -> None:
        """Kill it and let the client forget it; what was written to disk stays there."""
        mine = _services() - self._others
        for process in mine:
            with suppress(psutil.Error):
                process.kill()
        if mine:
            with suppress(Exception, SystemExit):  # it would end with the code of the process that was killed
                self._wandb.teardown()

    def leave(self) -> None:
        """The same for good: nobody waits for a run that could begin now."""
        self.left = True
        self.end()


def _services() -> set[psutil.Process]:
    found = set()
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # it has just ended
            if child.name().startswith("wandb"):
                found.add(child)
    return found


class _WeightsAndBiases:
    """A W&B run in folder/wandb; if the server does not answer, an offline one that can be sent later."""

    def __init__(self, wandb: Any, run: Run, folder: Path, service: _Service) -> None:
        self.notice = ""
        known = getattr(wandb.Settings, "model_fields", {})
        bounded = {"finish_timeout": SENDING, "finish_timeout_raises": True}
        bounded = {name: value for name, value in bounded.items() if name in known}  # older versions do without

        def start(mode: str) -> Any:
            quiet = wandb.Settings(
                console="off", silent=True, init_timeout=ANSWER, login_timeout=1.0, x_disable_stats=True, **bounded
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
            if run.track.wandb == "offline" or service.left:
                raise
            service.end()  # it would go on asking for the run that got no answer
            self._run = start("offline")
            first = (str(reason).splitlines() or [type(reason).__name__])[0]
            self.notice = f"offline in {folder / 'wandb'} (`wandb sync` sends it later), because: {first}"

    def write(self, step: int, numbers: Numbers) -> None:
        self._run.log(dict(numbers), step=step)

    def close(self) -> None:
        try:
            self._run.finish()
        except TimeoutError:
            raise TimeoutError(f"not all was sent in {SENDING:.0f} s; `wandb sync` sends it later") from None
