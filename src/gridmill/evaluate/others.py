"""What others get in the game of a run: random play, scripts, and the most that can be had; for its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gridmill.config.files import write_whole
from gridmill.evaluate import as_record, baselines, evaluate
from gridmill.run import Run


def baseline_record(run: Run, episodes: int, seed: int) -> dict[str, Any]:
    """What others get in the game of a run, and the most that can be had: baselines.json, for its report.

    Played on the worlds that an evaluation with the same seed plays.
    """
    game = run.played_game
    results = [evaluate(run, policy, episodes, seed) for policy in baselines(run)]
    parts = as_record(results, seed)["results"]
    ceilings = dict(game.ceilings())
    stat = run.score or game.score.stat
    if stat in ceilings and (run.score or game.score.per == "episode"):
        ceilings["score"] = ceilings[stat]
    return {
        "version": 1,
        "seed": seed,
        "episodes": episodes,
        "policies": {part["policy"]: {name: part[name] for name in ("score", "reward", "stats")} for part in parts},
        "ceilings": ceilings,
    }


def write_baselines(path: Path, run: Run, episodes: int, seed: int) -> None:
    """Make baselines.json. A game that cannot be held against anything has a file that says why."""
    try:
        found = baseline_record(run, episodes, seed)
    except (ValueError, TypeError, RuntimeError) as error:
        found = {"version": 1, "error": " ".join(str(error).split())}
    write_whole(path, json.dumps(found).encode())
