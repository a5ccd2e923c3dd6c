"""Golden episodes and golden configs, one file per game in tests/golden/.

A difference means that a seed no longer gives the episode it gave before, or that a game is no longer the game it
was: intended or not, that is a line in the CHANGELOG. After an intended change, write the files again with

    python tests/reliability/test_golden_episodes.py --write

Hashes are over what agents see and what episodes leave behind, not over the engine's memory, and the actions come
from arithmetic, so neither a new layout nor a new library changes them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from random_games import Digest, scripted_actions

import gridmill

pytestmark = pytest.mark.D4

GOLDEN = Path(__file__).parents[1] / "golden"
SEEDS = (0, 2026)
REGENERATE = "python tests/reliability/test_golden_episodes.py --write"


def episode_hash(name: str, seed: int) -> str:
    """One whole episode of two worlds and the first tick of the next."""
    game = gridmill.games.build(name)
    digest = Digest()
    with gridmill.make(game, num_worlds=2, seed=seed, masks=True) as env:
        env.reset()
        digest.add_arrays(env)
        for step in range(game.max_steps + 1):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
            digest.add_arrays(env)
        digest.add_episodes(env)
        digest.sha.update(json.dumps([env.action_names, env.tags, env.features, env.stat_names]).encode())
    return digest.hex()


def golden_of(name: str) -> dict[str, Any]:
    game = gridmill.games.build(name)
    return {
        "regenerate": REGENERATE,
        "episodes": {str(seed): episode_hash(name, seed) for seed in SEEDS},
        "fingerprint": game.fingerprint(),
        "config": game.core_tree(),
    }


def stored(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / f"{name}.json").read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", gridmill.games.names("grid"))
def test_golden_episode(name: str, seed: int) -> None:
    assert episode_hash(name, seed) == stored(name)["episodes"][str(seed)], f"if intended: {REGENERATE}"


@pytest.mark.parametrize("name", gridmill.games.names("grid"))
def test_golden_config(name: str) -> None:
    game = gridmill.games.build(name)
    assert game.core_tree() == stored(name)["config"], f"if intended: {REGENERATE}"
    assert game.fingerprint() == stored(name)["fingerprint"]


def test_every_golden_file_belongs_to_a_game() -> None:
    """Prospector has a test of its own; a smaller kind of game has its hash there."""
    assert sorted(path.stem for path in GOLDEN.glob("*.json")) == sorted([*gridmill.games.names("grid"), "prospector"])


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(f"usage: {REGENERATE}")
    for game_name in gridmill.games.names("grid"):
        (GOLDEN / f"{game_name}.json").write_text(json.dumps(golden_of(game_name), indent=2) + "\n")
        print(f"wrote {game_name}.json")
