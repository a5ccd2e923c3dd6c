"""Writes docs/reference/: settings, commands, the Python interface and the games that ship, from the code itself.

    python scripts/reference_pages.py

Nothing is written here by hand but the introductions; `tests/contracts/test_reference.py` holds the pages equal to the
code. Words of grid games have a page of their own (`scripts/words_table.py`).
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer.main

import gridmill
from gridmill import cli, games
from gridmill.cli.settings import SCHEDULE, shown
from gridmill.run import settings

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
WRITTEN = "This page is written by `make docs` from the code.\n"


# ---- settings

SETTINGS = f"""# Settings

{WRITTEN}
Every setting of a training run, as `gridmill settings` lists them. `gridmill train RECIPE KEY=VALUE ...` sets them, a
recipe or a preset does too; `gridmill train RECIPE --dry-run` shows the values that a recipe has. What they do together
is in [training](../training.md). The parts of a grid game (`game.KEY=VALUE`) are in [words](../words.md).

{SCHEDULE}

A loss of your own is added by `losses.NAME.kind=FILE.py:Class`; `seeds=1,2,3` trains one run for each seed.
"""


def settings_page() -> str:
    parts: dict[str, list[str]] = {}
    for each in settings():
        names = each.path.split(".")
        part = ".".join(names[:2]) if names[0] == "losses" and len(names) > 2 else names[0] if len(names) > 1 else ""
        row = f"| `{each.path}` | {_cell(shown(each.default))} | {_cell(each.takes)} | {_cell(each.meaning)} |"
        parts.setdefault(part, []).append(row)
    text = SETTINGS
    for part, rows in parts.items():
        text += (
            f"\n## {f'`{part}`' if part else 'The run'}\n\n| setting | default | takes | meaning |\n|---|---|---|---|\n"
        )
        text += "\n".join(rows) + "\n"
    return text


# ---- commands

COMMANDS = f"""# Commands

{WRITTEN}
Exit codes are 0 for success and 2 for wrong input, unless a command says otherwise; errors are one line on standard
error. `gridmill --traceback COMMAND` shows where an error comes from. `gridmill --install-completion` lets the Tab key
complete recipes, games, runs and settings. `python -P -m gridmill` is the same program. Without `-P`, Python looks for
modules in the current folder first: it would run a `numpy.py` that lies there.
"""


def commands_page() -> str:
    text = COMMANDS
    for path, command in _commands(typer.main.get_command(cli.app)):
        name = "gridmill " + " ".join(path)
        context = command.make_context(name, [], resilient_parsing=True, terminal_width=80)
        said = command.get_help(context)
        text += f"\n## gridmill {' '.join(path)}\n\n```text\n{said.strip()}\n```\n"
    return text


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


# ---- Python

PYTHON = f"""# Python

