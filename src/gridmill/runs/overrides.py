"""Overrides: `trainer.num_worlds=32` and the like, read, checked and put into a run.

Values are read as people write them: `5_000`, `1e6`, `true`, plain text, JSON for lists and parts. Changes are made one
after the other and the run is validated once, so settings that need each other may come together. `game=NAME` replaces
the whole game before any part of it, and `losses.NAME.kind=FILE.py:Class` adds a loss before any part of it. A wrong
path is refused with the nearest right one.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from gridmill import games, losses
from gridmill.config import ConfigError, place
from gridmill.run import Run
from gridmill.runs import older_words

_WHOLE = re.compile(r"[+-]?\d+(_\d+)*", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_DIGITS = 40  # longer numbers are no setting; they stay text and are refused as such
_SWITCHES = {"true": True, "false": False, "none": None, "null": None}


class Written(str):
    """A value as it was typed; what it means depends on the setting: `run=1e6` is a name."""


def apply(run: Run, texts: Sequence[str]) -> Run:
    """The run with `key=value` texts applied; later ones win."""
    return change(run, [split(text) for text in texts])


def split(text: str) -> tuple[str, Written]:
    """`trainer.bptt_horizon=64` as path and value; `rewards[0]` may stand for `rewards.0`."""
    path, equals, value = text.partition("=")
    path = re.sub(r"\[(\d+)\]", r".\1", path.strip())
    if not equals or not path:
        raise ConfigError(f"expected key=value, got `{_short(text)}`")
    return path, Written(value.strip())


def without_seeds(texts: Sequence[str]) -> tuple[list[str], tuple[int, ...]]:
    """The texts without `seeds=1,2,3`, and those seeds: a run has one, so several are several runs."""
    rest = [text for text in texts if not text.startswith("seeds=")]
    listed = [text.removeprefix("seeds=") for text in texts if text.startswith("seeds=")]
    if not listed:
        return rest, ()
    words = [word.strip() for word in listed[-1].split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):
        raise ConfigError(f"expected whole numbers such as 1,2,3, got `{_short(listed[-1])}`", "$.seeds")
    seeds = tuple(map(int, words))
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"expected different numbers, got `{_short(listed[-1])}`", "$.seeds")
    if any(split(text)[0] == "seed" for text in rest):
        raise ConfigError("expected seed or seeds, got both", "$.seeds")
    return rest, seeds


def written(path: str, value: Any) -> str:
    """A setting as people would type it; `split` and `read` take it back."""
    return f"{path}={value if isinstance(value, str) else json.dumps(value)}"


def read(text: str, path: str) -> Any:
    """A typed value as a switch, a number, JSON or else the text itself."""
    if text.lower() in _SWITCHES:
        return _SWITCHES[text.lower()]
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"expected JSON, got `{_short(text)}` ({error})", f"$.{path}") from None
    if len(text) > _DIGITS or not _NUMBER.fullmatch(text):
        return text
    if _WHOLE.fullmatch(text):
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        return text
    return int(number) if number.is_integer() else number


def change(run: Run, changes: Iterable[tuple[str, Any]]) -> Run:
    """The run with these settings, typed or given as values; the game goes first, whatever the order."""
    pairs = [_meant(path, value) for path, value in changes]
    ours = [pair for pair in pairs if not older_words.has_another_form(pair[0])]
    if len(ours) < len(pairs):  # answered in numbers of the run that the others make
        run = change(run, ours)
        path, value = next(pair for pair in pairs if pair not in ours)
        older_words.answer(run, path, read(value, path) if isinstance(value, Written) else value)
    for path, value in pairs:
        if path == "game" and isinstance(value, str):
            run = run.model_copy(update={"game": games.build(value)})
    tree = run.tree()
    for path, value in pairs:
        part, name, setting = [*path.split("."), "", ""][:3]
        if part != "losses" or name in tree["losses"]:
            continue
        if setting == "kind" or (setting and name in losses.names()):  # a loss that ships is added by its name
            tree["losses"][name] = _loss(name, str(value) if setting == "kind" else name)
    for path, value in pairs:
        if path == "game" and isinstance(value, str):
            continue
        if isinstance(value, Written):
            value = str(value) if isinstance(value_at(tree, path), str) else read(value, path)
        try:
            place(run, tree, path, value)
        except ConfigError as error:
            raise _with_nearest(error, tree, path) from None
    return Run.load(tree)


def _loss(name: str, kind: str) -> dict[str, Any]:
    """The settings that a loss has if nobody changes them."""
    try:
        return losses.read({name: {"kind": kind}})[name].tree()  # type: ignore[no-any-return]
    except ConfigError as error:
        raise ConfigError(error.what, f"$.losses{error.path[1:]}") from None


def _meant(path: str, value: Any) -> tuple[str, Any]:
    """Two settings have a yes-or-no form, for those who do not care for the details; a game may be JSON.

    Other trainers' names are taken where they mean the same.
    """
    path = older_words.ours(path)
    known = read(value, path) if isinstance(value, Written) and path in _FORMS else value
    if path in ("mixed_precision", "trainer.mixed_precision") and isinstance(known, bool):
        return "trainer.precision", "bf16" if known else "fp32"
    if path == "trainer.compile" and isinstance(known, bool):
        return path, "default" if known else "off"
    if path == "policy" and not isinstance(value, dict) and not str(value).startswith("{"):
        return "policy.network", value
    if path == "game":
        return path, known if isinstance(known, dict) else str(value)
    return path, value


_FORMS = ("mixed_precision", "trainer.mixed_precision", "trainer.compile", "game")


def value_at(tree: Any, path: str) -> Any:
    """What stands at a path now; None where there is nothing."""
    for name in path.split("."):
        if isinstance(tree, dict):
            tree = tree.get(name)
        elif isinstance(tree, list) and name.isdigit() and len(name) < 10 and int(name) < len(tree):
            tree = tree[int(name)]
        else:
            return None
    return tree


def _with_nearest(error: ConfigError, tree: Any, path: str) -> ConfigError:
    """The error with the whole path of the setting that was meant: same last name, else the most alike."""
    if "is now" in error.what or len(path) > 1000:
        return error
    known = _paths(tree)
    parent, _, last = path.rpartition(".")
    same = [p for p in known if p.rpartition(".")[2] == last]
    if "did you mean" in error.what and not (same and not parent):
        return error
    names: dict[str, str] = {}
    for p in known:
        names.setdefault(p.rpartition(".")[2], p)
    alike = difflib.get_close_matches(path, known, 1, 0.6) or [
        names[name] for name in difflib.get_close_matches(last, list(names), 1, 0.6)
    ]
    near = min(same, key=lambda p: (p.startswith("game."), p.count("."))) if same else next(iter(alike), None)
    said = error.what.partition(";")[0]
    return ConfigError(f"{said}; did you mean `{near}`?" if near else said, error.path)


def _paths(tree: Any, start: str = "") -> list[str]:
    """Every path of a tree, parts and leaves."""
    found: list[str] = []
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        path = f"{start}.{key}" if start else str(key)
        found += [path, *_paths(tree[key], path)]
    return found


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
