"""The heading: what log.txt begins with, so that nobody has to ask which recipe really runs.

The recipe and what differs from it, what oneDNN is kept from if anything, the game with its fingerprint, and from
`explain` what things cost, what is rewarded and when that first pays. Lines of at most 80 columns of ASCII. Called by
the trainer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from gridmill import onednn
from gridmill.batch import Env
from gridmill.config import flatten
from gridmill.explain import Explanation, Machine, Reward, explain
from gridmill.grid import Game
from gridmill.run import Run
from gridmill.scores import score_name

WIDTH = 80


def heading(run: Run, env: Env, base: Run | None = None) -> list[str]:
    """The lines; `base` is the recipe as it is written, before presets and overrides."""
    lines = _hang("recipe: ", f"{run.recipe}, seed {run.seed}{f', run {run.run}' if run.run else ''}")
    if base is not None:
        lines += _changes(run, base)
    found = onednn.settle()
    if found.state not in ("unconcerned", "works"):
        lines += _hang("onednn: ", found.text)
    name, game = f"{run.game.name} {run.game.fingerprint()}", run.game
    sizes = f"{env.num_worlds} worlds x {env.num_agents} agents, {env.num_actions} actions"
    if not isinstance(game, Game):
        lines += _hang("game: ", f"{name}, {sizes}")
        changed = game.diff(type(game)())
        lines += [f"  {path}: {mine} (usually {theirs})" for path, (mine, theirs) in changed.items()]
        return [*lines, f"score: {score_name(game, run.score)}"]
    said = explain(game)
    lines += _hang("game: ", f"{name}, {sizes}, episodes of {said.max_steps} ticks")
    lines += _costs(said, game) + _rewards(said)
    for warning in said.warnings:
        lines += _hang("warning: ", warning)
    return lines


def _changes(run: Run, base: Run) -> list[str]:
    now, recipe = flatten(_short(run.tree())), flatten(_short(base.tree()))
    paths = [path for path in {**now, **recipe} if path not in ("run", "seed")]
    changed = [path for path in paths if now.get(path) != recipe.get(path)]
    lines = ["changed:" if changed else "changed: nothing"]
    for path in changed:
        lines += _hang("  ", f"{path} = {_value(now, path)} (recipe: {_value(recipe, path)})", 4)
    return lines


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


def _costs(said: Explanation, game: Game) -> list[str]:
    """What is made of what: machines, then rules, then what acting costs."""
    lines = ["costs:"]
    for machine in said.machines:
        lines += _hang("  ", _machine(machine), 4)
    for name, rules in said.bumps.items():
        for rule in rules:
            lines += _hang("  ", f"{name}: {rule}", 4)
    acting = {"move": game.move_cost, "attack": game.attack.cost if game.attack is not None else {}}
    for act, cost in acting.items():
        if cost:
            lines += _hang("  ", f"{act}: {', '.join(f'{n} {r}' for r, n in cost.items())}", 4)
    return lines if len(lines) > 1 else ["costs: none"]


def _machine(machine: Machine) -> str:
    inputs = " + ".join(f"{n} {r}" for r, n in machine.inputs.items())
    outputs = " + ".join(f"{n} {r}" for r, n in machine.outputs.items())
    made = f"{inputs} -> {outputs}" if inputs else outputs
    there = f", {machine.waiting} there at the start" if machine.waiting else ""
    return f"{machine.name} ({machine.count} on the map): {made} in {machine.cooldown} ticks{there}"


def _rewards(said: Explanation) -> list[str]:
    if not said.rewards:
        return ["rewards: none"]
    rows: list[Sequence[str]] = [("rewards:", "first tick", "most per agent")]
    for reward in said.rewards:
        most = "not known" if reward.ceiling is None else f"{reward.ceiling:.1f}"
        rows.append((f"  {reward.text}", _first(reward), most))
    lines = []
    for words, first, most in rows:
        figures = f"{first:>12}{most:>16}"
        room = WIDTH - len(figures)
        shown = _ascii(words)
        if len(shown) > room:
            lines += textwrap.wrap(shown, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
            shown = ""
        lines.append(shown.ljust(room) + figures)
    return lines


def _first(reward: Reward) -> str:
    """The first tick it pays with one of each building, walking not counted."""
    if reward.one_paid is None:
        return "never" if reward.all_paid is None else "not alone"
    return {"exact": "", "at least": ">= ", "not known": "about "}[reward.certainty] + str(reward.one_paid)


def _hang(start: str, words: str, indent: int | None = None) -> list[str]:
    under = " " * (len(start) if indent is None else indent)
    return textwrap.wrap(_ascii(start + words), WIDTH, subsequent_indent=under, break_on_hyphens=False)


def _ascii(words: str) -> str:
    return words.encode("ascii", "backslashreplace").decode()
