"""How commands are listed, and what they answer: whole sentences in `--help`, numbers that no option takes, settings
that were typed as options.
"""

from __future__ import annotations

import math
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

USAGE_ERROR: Any = typer.BadParameter.__base__  # what an unknown option raises; typer has no name of its own for it


class Listed(TyperGroup):
    """A group whose `--help` has the whole first sentence of each command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(limit=1_000)) for name, command in found if command])


class Command(TyperCommand):
    """A command whose numbers are numbers: finite, and such as a machine has; narrower limits are said by what it
    calls.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parsed: list[str] = super().parse_args(ctx, args)
        for param in self.params:
            value = ctx.params.get(param.name)
            if isinstance(value, int | float) and not ctx.resilient_parsing:
                refuse_no_number(max(param.opts, key=len), value)
        return parsed


def refuse_no_number(option: str, value: float) -> None:
    """ValueError for NaN, infinities and whole numbers of more than 64 bits."""
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"{option}: expected a number of at most 64 bits, got one of {value.bit_length()}")
    elif not math.isfinite(value):
        raise ValueError(f"{option}: expected a finite number, got {value}")


class TakesSettings(Command):
    """A command with KEY=VALUE arguments: `--trainer.gamma 0.9` is answered with `trainer.gamma=0.9`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        typed = list(args)
        try:
            parsed: list[str] = super().parse_args(ctx, args)
            return parsed
        except USAGE_ERROR as error:
            option = getattr(error, "option_name", "")
            meant = _as_setting(option, typed) if option else None
            if meant is None or ctx.resilient_parsing:
                raise
            raise ValueError(f"no option `{option}`; settings are written KEY=VALUE, without dashes: {meant}") from None


def _as_setting(option: str, typed: list[str]) -> str | None:
    """What an unknown option would be as a setting; None if it is like none."""
    from gridmill.run import settings

    name = option.lstrip("-").replace("-", "_")
    paths = [setting.path for setting in settings()]
    same = [path for path in paths if path == name or path.rpartition(".")[2] == name]
    if not same and not name.startswith("game."):
        import difflib

        same = difflib.get_close_matches(name, paths, 1, 0.6) if "." in name else []
        if not same:
            return None
    near = min(same, key=lambda path: (path != name, path.count(".")), default=name)
    return f"{near}={_value(option, typed)}"


def _value(option: str, typed: list[str]) -> str:
    """What was typed behind it: `--name value` or `--name=value`."""
    import shlex

    for place, word in enumerate(typed):
        if word.startswith(f"{option}="):
            return shlex.quote(word.removeprefix(f"{option}="))
        if word == option and place + 1 < len(typed):
            after = typed[place + 1]
            is_number = after.lstrip("-").replace(".", "", 1).replace("e", "", 1).isdigit()
            return shlex.quote(after) if is_number or not after.startswith("-") else "VALUE"
    return "VALUE"
