"""The log: everything a run says, to its files, the terminal and the trackers.

metrics.jsonl has one JSON object a line: an epoch's metrics, an evaluation (key `evaluation`) or a window of env steps
(key `window`). log.txt is for reading: the heading, then one line an epoch, and notes. The terminal shows the panel
where it can and the lines of log.txt where it cannot. Nothing that fails here stops training: it is counted, said once
and tried again.
"""

from __future__ import annotations

import json
import math
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from gridmill.config.files import write_whole
from gridmill.config.text import WIDTH, ascii_only, harmless
from gridmill.run import Run
from gridmill.runs.lines import Lines, cut_after
from gridmill.runs.log_lines import ENDED, TITLES, epoch_line, evaluation_lines
from gridmill.runs.place import Lock
from gridmill.runs.trackers import Tracker, trackers
from gridmill.runs.trackers import close as close_trackers

if TYPE_CHECKING:
    from gridmill.runs.console import Panel

PAUSE = 0.5  # seconds between lines on a terminal; log.txt has them all
REPORT_EVERY = 30.0  # seconds between two reports of a running run, the first after as many
REPORT_SHARE = 0.01  # of the time that reports may take, at most


class RunLog:
    """What a run says. `append` continues what is there, without the epochs after `from_epoch`."""

    def __init__(
        self,
        folder: Path,
        run: Run,
        header: Sequence[str] = (),
        panel: bool | None = None,
        append: bool = False,
        from_epoch: int | None = None,
        lock: Lock | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = lock or Lock(folder)  # first: nothing is touched in a folder that somebody else writes
        self._log = Lines(folder / "log.txt", append)
        self._said: set[str] = set()  # troubles a person knows of
        self._troubles: list[str] = []
        late = cut_after(folder / "metrics.jsonl", from_epoch) if append and from_epoch is not None else []
        self._metrics = Lines(folder / "metrics.jsonl", append)
        for line in late:
            self._write(self._metrics, line)
        self._trackers: list[Tracker] = trackers(run, folder)
        self._last_line = 0.0
        self._unsaid = ""  # the newest epoch's line, if the terminal has not seen it
        self._has_terminal = True
        self._closed = False
        self._report_due = time.monotonic() + REPORT_EVERY

        resumed = (
            [] if not append else ["", f"resumed after epoch {from_epoch}" if from_epoch is not None else "resumed"]
        )
        opening = [*resumed, *header, "", TITLES]
        for line in opening:
            self._write(self._log, line)
        self._panel = _panel(run, folder, panel)
        for line in opening[:-1] if self._panel else opening:
            self._show(line)
        self._tell_troubles()

    @property
    def is_gone(self) -> bool:
        """Whether the run's folder is no longer where it was: what lies there now is not the run's to write to."""
        return not self._lock.is_of(self.folder)

    def epoch(self, metrics: Mapping[str, Any]) -> None:
        """An epoch is over: metrics.jsonl, log.txt, terminal, trackers."""
        self._look_for_files()
        record = {key: _plain(value) for key, value in metrics.items()}
        self._write(self._metrics, json.dumps(record, allow_nan=False))
        line = epoch_line(record)
        self._write(self._log, line)
        self._unsaid = line
        if self._panel is not None:
            self._draw(record)
        elif time.monotonic() - self._last_line >= PAUSE:
            self._show_epoch()
        if self._trackers:
            numbers = {k: float(v) for k, v in record.items() if isinstance(v, int | float)}
            for tracker in self._trackers:
                tracker.put(int(record.get("agent_steps") or 0), numbers)
        if time.monotonic() >= self._report_due:
            self.report(running=True)
        self._tell_troubles()

    def evaluation(self, epoch: int, agent_steps: int, result: Mapping[str, Any]) -> None:
        """A checkpoint of that epoch was evaluated; `result` is the JSON of `gridmill eval`."""
        record = {"epoch": epoch, "agent_steps": agent_steps, "evaluation": _plain(result)}
        self._write(self._metrics, json.dumps(record, allow_nan=False))
        for line in evaluation_lines(record):
            self.note(line)

    def window(self, epoch: int, totals: Mapping[str, Any]) -> None:
        """A window of env steps became full in that epoch."""
        record = {"epoch": epoch, "window": _plain(totals)}
        self._write(self._metrics, json.dumps(record, allow_nan=False))
        self._tell_troubles()

    def curriculum(self, record: Mapping[str, Any]) -> None:
        """What the curriculum is like now: curriculum.json, written anew."""
        if self.is_gone:
            return
        try:
            write_whole(self.folder / "curriculum.json", json.dumps(_plain(record), allow_nan=False).encode())
        except OSError as reason:
            self._trouble("curriculum.json", reason.strerror or str(reason))
            self._tell_troubles()

    def note(self, text: str, whole: bool = False) -> None:
        """Something a person should know: a warning, a checkpoint. A command to be copied stays `whole`."""
        for line in map(harmless, text.splitlines()):  # whoever reads log.txt does so on a terminal too
            self._write(self._log, line)
            if self._panel is not None:
                try:
                    self._panel.note(line)
                except Exception as reason:
                    self._drop_panel(reason)
            else:
                self._show(line, whole)
        self._tell_troubles()

    def saved(self, name: str) -> None:
        """A checkpoint was written; the panel shows it."""
        if self._panel is not None:
            self._panel.saved(name)

    def report(self, running: bool = False) -> Path | None:
        """Write report.html anew; None if that failed. The next one is due when this one's time does not matter."""
        from gridmill.runs.report import page as report

        if self.is_gone:
            return None
        began = time.monotonic()
        try:
            return report.write(self.folder, running)
        except OSError as reason:
            self._trouble("report.html", reason.strerror or str(reason))
            self._tell_troubles()
            return None
        finally:
            now = time.monotonic()
            self._report_due = now + max(REPORT_EVERY, (now - began) / REPORT_SHARE)

    def close(self, reason: str = "finished", last: Callable[[bool], Sequence[str]] = lambda reported: ()) -> None:
        """The report, the trackers' time to finish, `last` lines (told if there is a report), then why it ended."""
        if self._closed:
            return
        self._closed = True
        if self._panel is not None:
            try:
                self._panel.close(reason)
            except Exception as fault:
                self._trouble("panel", str(fault))
            self._panel = None
        elif self._unsaid:
            self._show_epoch()
        self._look_for_files()
        written = self.report()
        close_trackers(self._trackers)
        self._tell_troubles()
        for kind in (self._metrics, self._log):
            if kind.is_hidden and not self.is_gone:
                self.note(f"{kind.path.name} was removed or replaced and cannot be written again: what it had is lost")
            if kind.missed:
                self.note(f"{kind.path.name}: {kind.missed} writes failed, {kind.waiting} lines are lost")
        for line in last(written is not None):
            self.note(line, whole=True)
        self.note(f"{ENDED}{' '.join(reason.split())}")
        self._metrics.close()
        self._log.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close("finished" if kind is None else f"{kind.__name__}: {fault}")

    # ---- files

    def _look_for_files(self) -> None:
        """Somebody may have removed one: a run would go on writing to what nobody can read."""
        if self.is_gone:
            return
        for lines in (self._metrics, self._log):
            try:
                if lines.reopen():
                    self._troubles.append(f"warning: {lines.path.name} was removed or replaced; it is written again")
            except OSError as reason:
                self._trouble(lines.path.name, reason.strerror or str(reason))

    def _write(self, lines: Lines, line: str) -> None:
        waited = lines.waiting
        trouble = lines.write(line)
        if trouble:
            self._trouble(lines.path.name, f"{trouble}; training continues, lines are kept in memory")
        elif waited and lines.path.name in self._said:
            self._said.discard(lines.path.name)
            self._troubles.append(f"{lines.path.name} can be written again, {waited} waiting lines were written")

    def _trouble(self, what: str, reason: str) -> None:
        if what not in self._said:
            self._said.add(what)
            self._troubles.append(f"warning: {what} cannot be written: {reason}")

    def _tell_troubles(self) -> None:
        for tracker in self._trackers:
            if tracker.trouble:
                self._troubles.append(f"warning: {tracker.trouble}")
                tracker.trouble = None
        while self._troubles:
            self.note(self._troubles.pop(0))

    # ---- the terminal

    def _show(self, line: str, whole: bool = False) -> None:
        """A line on the terminal; when nobody is there any more, training goes on."""
        if not self._has_terminal:
            return
        try:
            shown = ascii_only(line)
            if len(shown) > WIDTH and not whole:  # paths stay whole, so that they can be copied
                shown = textwrap.fill(
                    shown, WIDTH, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
                )
            print(shown, flush=True)
        except (OSError, ValueError):
            self._has_terminal = False

    def _show_epoch(self) -> None:
        self._show(self._unsaid)
        self._unsaid = ""
        self._last_line = time.monotonic()

    def _draw(self, record: Mapping[str, Any]) -> None:
        assert self._panel is not None
        try:
            self._panel.epoch(record)
        except Exception as reason:  # a picture is never worth a run
            self._drop_panel(reason)

    def _drop_panel(self, reason: Exception) -> None:
        self._panel = None
        self._trouble("panel", f"{type(reason).__name__}: {reason}; continuing with plain lines")


def _panel(run: Run, folder: Path, wanted: bool | None) -> Panel | None:
    if wanted is False:
        return None
    from gridmill.runs.console import Panel, fits_terminal

    if wanted is None and not fits_terminal(sys.stdout):
        return None
    return Panel(folder.name, f"{run.game.name} {run.game.fingerprint()}")


def _plain(value: Any) -> Any:
    """As JSON has it: arrays' scalars as numbers, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    try:
        return _plain(value.item())
    except (AttributeError, ValueError, RuntimeError):  # no scalar: its text, rather than a stopped run
        return str(value)
