"""The heading: what log.txt begins with, so that nobody has to ask which recipe really runs.

The recipe and what differs from it, by the preset or by somebody's changes, the switches in force, what oneDNN is kept
from if anything, the game with its fingerprint, and what the game says of itself. Lines of at most 80 columns of ASCII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gridmill import games
from gridmill.config import flatten
from gridmill.config.text import hang
from gridmill.curriculum import Tasks, short_settings
from gridmill.curriculum.record import lines as curriculum_lines
from gridmill.env import switches
from gridmill.env.env import Env
from gridmill.policy import onednn
from gridmill.run import Run


class Origin(NamedTuple):
    """Where a run comes from: a recipe as it is written, and the preset that was merged over it before anybody's own
    changes.
    """

    recipe: Run
    preset: str
    merged: Run


def heading(run: Run, env: Env, base: Run | Origin | None = None, network: str = "") -> list[str]:
    """The lines; `base` is the recipe as it is written, with its preset if that is known; `network` is the policy's."""
    lines = hang("recipe: ", f"{run.recipe}, seed {run.seed}{f', run {run.run}' if run.run else ''}")
    if base is not None:
        lines += _changes(run, base)
    if found := switches.in_force():
        lines += hang("switches: ", ", ".join(f"{name}={value}" for name, value in found.items()))
    for note in switches.notes():
        lines += hang("switches: ", note)
    dnn = onednn.settle()
    if dnn.state not in ("unconcerned", "works"):
        lines += hang("onednn: ", dnn.text)
    game = run.game
    sizes = f"{run.trainer.num_worlds} worlds x {env.num_agents} agents, {env.num_actions} actions"
    lines += hang("game: ", f"{game.name} {game.fingerprint()}, {sizes}")
    shipped = game.name in games.names() and games.build(game.name) == game  # its warnings are known: see `explain`
    lines += game.brief(env, warnings=not shipped)
    if run.trainer.masks and (missed := game.unforeseen()):
        lines += hang("masks: ", f"{missed} not predicted: an action that they allow may fail", 2)
    if network:
        lines += hang("network: ", network)
    if run.trainer.signal:
        lines += hang("training signal: ", ", ".join(term.text() for term in run.trainer.signal))
    lines.append(f"score: {game.score_title(run.score)}")
    for line in curriculum_lines(Tasks(run.curriculum, game)):
        lines += hang("curriculum: ", line)
    return lines


def _changes(run: Run, base: Run | Origin) -> list[str]:
    """What differs from the recipe: that of the preset, and what somebody changed, apart where both are known."""
    recipe = base.recipe if isinstance(base, Origin) else base
    merged = base.merged if isinstance(base, Origin) else recipe
    now, then, written = (flatten(_short(_tree(each))) for each in (run, merged, recipe))
    own = _differing(now, then)
    lines = []
    if isinstance(base, Origin) and (by_preset := [path for path in _differing(then, written) if path not in own]):
        lines += [f"preset {base.preset}:", *_listed(by_preset, now, written, "otherwise")]
    word = "changed" if isinstance(base, Origin) else "differs from the recipe"
    return [*lines, f"{word}:" if own else f"{word}: nothing", *_listed(own, now, written)]


def _differing(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    paths = [path for path in {**now, **then} if path not in ("run", "seed")]
    return [path for path in paths if now.get(path) != then.get(path)]


def _listed(paths: Sequence[str], now: Mapping[str, Any], then: Mapping[str, Any], whose: str = "recipe") -> list[str]:
    lines = []
    for path in paths:
        lines += hang("  ", f"{path} = {_value(now, path)} ({whose}: {_value(then, path)})", 4)
    return lines


def _tree(run: Run) -> dict[str, Any]:
    tree = run.tree()
    return tree | {"curriculum": short_settings(tree["curriculum"])}


def _short(tree: Any) -> Any:
    """The tree with each schedule as a few words instead of seven settings."""
    if isinstance(tree, dict) and {"start", "end", "shape", "over"} <= tree.keys():
        span = f" from {tree['begin']:g} to {tree['until']:g}" if tree["until"] else ""
        return f"{tree['start']:g} -> {tree['end']:g} ({tree['shape']} over {tree['over']}{span})"
    if isinstance(tree, dict):
        return {key: _short(value) for key, value in tree.items()}
    return [_short(value) for value in tree] if isinstance(tree, list) else tree


def _value(flat: Mapping[str, Any], path: str) -> str:
    text = str(flat.get(path, "")) or "none"
    return text if len(text) <= 60 else text[:57] + "..."
