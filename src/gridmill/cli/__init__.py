"""The command line: games are in `inspect`, training in `train`, searches in `sweep`, settings in `settings`, runs in
`runs`, trained policies in `policy`, pictures in `show`, replay files in `replays`, watching and playing in `view`,
what measures in `speed`, what compares and judges in `workshop`. What a word means is in `named`, what the Tab key
offers in `complete`.

Each command turns its options into plain values and calls what does the work, imported only then, so
that `gridmill --help` answers at once. Errors of the caller end with one line on stderr and exit code 2.
Output is plain ASCII lines of at most 80 columns, the same on a terminal and in a pipe.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from gridmill.cli import inspect, policy, replays, runs, settings, show, speed, sweep, train, view, workshop
from gridmill.cli.groups import USAGE_ERROR, Listed
from gridmill.cli.judging import in_one_line, is_told
from gridmill.cli.say import say

USER_ERROR = 2


class RootGroup(Listed):
    """The group of all commands; where errors of the caller become one line."""

    owns_process = False  # whether `main` was called, not a program that uses the commands

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        """Here `--help` and `--version` are answered, before there is a command to invoke."""
        base: Any = super()
        return _one_line_of_errors(lambda: base.make_context(*arguments, **more), traceback=False)

    def invoke(self, ctx: Any) -> Any:
        base: Any = super()

        def work() -> Any:
            if self.owns_process:
                from gridmill import _native

                _native.leave_on_second_signal(True)  # also where Python does not get to hear of it
                _refuse_removed_folder()
            return base.invoke(ctx)

        return _one_line_of_errors(work, bool(ctx.params.get("traceback")))


def _refuse_removed_folder() -> None:
    """ValueError where nothing can be found by a relative name; libraries that torch loads end the process there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise ValueError("expected a folder to work in, got one that was removed: cd to another") from None


def _one_line_of_errors(work: Callable[[], Any], traceback: bool) -> Any:
    """Do it; what the caller did wrong is one line on stderr and an exit code."""
    try:
        return work()
    except USAGE_ERROR as error:  # names options and files as they were typed, or as a shell's * found them
        from gridmill.config.text import harmless

        error.message = harmless(error.message)
        raise
    except BrokenPipeError:
        # The reader has gone (`gridmill games | head -1`); nothing is left to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except (typer.Exit, typer.Abort):  # they are RuntimeErrors too
        raise
    except Exception as error:
        if type(error).__name__ == "SchemaError" and "KeyboardInterrupt" in str(error):  # pydantic's word for a Ctrl-C
            raise KeyboardInterrupt from None
        if traceback or not is_told(error):
            raise
        say(f"gridmill: {in_one_line(error)}", err=True)
        raise typer.Exit(USER_ERROR) from None


app = typer.Typer(
    cls=RootGroup,
    name="gridmill",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A fast multi-agent grid world for reinforcement learning, its trainer and its tools.",
)
app.add_typer(inspect.app)
app.add_typer(train.app)
app.add_typer(sweep.app)
app.add_typer(settings.app)
app.add_typer(runs.app)  # runs, report
app.add_typer(policy.policy, name="policy")
app.add_typer(show.app)  # show, watch
app.add_typer(replays.replay, name="replay")
app.add_typer(view.app)
app.add_typer(replays.app)  # whatif
app.add_typer(speed.bench, name="bench")
app.add_typer(speed.profile, name="profile")
app.add_typer(speed.app)  # throughput
app.add_typer(workshop.app)  # ab, gate, validate, ...


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"gridmill {version('gridmill')}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show the full traceback of an error.")] = False,
) -> None:
    # A terminal that cannot show a character gets a question mark instead of a crash.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _warning(message: Warning | str, *_: Any, **__: Any) -> str:
    from gridmill.config.text import harmless

    return f"gridmill: warning: {harmless(str(message))}\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point; ends the process with the command's exit code."""
    RootGroup.owns_process = True
    # A warning is for the caller too: one line, without the place in our source.
    warnings.formatwarning = _warning
    app(args=None if arguments is None else list(arguments), prog_name="gridmill")
