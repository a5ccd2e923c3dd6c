"""What a run's log says about its game at the top: what things cost, what is rewarded and when at the earliest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gridmill.config.text import WIDTH, ascii_only, hang
from gridmill.grid.analysis.explain_page import machine_text
from gridmill.grid.analysis.explain_record import Explanation, Reward, explain

if TYPE_CHECKING:
    from gridmill.grid.env import GridEnv
    from gridmill.grid.game import Game


def brief(game: Game, env: GridEnv, warnings: bool = True) -> list[str]:
    """Lines of at most 80 columns of ASCII about the game that an env plays."""
    said = explain(game, env=env)
    lines = [f"episodes of {said.max_steps} ticks", *_costs(said, game), *_rewards(said)]
    for warning in said.warnings if warnings else ():
        lines += hang("warning: ", warning)
    return lines


def _costs(said: Explanation, game: Game) -> list[str]:
    """What is made of what: machines, then rules, then what acting costs."""
    lines = ["costs:"]
    for machine in said.machines:
        lines += hang("  ", machine_text(machine), 4)
    for name, rules in said.bumps.items():
        for rule in rules:
            lines += hang("  ", f"{name}: {rule}", 4)
    acting = {"move": game.move_cost, "attack": game.attack.cost if game.attack is not None else {}}
    for act, cost in acting.items():
        if cost:
            lines += hang("  ", f"{act}: {', '.join(f'{n} {r}' for r, n in cost.items())}", 4)
    return lines if len(lines) > 1 else ["costs: none"]


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
        shown = ascii_only(words)
        if len(shown) > room:
            lines += hang("", shown, 4)
            shown = ""
        lines.append(shown.ljust(room) + figures)
    return lines


def _first(reward: Reward) -> str:
    """The first tick it pays with one of each building, walking not counted."""
    if reward.one_paid is None:
        return "never" if reward.all_paid is None else "not alone"
    return {"exact": "", "at least": ">= ", "not known": "about "}[reward.certainty] + str(reward.one_paid)
