"""Signals that end a run: Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal is closed.

The first ends the run after the running update. A second Ctrl-C or SIGTERM ends it at once; if Python does not get to
its handler, because a call of the core does not come back, the core leaves in its place. A second SIGHUP does not: one
comes from the terminal and often another from the shell, and nobody is there to want something else. Where SIGHUP is
ignored (`nohup`), it stays ignored and the run goes on. Where torchrun started the process, a second SIGTERM does not
either: one comes from the scheduler and one from torchrun, which kills what does not end.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from gridmill import _native

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """While this lasts, `told` hears of the first signal of each kind; `patient`: a second SIGTERM changes nothing."""

    def __init__(self, told: Callable[[int], None], patient: bool = False) -> None:
        self.told, self.patient = told, patient
        self.before: dict[int, Any] = {}
        self.listened = False
        self.seen: set[int] = set()

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                    self.before[number] = signal.signal(number, self.handle)
            self.listened = _native.leave_on_second_signal(not self.patient)

    def handle(self, number: int, frame: FrameType | None) -> None:
        if number in self.seen:
            if number != signal.SIGHUP and not (self.patient and number == signal.SIGTERM):
                os._exit(128 + number)
            return
        self.seen.add(number)
        self.told(number)

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if self.before:
            _native.leave_on_second_signal(self.listened)
