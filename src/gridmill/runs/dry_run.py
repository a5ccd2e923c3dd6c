"""What `gridmill train --dry-run` prints: the settings as they will be, the batch arithmetic, the memory.

Lines of plain text; nothing is allocated but one world, to see its size. Settings that differ from the recipe's are
marked. Also the list of `gridmill recipes`.
"""

from __future__ import annotations

import textwrap
import warnings
from typing import Any

from gridmill import recipes, sizing
from gridmill.config import flatten
from gridmill.config.memory import mebibytes
from gridmill.config.text import count
from gridmill.curriculum import Tasks, short_settings
from gridmill.curriculum.record import lines
from gridmill.games.make import make
from gridmill.grid.env import TokenBudgetWarning
from gridmill.run import Run
from gridmill.sizing import Memory, Sizes

WIDTH = 79


def page(run: Run, plain: Run, preset: str) -> str:
    """The whole page; `plain` is the recipe before preset and overrides."""
    fits, need = sizing.plan(run)
    parts = [_heading(run, preset), _settings(run, plain), *_curriculum(run), _arithmetic(fits), _memory(need)]
    told = "\n\n".join(parts).splitlines()
    return "\n".join(line if len(line) <= WIDTH else line[: WIDTH - 3] + "..." for line in told)


def _heading(run: Run, preset: str) -> str:
    game = run.game
    agents = f"{game.num_agents} agent{'s' if game.num_agents != 1 else ''}"
    return "\n".join(
        [
            f"recipe   {run.recipe}, {run.fingerprint()}",
            f"preset   {preset}",
            f"game     {game.name}, {agents}, {game.fingerprint()}",
        ]
    )


def _settings(run: Run, plain: Run) -> str:
    changed = {path.split(".")[0] if path.startswith("game.") else path for path in run.diff(plain)}
    lines = []
    for path, value in _lines(run.tree()).items():
        mark = "*" if any(spot == path or spot.startswith(path + ".") for spot in changed) else " "
        lines.append(f"{mark} {path} = {value}")
    if "game" in changed:
        lines.insert(0, f"* game = {run.game.name}, differs from the recipe's ({plain.game.name})")
    return "\n".join(["settings (* differs from the recipe)", *lines])


def _lines(tree: dict[str, Any]) -> dict[str, str]:
    """Every setting on a line; a schedule counts as one setting."""

    def folded(spot: Any) -> Any:
        if not isinstance(spot, dict):
            return spot
        if {"start", "end", "shape"} <= set(spot):
            until = f" from {spot['begin']:g} to {spot['until']:g}" if spot["until"] or spot["begin"] else ""
            return f"{spot['start']:g} -> {spot['end']:g}, {spot['shape']} over {spot['over']}{until}"
        return {key: folded(value) for key, value in spot.items()}

    tree = tree | {"curriculum": short_settings(tree["curriculum"])}
    settings = {name: folded(part) for name, part in tree.items() if name not in ("game", "recipe")}
    return {path: "-" if value in ("", None) else _shown(value) for path, value in flatten(settings).items()}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:_}" if isinstance(value, int) else str(value)


def _curriculum(run: Run) -> list[str]:
    """What a curriculum's tasks are, if the run has one; values that cannot be played are refused here too."""
    if not run.curriculum.sets:
        return []
    tasks = Tasks(run.curriculum, run.game)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenBudgetWarning)  # said when the worlds are really made
        env = make(run.trained_games, num_worlds=1, masks=run.trainer.masks)
    with env:
        tasks.refuse_unfit(env)
    told = [part for line in lines(tasks) for part in textwrap.wrap(line, WIDTH - 6, subsequent_indent="      ")]
    return ["\n".join(["curriculum", *(f"  {line}" for line in told)])]


def _arithmetic(fits: Sizes) -> str:
    parts = f" in {fits.microbatches} microbatches" if fits.microbatches > 1 else ""
    who = "agents" if len(fits.learners) == fits.num_agents else f"of {fits.num_agents} agents"
    return "\n".join(
        [
            "arithmetic",
            f"  rows         {fits.num_worlds} worlds x {len(fits.learners)} {who} = {fits.rows:,}"
            f", {count(fits.lanes, 'lane')} of {fits.lane_rows:,}, {count(fits.threads, 'thread')}",
            f"  rollout      {fits.rows:,} rows x {fits.horizon:,} ticks = {fits.batch_size:,} agent-steps",
            f"  segments     {fits.segments:,} of {fits.bptt_horizon:,} ticks",
            f"  minibatches  {fits.minibatches:,} of {fits.minibatch_segments:,} segments = "
            f"{fits.minibatch_size:,} agent-steps{parts}",
            f"  updates      {fits.updates:,} per epoch, {fits.updates // fits.minibatches} for each minibatch",
            f"  epochs       {fits.epochs:,} = {fits.agent_steps:,} agent-steps",
        ]
    )


def _memory(need: Memory) -> str:
    together = None if need.policy is None else need.total
    parts = {"experience": need.experience, "policy": need.policy, "worlds": need.worlds, "together": together}
    parts |= {"on the GPU": need.on_gpu} if need.on_gpu else {}
    shown = {name: "needs torch" if size is None else mebibytes(size) for name, size in parts.items()}
    return "\n".join(["memory, about", *(f"  {name:<12} {text:>12}" for name, text in shown.items())])


def listing() -> str:
    """Every recipe that ships: its game, its size and what it is for."""
    wide = max(map(len, recipes.names())) + 1
    lines = [f"{'recipe':<{wide}}{'agents':>7}{'worlds':>8}{'batch':>10}{'steps':>14}"]
    for name in recipes.names():
        run = recipes.build(name)
        t = run.trainer
        lines.append(
            f"{name:<{wide}}{run.game.num_agents:>7}{t.num_worlds:>8,}{t.batch_size:>10,}{t.total_timesteps:>14,}"
        )
        said = (recipes.maker(name).__doc__ or "").strip().splitlines()[0]
        lines += textwrap.wrap(said, WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)
