"""What all tests share: hypothesis draws the same examples every time, without a clock; torch has one thread; what
has a costly beginning runs in one worker.

Helpers are in tests/support/, which pyproject.toml puts on the import path. No fixtures: each test file says what it
needs.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
from collections.abc import Generator
from multiprocessing import forkserver
from pathlib import Path

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

# As many workers as cores run the tests: a second thread of torch in each, and in processes that tests start, would
# only wait for the others, at a multiple of the cost.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "gridmill",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("gridmill")

# The commands are read once, not at every call of a CliRunner: a tenth of a second each, hundreds of times.
typer.testing._get_command = functools.cache(typer.testing._get_command)


def cpu_seconds() -> float:
    """Of this process and of all that it has waited for, and of all that were forked for it (tests/support/warm.py)."""
    spent = sum(os.times()[:4])
    with contextlib.suppress(OSError):  # there is no such process, or no /proc
        stat = Path(f"/proc/{forkserver._forkserver._forkserver_pid}/stat").read_text().rpartition(")")[2].split()
        spent += (int(stat[13]) + int(stat[14])) / os.sysconf("SC_CLK_TCK")
    return spent


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting makes stays to the end: it is not looked through for garbage, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What a test costs, whatever else the machine does: kept in the report, listed by scripts/slow_tests.py."""
    began = cpu_seconds()
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu", f"{cpu_seconds() - began:.2f}"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """All tests of a file in one worker, so that what they begin with is made once; the largest files first."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)
