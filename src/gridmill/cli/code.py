"""`--code FILE`: what the commands that open a run or a policy say of code that it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from gridmill.cli.say import say

Code = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE.py", help="A file or module that the run names and that may be executed; may be repeated."
    ),
]


def take_code(code: Sequence[str] | None) -> None:
    """Let files name this code, and show what it is."""
    from gridmill.config import user_code

    for line in user_code.take(code or ()):
        say(line, err=True)
