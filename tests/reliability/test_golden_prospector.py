"""Prospector: golden episodes and the golden config, in tests/golden/prospector.json.

The game is fixed to the bit by its reference; a difference here means that both have changed. After an intended change:

    python tests/reliability/test_golden_prospector.py --write
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
from gridmill.prospector import ProspectorConfig
from gridmill.prospector.actions import ACTION_NAMES

pytestmark = pytest.mark.D4

GOLDEN = Path(__file__).parents[1] / "golden" / "prospector.json"
SEEDS = (0, 2026)
STEPS = 1_000
REGENERATE = "python tests/reliability/test_golden_prospector.py --write"


def trajectory_hash(seed: int) -> str:
    """Two worlds over many episodes, with masks, records and random states."""
    digest = Digest()
    with gridmill.make("prospector", num_worlds=2, seed=seed, masks=True) as env:
        env.reset()
        digest.add_arrays(env)
        for step in range(STEPS):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
            digest.add_arrays(env)
        digest.sha.update(env.rng_states.tobytes())
        digest.add_episodes(env)
        digest.sha.update(json.dumps([env.action_names, env.stat_names]).encode())
    return digest.hex()


def golden() -> dict[str, Any]:
    config = ProspectorConfig()
    return {
        "regenerate": REGENERATE,
        "episodes": {str(seed): trajectory_hash(seed) for seed in SEEDS},
        "fingerprint": config.fingerprint(),
        "config": config.tree(),
        "actions": list(ACTION_NAMES),
    }


def stored() -> dict[str, Any]:
    return json.loads(GOLDEN.read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", SEEDS)
def test_golden_prospector(seed: int) -> None:
    assert trajectory_hash(seed) == stored()["episodes"][str(seed)], f"if intended: {REGENERATE}"


def test_golden_prospector_config() -> None:
    assert ProspectorConfig().diff(ProspectorConfig.load(stored()["config"])) == {}, f"if intended: {REGENERATE}"
    assert ProspectorConfig().fingerprint() == stored()["fingerprint"]
    assert list(ACTION_NAMES) == stored()["actions"]  # for the native tests, whose core has no names for them


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(f"usage: {REGENERATE}")
    GOLDEN.write_text(json.dumps(golden(), indent=2) + "\n")
    print(f"wrote {GOLDEN.name}")
