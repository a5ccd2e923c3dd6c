"""Commands inside messages: what installs something that is missing, what goes on. They work as they are printed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path


def pip_install(*requirements: str) -> str:
    """`python -m pip install 'gridmill[train]'`, with the Python that runs."""
    return shlex.join([*python(), "-m", "pip", "install", *requirements])


def command(*words: str) -> str:
    """A command of ours as it can be typed here: `gridmill resume first`, or by the Python that runs, which would take
    modules from the current folder without `-P`.
    """
    found = shutil.which("gridmill")
    return shlex.join([*(["gridmill"] if found is not None else [*python(), "-P", "-m", "gridmill"]), *words])


def python() -> Sequence[str]:
    """The Python that runs, as short as it can be typed: `python` where that is it, else its path."""
    if not sys.executable:  # inside another program
        return ["python"]
    running = os.path.abspath(sys.executable)  # not resolved: that of a venv is a link to another
    found = shutil.which("python")
    if found is not None and os.path.abspath(found) == running:
        return ["python"]
    here = Path.cwd()
    return [os.path.relpath(running, here) if Path(running).is_relative_to(here) else running]