{WRITTEN}
The interface for your own programs. Everything else inside the package may change without notice.
"""
PUBLIC = {
    "gridmill": ("make", "Env", "Game", "Config", "ConfigError", "TokenBudgetWarning"),
    "gridmill.games": ("names", "build"),
    "gridmill.adapters": ("GridmillEnv", "GridmillVectorEnv", "vec_env", "parallel_env", "puffer_env"),
    "gridmill.run": ("Run", "PolicyConfig", "TrainerConfig", "OptimizerConfig", "Schedule", "SignalTerm"),
    "gridmill.recipes": ("names", "build"),
    "gridmill.runs": ("train", "resume", "epochs", "resume_epochs", "Epoch", "Result", "CallbackFailed"),
    "gridmill.train.trainer": ("Trainer",),
    "gridmill.policy": ("load", "info", "export"),
    "gridmill.policy.player": ("Player",),
    "gridmill.losses": ("Loss", "Column", "Minibatch"),
    "gridmill.evaluate": ("evaluate", "EvaluationResult", "Mean"),
    "gridmill.replay": ("read", "write", "Recorder", "check"),
    "gridmill.whatif": ("what_if",),
    "gridmill.env.checks": ("check_determinism",),
}


def python_page() -> str:
    text = PYTHON
    for module, names in PUBLIC.items():
        text += f"\n## {module}\n"
        for name in names:
            text += _entry(name, getattr(importlib.import_module(module), name))
    return text


def _entry(name: str, found: Any) -> str:
    if not isinstance(found, type):
        call = textwrap.fill(f"{name}{_signature(found)}", 100, subsequent_indent="    ", break_long_words=False)
        return f"\n### {name}\n\n```text\n{call}\n```\n\n{_doc(found)}\n"
    text = f"\n### {name}\n\n{_doc(found)}\n"
    if hasattr(found, "model_fields"):
        return text
    members = [(key, member) for key, member in inspect.getmembers(found) if _is_shown(found, key, member)]
    for key, member in members:
        doc = _doc(member).split("\n\n")[0]
        call = "" if isinstance(member, property) else _signature(member)
        text += f"\n- `{_one_line(key + call)}`: {_one_line(doc)}"
    return text + ("\n" if members else "")


def _is_shown(owner: type, key: str, member: Any) -> bool:
    own = any(key in base.__dict__ for base in owner.__mro__ if base.__module__.startswith("gridmill"))
    documented = bool(inspect.getdoc(member)) and (isinstance(member, property) or inspect.isfunction(member))
    return own and documented and not key.startswith("_")


def _signature(found: Callable[..., Any]) -> str:
    try:
        said = str(inspect.signature(found))
    except (TypeError, ValueError):
        return "(...)"
    said = re.sub(r"(: |-> )'([^']+)'", r"\1\2", said.replace("self, ", "").replace("(self)", "()"))
    return re.sub(r"<[^<>]* at 0x[0-9a-f]+>", "...", said)


def _doc(found: Any) -> str:
    return (inspect.getdoc(found) or "").strip()


# ---- games

GAMES = f"""# Games

{WRITTEN}
What ships, with the parameters of each game's function: `gridmill.make("arena", num_worlds=64)`, or with another size
`gridmill.make(gridmill.games.arena(num_agents=12))`. How they are played is in [games](../games.md), what each means
for learning in `gridmill explain GAME`; `gridmill show arena --png arena.png` draws one.
"""
PICTURES = ("cogsguard", "extractor_hub", "navigation", "prospector", "toy")


def games_page() -> str:
    return GAMES + "".join(_game(name) for name in games.names())


def _game(name: str) -> str:
    maker, game = games.maker(name), games.build(name)
    with gridmill.make(game, num_worlds=1) as env:
        env.reset()
        world = env.inspect(0) if game.has_map else None  # type: ignore[attr-defined]
        rows = {
            "agents": str(env.num_agents),
            "map": "none" if world is None else f"{world['height']} x {world['width']} cells",
            "actions": ", ".join(f"`{action}`" for action in env.action_names[:16])
            + (f" and {env.num_actions - 16} more" if len(env.action_names) > 16 else "")
            or str(env.num_actions),
            "observation": f"{'x'.join(map(str, env.obs.shape[1:]))} {env.obs.dtype}",
            "longest episode": f"{max_steps} ticks" if (max_steps := _max_steps(game)) else "-",
            "score": game.score_title(),
            "scripts": ", ".join(f"`script:{script}`" for script in game.scripts()) or "none",
            "fingerprint": f"`{game.fingerprint()}`",
        }
    parameters = ", ".join(f"`{each.name}={each.default!r}`" for each in inspect.signature(maker).parameters.values())
    lines = [f"\n## {name}\n", _doc(maker), ""]
    if name in PICTURES:
        lines += [f"![{name}](../pictures/{name}.png)", ""]
    lines += ["| | |", "|---|---|", f"| parameters | {_cell(parameters or 'none')} |"]
    lines += [f"| {key} | {_cell(value)} |" for key, value in rows.items()]
    return "\n".join(lines) + "\n"


def _max_steps(game: Any) -> int:
    return int(getattr(game, "max_steps", 0))


# ---- text


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")


def _one_line(text: str) -> str:
    return " ".join(text.split())


PAGES = {
    "settings.md": settings_page,
    "commands.md": commands_page,
    "python.md": python_page,
    "games.md": games_page,
}

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page, made in PAGES.items():
        (FOLDER / page).write_text(made())
