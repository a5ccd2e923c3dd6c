"""The heading: what log.txt begins with, so that nobody has to ask which recipe really runs.

The recipe and what differs from it, the switches in force, what oneDNN is kept from if anything, the game with its
fingerprint, and what the game says of itself. Lines of at most 80 columns of ASCII.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridmill import games
from gridmill.config import flatten
from gridmill.config.text import hang
from gridmill.curriculum import Tasks, short_settings
from gridmill.curriculum.record import lines as curriculum_lines
from gridmill.env import switches
from gridmill.env.env import Env
from gridmill.policy import onednn
from gridmill.run import Run


def heading(run: Run, env: Env, base: Run | None = None, network: str = "") -> list[str]:
    """The lines; `base` is the recipe as it is written, before presets and overrides; `network` is the policy's."""
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


def _changes(run: Run, base: Run) -> list[str]:
    now, recipe = (flatten(_short(_tree(each))) for each in (run, base))
    paths = [path for path in {**now, **recipe} if path not in ("run", "seed")]
    changed = [path for path in paths if now.get(path) != recipe.get(path)]
    lines = ["changed:" if changed else "changed: nothing"]
    for path in changed:
        lines += hang("  ", f"{path} = {_value(now, path)} (recipe: {_value(recipe, path)})", 4)
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
    text = str(flat[path]) if path in flat else "not there"
    return text if len(text) <= 60 else text[:57] + "..."
