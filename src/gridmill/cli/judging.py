"""Commands whose exit code 2 is a finding (`bench step`, `validate`): bad input, and whatever else kept them from
judging (no memory, an error of torch), ends with 64 there, so that a script can tell a mismatch from it. Everywhere
else it is 2.
"""

from __future__ import annotations

from typing import Any

import typer

from gridmill.cli.groups import USAGE_ERROR, TakesSettings
from gridmill.cli.say import say

BAD_INPUT = 64  # EX_USAGE of sysexits.h


def is_told(error: Exception) -> bool:
    """Whether a person is told of an error in one line, since it is not a fault of ours, which has a traceback."""
    from gridmill.config import user_code

    theirs = (ValueError, TypeError, OSError, RuntimeError, MemoryError, ImportError)
    return isinstance(error, theirs) or user_code.own_fault(error) is not None


def in_one_line(error: BaseException) -> str:
    """What a person is told of an error; words of files and of the core may have any length."""
    from gridmill.config import user_code  # its package loads pydantic, which --help does without
    from gridmill.config.text import clipped, harmless

    if isinstance(error, MemoryError) and str(error) in ("", "std::bad_alloc"):
        return "out of memory"
    text = user_code.own_fault(error) or str(error)
    return harmless(clipped(" ".join(text.split()) or type(error).__name__, 8000))


class Judging(TakesSettings):
    """A command that says with exit code 2 what it found."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        try:
            return super().make_context(*arguments, **more)
        except USAGE_ERROR as error:
            error.exit_code = BAD_INPUT
            raise
        except ValueError as error:
            say(f"gridmill: {in_one_line(error)}", err=True)
            raise typer.Exit(BAD_INPUT) from None

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):  # they are RuntimeErrors too
            raise
        except Exception as error:
            if isinstance(error, BrokenPipeError) or ctx.find_root().params.get("traceback") or not is_told(error):
                raise
            say(f"gridmill: {in_one_line(error)}", err=True)
            raise typer.Exit(BAD_INPUT) from None
