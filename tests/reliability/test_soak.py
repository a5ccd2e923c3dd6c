"""Training with evaluation for a long time is as fast at its end as at its start and needs no more memory.

`scripts/soak.py` does it, in pieces that each go on with a run, and with several runs side by side; eight hours are the
sum of such pieces (docs/reliability.md, S4).
"""

from __future__ import annotations

import dataclasses
import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.S4

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
TRIAL, SOAK = 60.0, 1_800.0  # seconds
PIECES = 2


def script() -> ModuleType:
    if str(SCRIPTS) not in sys.path:
        sys.path.append(str(SCRIPTS))
    return importlib.import_module("soak")


@pytest.mark.long
@pytest.mark.timeout(SOAK + 600)
@pytest.mark.parametrize("seconds", [TRIAL, SOAK])
def test_as_fast_at_the_end_as_at_the_start(
    seconds: float, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A minute to try it, then half an hour, in two pieces: training, evaluation, replays, checkpoints, analysis."""
    record = tmp_path / "soak.jsonl"
    words = ["--minutes", str(seconds / 60 / PIECES), "--folder", str(tmp_path / "soak"), "--record", str(record)]
    for _ in range(PIECES):
        asked = [sys.executable, str(SCRIPTS / "soak.py"), *words, "--every", str(seconds / 40)]
        done = subprocess.run(asked, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stdout + done.stderr
    soak = script()
    pieces = soak.load(record)
    text, faults = soak.summed(pieces)
    record_property("figure", text)
    assert len(pieces) == PIECES
    assert sum(one.evaluations for one in pieces) >= (1 if seconds == TRIAL else 4)
    assert pieces[-1].replays >= 1
    if seconds == TRIAL:  # in a minute, neighbours decide how fast it is
        faults = [fault for fault in faults if "of the speed" not in fault]
    assert faults == []


def test_pieces_are_judged_together() -> None:
    """The last of a run against its first: slower, larger, with an error or from elsewhere is a fault, and says so."""
    soak = script()
    numbers = [1800.0, 1, 10, 100.0, 100.0, 5000.0, 5000.0, 200.0, 200.0]
    first = soak.Piece("2026-01-01", "abc1234", "ci one", 3600.0, *numbers, 4, 4, [])
    again = dataclasses.replace(first, first_epoch=11, last_epoch=20)
    text, faults = soak.summed([first, again])
    assert text == (
        "2.00 hours, 1.00 of a core, in 2 pieces of 1 run (ci), 20 epochs, 8 evaluations, 4 replays; "
        "speed at the end 1.000 of the start by CPU time (1.000 by a fixed piece of work), "
        "memory +0.0% at most, 0 errors"
    )
    assert faults == []

    def fault(**changes: object) -> str:
        (only,) = soak.summed([first, dataclasses.replace(again, **changes)])[1]
        return str(only)

    assert fault(sps_late=4700.0) == "ci one: expected at least 0.95 of the speed at the start, got 0.940"
    assert fault(memory_late=211.0) == "ci one: expected at most 5% more memory, got 5.5%"
    assert fault(errors=["warning: W&B"]) == "ci one: error: warning: W&B"
    assert fault(first_epoch=5) == "ci one: expected each piece to begin where the one before it ended"


def test_every_run_is_judged_by_itself() -> None:
    """Two runs side by side: hours and epochs are added up, and neither is compared with the other."""
    soak = script()
    numbers = [900.0, 1, 10, 100.0, 80.0, 5000.0, 4900.0, 200.0, 202.0]
    one = soak.Piece("2026-01-01", "abc1234", "ci one", 1800.0, *numbers, 4, 4, [])
    other = dataclasses.replace(one, run="toy two", sps_early=90_000.0, sps_late=92_700.0, memory_late=206.0)
    text, faults = soak.summed([one, other])
    assert text == (
        "1.00 hours, 0.50 of a core, in 2 pieces of 2 runs (ci, toy), 20 epochs, 8 evaluations, 8 replays; "
        "speed at the end 0.980 to 1.030 of the start by CPU time (0.800 by a fixed piece of work), "
        "memory +3.0% at most, 0 errors"
    )
    assert faults == []
    slow = dataclasses.replace(other, sps_late=45_000.0)
    assert soak.summed([one, slow])[1] == ["toy two: expected at least 0.95 of the speed at the start, got 0.500"]
