"""What a page begins with: replays of a file or a run, or a game that nobody has played yet."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from gridmill.config.files import kind_of
from gridmill.env import GameConfig
from gridmill.games.make import make
from gridmill.replay.writer import commit

MOST_SEED = 2**64 - 1


def new_game(game: GameConfig, seed: int, agent: int | None, others: str) -> dict[str, Any]:
    """A game from tick 0: a person plays `agent` (nobody: None), the others are played by `others`."""
    if not 0 <= seed <= MOST_SEED:
        raise ValueError(f"--seed must be 0 to 2**64 - 1, got {seed}")
    if agent is not None and not 0 <= agent < game.num_agents:
        raise ValueError(f"--agent must be 0 to {game.num_agents - 1} in {game.name}, got {agent}")
    with make(game, num_worlds=1, seed=seed) as env:
        names = list(env.action_names) or [str(number) for number in range(env.num_actions)]
        agents = env.num_agents
    head = {
        "format": 2,
        "gridmill": version("gridmill"),
        "commit": commit(),
        "kind": game.kind,
        "game": game.tree(),
        "core": game.core_tree(),
        "fingerprint": game.fingerprint(),
        "saved_name": game.saved_name(),
        "seed": str(seed),
        "agents": agents,
        "action_names": names,
        "action_bytes": 1 if len(names) < 256 else 2,
        "names": {"game": game.name},
        "policy": None,
    }
    return {"files": [], "game": head, "play": {"agent": agent, "others": others_of(game, others)}}


def others_of(game: GameConfig, wanted: str) -> str:
    """Who plays the agents that no person plays: as asked for, or the game's first script, or nobody."""
    scripts = list(game.scripts())
    if not wanted:
        return f"script:{scripts[0]}" if scripts else "noop"
    if wanted in ("random", "noop"):
        return wanted
    name = wanted.removeprefix("script:")
    game.expect_script(name, "--others")
    return f"script:{name}"


def replays_of(folder: Path) -> list[Path]:
    """The replays of a run, the newest first; of several, those called best before others of the same age."""
    found = [path for path in folder.rglob("*.replay") if kind_of(path) == "a plain file"]
    return sorted(found, key=lambda path: (-path.lstat().st_mtime, "best" not in path.name, path.name))
