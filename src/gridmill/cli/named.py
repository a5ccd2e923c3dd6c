"""What a word on the command line means: a run by its folder or its name, a game, or the game of a run."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridmill.env import GameConfig
    from gridmill.run import Run

RUNS = Path("runs")


def run_folder(text: str, runs_dir: Path = RUNS) -> Path | None:
    """The folder of a run or checkpoint: as it is typed, or the run of that name; None if there is none."""
    for folder in (Path(text), runs_dir / text):
        if (folder / "run.json").is_file() or (folder / "checkpoints").is_dir():
            return folder
    return None


def run_names(runs_dir: Path = RUNS) -> list[str]:
    """What a misspelled run may have meant."""
    return [path.name for path in runs_dir.iterdir() if path.is_dir()] if runs_dir.is_dir() else []


def has_policy(folder: Path) -> bool:
    """Whether a folder of a run or checkpoint has weights to play with."""
    from gridmill.runs.place import has_checkpoint

    return (folder / "policy.safetensors").is_file() or has_checkpoint(folder)


def expect_run(text: str, runs_dir: Path = RUNS) -> Path:
    """The same, or an error with the names that are nearest."""
    from gridmill.config import did_you_mean
    from gridmill.config.install import command

    found = run_folder(text, runs_dir)
    if found is None:
        hint = did_you_mean(text, run_names(runs_dir)) or f"; `{command('runs')}` lists the existing runs"
        raise ValueError(f"expected a run's name, or the folder of a run or checkpoint, got `{text}`{hint}")
    return found


def split(text: str) -> tuple[str, str]:
    """What is typed of a run, and which of its policies is meant: `@best`, `@12`, `#HASH` or nothing."""
    name = re.split("[@#]", text, maxsplit=1)[0]
    return name, text[len(name) :]


def policy_name(text: str) -> str:
    """A policy as it is typed; the name of a run, with or without @best or #HASH, becomes its folder."""
    from gridmill.config import did_you_mean, user_code
    from gridmill.evaluate import is_trained

    name, which = split(text)
    if not is_trained(text) or Path(name).exists():
        return text
    folder = run_folder(name)
    if folder is None and not user_code.is_own(text) and (hint := did_you_mean(name, [*run_names(), "random"])):
        raise ValueError(f"policy: expected a run's name, random, script:NAME or FILE.py:function, got `{text}`{hint}")
    return text if folder is None else f"{folder}{which}"


def folder_of(text: str) -> Path | None:
    """The folder of a run where a game is taken too, also of `RUN@best`; the name of a game is that game."""
    return _run_and_policy(text)[0]


def own_policy(text: str) -> str | None:
    """The policy of a run where a game is taken too, `runs/x` or `runs/x@best`; None if there are no weights."""
    folder, which = _run_and_policy(text)
    return f"{folder}{which}" if folder is not None and (which or has_policy(folder)) else None


def _run_and_policy(text: str) -> tuple[Path | None, str]:
    from gridmill import games
    from gridmill.policy import pin, which

    if text in games.names():
        return None, ""
    name, policy = split(text)
    whole = run_folder(text)
    if whole is not None or not policy:  # a folder may have these signs in its name
        return whole, ""
    folder = run_folder(name)
    if folder is not None:
        which.split(pin.split(f"{folder}{policy}")[0])  # a word that names no checkpoint is refused
    return folder, policy


def run_of(text: str) -> Run | None:
    """The settings of a run, by its folder or name; None if it is no run."""
    from gridmill.evaluate import run_of as read

    folder = folder_of(text)
    return None if folder is None else read(folder)


def run_tree(text: str) -> dict[str, Any] | None:
    """The settings of a run as plain data without its name, so that no code of the user's own is loaded."""
    from gridmill.evaluate import run_of as read
    from gridmill.evaluate import settings_of

    folder = folder_of(text)
    if folder is None:
        return None
    read(folder)  # refuses a record that cannot be read
    return {name: value for name, value in settings_of(folder).items() if name != "run"}


def played(text: str) -> Any:
    """A run with its game and score, or a game."""
    return run_of(text) or built(text)


def game_of(text: str) -> GameConfig:
    """A game by name or file, or the one that a run is evaluated in."""
    run = run_of(text)
    return built(text) if run is None else run.played_game


def built(text: str) -> GameConfig:
    """A game by name or file, where a run or a replay is taken too: an error says what else could be meant."""
    from gridmill import games, recipes
    from gridmill.config import did_you_mean, user_code
    from gridmill.config.files import kind_of
    from gridmill.config.install import command
    from gridmill.config.text import clipped
    from gridmill.replay import SUFFIX

    if user_code.is_own(text) or text in games.names():
        return games.build(text)
    if os.path.lexists(text):
        got = kind_of(Path(text))
        raise ValueError(f"expected a game, a replay or the folder of a run, got {got}: `{clipped(text, 400)}`")
    if text.endswith(SUFFIX) or "/" in text:
        raise ValueError(f"no file or folder `{clipped(text, 400)}`")
    if text in recipes.names():
        raise ValueError(f"`{text}` is a recipe, not a game: it trains `{recipes.build(text).game.name}`")
    listed = f"games: {', '.join(games.names())}; `{command('runs')}` lists the runs"
    hint = did_you_mean(text, [*games.names(), *run_names()])
    raise ValueError(f"unknown game or run `{clipped(text)}`{hint} - {listed}")
