"""What the shell offers behind the Tab key: names of recipes, games, runs, presets and policies, keys of settings.

Nothing here imports torch: the shell waits for it. `gridmill --install-completion` tells the shell about it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

Offer = tuple[str, str]  # a word, and what it means
PACKAGE = Path(__file__).parents[1]
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def recipe(incomplete: str) -> list[str]:
    return _starting([file.stem for file in (PACKAGE / "recipes").glob("*.py")], incomplete)


def preset(incomplete: str) -> list[str]:
    return _starting([file.stem for file in (PACKAGE / "runs" / "presets").glob("*.toml")], incomplete)


def run(incomplete: str) -> list[str]:
    """Runs of the folder where they usually are, by name.

    A shell puts an offer into its line as it is: a folder of a stranger called `a$(rm x)` would be a command there, so
    only names that `run=` takes are offered.
    """
    found = [file.parent.name for file in Path("runs").glob("*/run.json")]
    return _starting([name for name in found if _RUN.fullmatch(name)], incomplete)


def game(incomplete: str) -> list[str]:
    from gridmill import games

    return _starting(games.names(), incomplete)


def game_or_run(incomplete: str) -> list[str]:
    return game(incomplete) + run(incomplete)


def policy(incomplete: str) -> list[str]:
    """Chance, scripts of all games, and runs."""
    from gridmill import games

    scripts = {f"script:{script}" for name in games.names() for script in games.build(name).scripts()}
    return _starting(["random", *scripts], incomplete) + run(incomplete)


def setting(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """A key with its equals sign; behind it, the values there are. bash hands over `key`, `=` and `value` apart."""
    from gridmill.run import settings

    known = {each.path: each for each in settings() if "NAME" not in each.path}
    typed = [str(word) for word in ctx.params.get("change") or ctx.params.get("changes") or ()]
    key, equals, value = incomplete.partition("=")
    apart = ""
    if not incomplete and typed and typed[-1] in known:
        apart = typed[-1]
    elif typed[-1:] == ["="] and len(typed) > 1:
        apart, value = typed[-2], incomplete
    if apart or equals:
        found = known.get(apart or key)
        offered = [] if found is None else [word for word in _values(found) if word.startswith(value)]
        return [(word if apart else f"{key}={word}", "") for word in offered]
    keys = [path for path in known if path.startswith(incomplete)]
    if len(keys) == 1:  # two offers, or the shell would put a space behind the only one
        word = next(iter(_values(known[keys[0]])), "")
        return [(f"{keys[0]}=", known[keys[0]].meaning), (f"{keys[0]}={word or 'VALUE'}", "")]
    return [(f"{path}=", known[path].meaning) for path in keys]


def _values(setting: Any) -> list[str]:
    """The default first, then all words that a setting takes."""
    default = setting.default
    first = str(default).lower() if isinstance(default, bool) else str(default)
    shown = [first] if first and isinstance(default, int | float | str) else []
    return list(dict.fromkeys([*shown, *setting.words]))


def _starting(words: list[str], incomplete: str) -> list[str]:
    return sorted(word for word in words if word.startswith(incomplete) and not word.startswith("_"))
