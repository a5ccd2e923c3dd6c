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
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from gridmill import _native

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, FrameType | None], None]


def heard() -> list[signal.Signals]:
    """What ends our work: not a closed terminal under `nohup`."""
    return [one for one in SIGNALS if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN]


@contextmanager
def handling(numbers: Iterable[signal.Signals], handler: Handler, patient: bool = False) -> Iterator[None]:
    """These signals are the handler's, in the main thread; a handler of Python's takes the place of the core's, so the
    core is told again to end the process at the second of a kind, or, if `patient`, not to.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    listened = _native.leave_on_second_signal(not patient)
    try:
        yield
    finally:
        for number, own in before.items():
            if signal.getsignal(number) == handler:  # it may have been set to be ignored meanwhile
                signal.signal(number, own)
        _native.leave_on_second_signal(listened)


class Stop:
    """While this lasts, `told` hears of the first signal of each kind; `patient`: a second SIGTERM changes nothing."""

    def __init__(self, told: Callable[[int], None], patient: bool = False) -> None:
        self.told, self.patient = told, patient
        self.seen: set[int] = set()

    def __enter__(self) -> None:
        self.installed: AbstractContextManager[None] = handling(heard(), self.handle, self.patient)
        self.installed.__enter__()

    def handle(self, number: int, frame: FrameType | None) -> None:
        if number in self.seen:
            if number != signal.SIGHUP and not (self.patient and number == signal.SIGTERM):
                os._exit(128 + number)
            return
        self.seen.add(number)
        self.told(number)

    def __exit__(self, *_: object) -> None:
        self.installed.__exit__(None, None, None)
