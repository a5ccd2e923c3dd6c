"""`gridmill settings`: every setting of a run, what it takes and what it means."""

from __future__ import annotations

import typing
from typing import Annotated, Any

import typer

from gridmill.cli.groups import Command
from gridmill.cli.inspect import as_json
from gridmill.cli.say import say

if typing.TYPE_CHECKING:
    from gridmill.config.describe import Setting

app = typer.Typer(rich_markup_mode=None)
SCHEDULE = (
    'A schedule is JSON: \'optimizer.learning_rate={"start": 2e-3, "end": 2e-4, "shape": "cosine"}\'; '
    "shape is linear, cosine or stairs; over is steps, epochs or metric:NAME; begin and until bound the change."
)


@app.command(cls=Command)
def settings(
    pattern: Annotated[
        str | None, typer.Argument(help="Part of a name or meaning, or a pattern such as 'trainer.*'.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON record instead of text.")] = False,
) -> None:
    """List all training settings: default, accepted values, meaning.

    `gridmill train RECIPE KEY=VALUE` sets one; `gridmill train RECIPE --dry-run` shows a recipe's own values.
    """
    from gridmill.config import did_you_mean
    from gridmill.config.text import hang
    from gridmill.run import settings as known

    every = known()
    found = every if pattern is None else [setting for setting in every if _matches(setting, pattern)]
    if not found:
        names = {setting.path.rpartition(".")[2]: setting.path for setting in every}
        hint = did_you_mean(str(pattern), [*(setting.path for setting in every), *names])
        raise ValueError(f"no setting matches `{pattern}`{hint}")
    if json:
        say(as_json({"settings": [_record(setting) for setting in found]}))
        return
    for setting in found:
        say("\n".join(hang(f"{setting.path} = {shown(setting.default)}  ", f"({setting.takes})", 4)))
        say("\n".join(hang("    ", setting.meaning, 4)))
    if any("schedule" in setting.takes for setting in found):
        say("\n" + "\n".join(hang("", SCHEDULE)))


def shown(value: Any) -> str:
    """A default as it would be typed."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, float):
        return f"{int(value):_}" if value.is_integer() and abs(value) < 1e15 else f"{value:g}"
    if isinstance(value, str):
        return value
    return ", ".join(map(str, value)) or "none"


def _record(setting: Setting) -> dict[str, Any]:
    default = setting.default if isinstance(setting.default, bool | int | float | str | None) else list(setting.default)
    return {"path": setting.path, "default": default, "takes": setting.takes, "meaning": setting.meaning}


def _matches(setting: Setting, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(setting.path, pattern)
    return pattern.lower() in setting.path.lower() or pattern.lower() in setting.meaning.lower()
