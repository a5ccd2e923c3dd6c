"""The panel: a run on one screen of a terminal, redrawn in place.

It draws when an epoch ends, at most once a second, in the trainer's own thread; nothing ticks in between.
Names come from people, so text is never read as markup.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel as Frame
from rich.table import Table
from rich.text import Text

from gridmill.config.text import harmless, printable
from gridmill.runs.figures import (
    Trend,
    count,
    duration,
    finite,
    memory,
    number,
    percent,
    phase_name,
    phases,
    sparkline,
)

PAUSE = 1.0  # seconds between two pictures, which take some 5 ms each
LEAST_WIDTH, MOST_WIDTH = 72, 100
EIGHTHS = " ▏▎▍▌▋▊▉█"
LABEL = 9  # columns of a row's name


def fits_terminal(stream: TextIO) -> bool:
    """Whether the panel can be drawn there: a terminal with cursor movement, Unicode and enough columns.

    With NO_COLOR it is drawn without colours.
    """
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return False
    if not stream.isatty() or "utf" not in (stream.encoding or "").lower():
        return False
    return Console(file=stream).width >= LEAST_WIDTH


class Panel:
    """A live picture of a run; `title` and `game` stand in its frame."""

    def __init__(self, title: str, game: str, console: Console | None = None) -> None:
        self._title, self._game = title, game
        self._console = console or Console(highlight=False)
        self._known: dict[str, Any] = {}  # the newest value of each metric: some come only now and then
        self._score, self._reward = Trend(), Trend()
        self._saved_at = 0.0
        self._ended = ""  # why, once it is over
        self._note = ""
        self._drawn_at = 0.0
        self._live = Live(console=self._console, auto_refresh=False, get_renderable=self.picture)
        self._live.start()

    def epoch(self, metrics: Mapping[str, Any]) -> None:
        """Take an epoch's metrics in, and draw if the last picture is old enough."""
        if "last_checkpoint" in metrics:
            self.saved(metrics["last_checkpoint"])
        if any(key.startswith("time/") for key in metrics):  # shares are of one epoch
            self._known = {key: value for key, value in self._known.items() if not key.startswith("time/")}
        self._known.update({key: value for key, value in metrics.items() if value is not None})
        self._score.add(metrics.get("score_recent", metrics.get("score")))
        self._reward.add(metrics.get("reward"))
        now = time.monotonic()
        if now - self._drawn_at >= PAUSE:
            self._drawn_at = now
            self._live.refresh()

    def saved(self, checkpoint: str) -> None:
        """A checkpoint is there; its age counts from when it was first heard of."""
        if checkpoint != self._known.get("last_checkpoint"):
            self._saved_at = time.monotonic()
            self._known["last_checkpoint"] = checkpoint

    def note(self, text: str) -> None:
        """A line above the panel, which the terminal keeps, and the newest one in it."""
        self._note = harmless(text)
        self._live.console.print(Text(self._note), soft_wrap=True)

    def close(self, reason: str = "") -> None:
        """Leave the last picture on the terminal, with why it is the last."""
        self._ended = reason
        self._live.refresh()
        self._live.stop()

    # ---- the picture

    def picture(self) -> RenderableType:
        """What is drawn now."""
        width = min(self._console.width, MOST_WIDTH)
        inner = width - 4
        rows: list[RenderableType] = [
            self._progress(inner),
            self._speed(),
            Text(),
            self._course("score", self._score, inner),
            self._course("reward", self._reward, inner),
            Text(),
            self._row("losses", {"policy": "loss/policy", "value": "loss/value", "entropy": "loss/entropy"}),
            self._update(),
        ]
        shares = self._shares(inner)
        rows += [Text(), *shares, Text()] if shares else [Text()]
        rows += [self._machine(), self._saved()]
        if self._note:
            note = _named("note") + Text(self._note)
            note.truncate(inner, overflow="ellipsis")
            rows.append(note)
        return Frame(
            Group(*rows),
            title=_cut(self._title, inner // 2, "bold"),
            title_align="left",
            subtitle=_cut(self._game, inner // 2, "dim"),
            subtitle_align="right",
            box=box.ROUNDED,
            border_style="dim",
            width=width,
        )

    def _progress(self, inner: int) -> Text:
        steps, total = finite(self._known.get("agent_steps")) or 0.0, finite(self._known.get("total_timesteps"))
        share = min(1.0, steps / total) if total else 0.0
        said = f"  {percent(share)}  {count(steps)} of {count(total)}"
        eta = f"  {self._ended[:20]}" if self._ended else f"  eta {duration(self._known.get('eta'))}"
        return (
            _named("steps")
            + _bar(share, max(8, inner - LABEL - len(said) - len(eta)), "cyan")
            + said
            + Text(eta, "bold")
        )

    def _speed(self) -> Text:
        line = _named("speed") + Text(f"{count(self._known.get('sps'))}/s", "bold") + " now"
        line += f"   {count(self._known.get('sps_mean'))}/s mean"
        return line + f"   epoch {self._known.get('epoch', 0)}   {duration(self._known.get('seconds'))} so far"

    def _course(self, name: str, trend: Trend, inner: int) -> Text:
        if trend.best is None:
            return _named(name) + Text("no episode has ended yet", "dim")
        best = f"best {number(trend.best)}"
        now = self._known.get(f"{name}_recent", self._known.get(name))
        line = _named(name) + Text(f"{number(now):<8}", "bold")
        line += Text(sparkline(trend.values, inner - LABEL - 8 - len(best) - 2), "green")
        return line + Text(f"  {best}", "dim")

    def _row(self, name: str, metrics: Mapping[str, str]) -> Text:
        known = [f"{said} {number(self._known[key])}" for said, key in metrics.items() if key in self._known]
        return _named(name) + ("   ".join(known) or "-")

    def _update(self) -> Text:
        line = self._row("update", {"kl": "kl", "explained": "explained_variance", "rate": "learning_rate"})
        if "clip_fraction" in self._known:
            line += f"   clipped {percent(self._known['clip_fraction'])}"
        skipped = finite(self._known.get("skipped_updates"))
        return line + Text(f"   skipped {skipped:.0f}", "bold red") if skipped else line

    def _shares(self, inner: int) -> list[RenderableType]:
        """The phases of the last epoch as bars, in two columns."""
        found = phases(self._known)
        total = sum(found.values())
        if not total:
            return []
        bar = max(6, (inner - LABEL) // 2 - 22)
        cells = [
            Text(f"{phase_name(name, found):<13}")
            + _bar(seconds / total, bar, "magenta")
            + Text(f"{100 * seconds / total:4.0f} %", "bold" if seconds > total / 4 else "")
            for name, seconds in found.items()
        ]
        table = Table.grid(padding=(0, 3, 0, 0))
        half = (len(cells) + 1) // 2
        for k in range(half):
            right = cells[k + half] if k + half < len(cells) else Text()
            table.add_row(_named("time" if k == 0 else "") + cells[k], right)
        return [table]

    def _machine(self) -> Text:
        said = []
        for name, key, written in (
            ("cpu", "cpu/util", percent),
            ("gpu", "gpu/util", percent),
            ("memory", "memory/rss", memory),
            ("of gpu", "gpu/memory", memory),
            ("free", "memory/free", memory),
        ):
            if key in self._known:
                said.append(f"{name} {written(self._known[key])}")
        return _named("machine") + ("   ".join(said) or "-")

    def _saved(self) -> Text:
        last = self._known.get("last_checkpoint")
        if not last:
            return _named("saved") + Text("no checkpoint yet", "dim")
        age = "" if self._ended else f"   {duration(time.monotonic() - self._saved_at)} ago"
        return _named("saved") + printable(last) + Text(age, "dim")


def _named(name: str) -> Text:
    return Text(f"{name:<{LABEL}}", "dim", no_wrap=True, overflow="ellipsis")


def _cut(text: str, width: int, style: str) -> Text:
    found = Text(printable(text), style)
    found.truncate(width, overflow="ellipsis")
    return found


def _bar(share: float, width: int, style: str) -> Text:
    """A bar of eighths of a column on dim dots."""
    full, eighths = divmod(round(share * width * 8), 8)
    bar = EIGHTHS[8] * full + (EIGHTHS[eighths] if eighths else "")
    return Text(bar, style) + Text("·" * (width - len(bar)), "dim")
