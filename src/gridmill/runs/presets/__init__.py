"""Presets: settings for a machine or a purpose, as TOML that is merged over a recipe; overrides win over it.

A file has the tables of `Run`. What stands under `with_gpu` counts only where there is one; losses in `without_losses`
get the weight 0 if the recipe has them. Sizes that do not fit the recipe's agents are rounded to what does. Without a
preset the one for this machine, `gpu` or `laptop`, fills in what the recipe left at its defaults.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gridmill import sizing
from gridmill.config import ConfigError, did_you_mean, flatten, user_code
from gridmill.config.text import clipped
from gridmill.policy import device
from gridmill.run import Run
from gridmill.runs import overrides

_FOLDER = Path(__file__).parent
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LARGEST = 1_000_000  # bytes; a file larger than this is not settings


def names() -> list[str]:
    """Names of the presets that ship."""
    return sorted(file.stem for file in _FOLDER.glob("*.toml"))


def has_gpu() -> bool:
    """True where there is a GPU that a run could use."""
    return device.count() > 0


def detected() -> str:
    """The preset for this machine."""
    return "gpu" if has_gpu() else "laptop"


def fill(run: Run) -> Run:
    """The run with the preset for this machine where it has the defaults: what a recipe chose stays."""
    mine = flatten(run.tree())
    usual = flatten(Run(recipe=run.recipe, game=run.game, policy=run.policy).tree())
    wanted = _changes(load(detected()), run.tree())
    return overrides.change(run, [(path, value) for path, value in wanted if mine.get(path) == usual.get(path)])


def apply(run: Run, preset: str) -> Run:
    """The run with a preset, by name or `path/to/file.toml`, merged over it and rounded to what fits."""
    return fitted(merged(run, preset))[0]


def fitted(run: Run) -> tuple[Run, list[str]]:
    """The run with sizes that fit its number of agents, as near as can be, and what was rounded."""
    learners = sizing.players_of_agents(run, run.game.num_agents).count("")
    try:
        sizing.sizes(run)
    except ConfigError:
        fit = sizing.fitting(run, learners)
        now = flatten(run.tree())
        notes = [f"{path} = {value:_}, not {now[path]:_}" for path, value in fit.items()]
        return overrides.change(run, fit.items()), notes
    return run, []


def merged(run: Run, preset: str) -> Run:
    """The run with a preset as it is written."""
    settings = load(preset)
    user_code.take(user_code.named_in(run.tree()))  # whoever made the run named it; the preset is only a file
    try:
        for name in _left_out(settings.pop("without_losses", [])):
            if name in run.losses:
                run = run.replace(f"losses.{name}.weight", 0.0)
        with_gpu = _changes(settings.pop("with_gpu", {}), run.tree())
        with user_code.from_a_file(None, Path(preset)):
            return overrides.change(run, _changes(settings, run.tree()) + (with_gpu if has_gpu() else []))
    except user_code.CodeNeeded as error:
        raise ValueError(f"preset {preset}: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"preset {preset}: {error.what}", error.path) from None


def _left_out(names: Any) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"expected a list of names of losses, got {names!r}", "$.without_losses")
    return names


def written(run: Run, plain: Run) -> tuple[str, list[str]]:
    """A preset that makes this run of the plain one, and overrides for what a file cannot say: null, and code."""
    lines: list[str] = []
    _write(run.tree(), plain.tree(), "", lines)
    text = "".join(f"{line}\n" for line in lines)
    left: list[str] = []
    try:
        there = overrides.change(plain, _changes(tomllib.loads(text), plain.tree()))
        then = flatten(there.tree())
        for path, value in flatten(run.tree()).items():
            if path not in then or then[path] != value:
                left.append(overrides.written(path, value))
        same = overrides.apply(there, left) == run
    except ConfigError:  # another game, say: its parts are not parts of this one
        same = False
    if not same:
        raise ConfigError(f"a preset cannot make this run of `{plain.recipe}`; write your own recipe", "$")
    return text, left


def _write(now: Mapping[str, Any], then: Mapping[str, Any], start: str, lines: list[str]) -> None:
    """What differs, each as a line with its whole path."""
    for name, value in now.items():
        path = f"{start}.{_key(name)}" if start else _key(name)
        before = then.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            _write(value, before, path, lines)
        elif value is not None and (name not in then or value != before) and not _names_code(path, value):
            lines.append(f"{path} = {_toml(value)}")


def _names_code(path: str, value: Any) -> bool:
    tree = value
    for name in reversed(path.split(".")):
        tree = {name: tree}
    return bool(user_code.named_in(tree))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _toml(value: Any) -> str:
    """A value of JSON as TOML has it: numbers, texts and switches are the same."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(name)} = {_toml(one)}' for name, one in value.items() if one is not None)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def load(preset: str) -> dict[str, Any]:
    """What the file says."""
    file = Path(preset) if preset.endswith(".toml") else _FOLDER / f"{preset}.toml"
    if not preset.endswith(".toml") and preset not in names():
        known = ", ".join(names())
        raise ValueError(
            f"unknown preset `{clipped(preset)}`{did_you_mean(preset, names())} - presets: {known}, or FILE.toml"
        )
    if not file.is_file():
        raise ValueError(f"no preset file `{preset}`")
    if file.stat().st_size > _LARGEST:
        raise ValueError(f"preset {preset}: expected at most {_LARGEST} bytes, got {file.stat().st_size}")
    return parsed(file.read_bytes(), preset)


def parsed(data: bytes, preset: str) -> dict[str, Any]:
    """What the bytes of a preset's file say."""
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise ValueError(f"preset {preset}: expected TOML, got {error}") from None


def _changes(settings: Any, tree: Any, start: str = "") -> list[tuple[str, Any]]:
    """Settings as paths: a table goes into the part of the same name, anything else replaces what is there."""
    if not isinstance(settings, dict):
        raise ConfigError(f"expected a table of settings, got {settings!r}", "$.with_gpu")
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        path = f"{start}.{name}" if start else name
        part = tree.get(name)
        found += _changes(value, part, path) if isinstance(value, dict) and isinstance(part, dict) else [(path, value)]
    return found
