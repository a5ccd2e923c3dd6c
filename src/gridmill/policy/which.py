"""Which checkpoint of a run is meant: `runs/x` and `runs/x@last` the newest, `runs/x@best`, `runs/x@12` an epoch's.

No torch here.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from gridmill.policy import pin

WORDS = ("last", "best")


def split(text: str | Path) -> tuple[Path, str]:
    """The folder, and which of its checkpoints: last, best or an epoch's number."""
    path = Path(text)
    name, at, which = path.name.rpartition("@")
    if not at or not name or os.path.exists(path):
        return path, "last"
    if which not in WORDS and not re.fullmatch(r"\d{1,15}", which, re.ASCII):
        raise ValueError(f"expected @last, @best or @EPOCH after a run's folder, got `{path}`")
    return path.with_name(name), which


def exists(text: str | Path) -> bool:
    """Whether there is such a folder; what is in it is for others to see."""
    return os.path.exists(split(pin.split(str(text))[0])[0])
