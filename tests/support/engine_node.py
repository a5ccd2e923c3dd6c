"""The engine's module in node: jobs go in as JSON, answers come back. tests/support/engine_node.mjs does them."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
from random_games import scripted_actions

import gridmill
from gridmill.env import GameConfig
from gridmill.viewer import engine

HERE = Path(__file__).parent
SCRIPT = engine.MODULE.parent / "engine.js"
LEAST_NODE = 20


def node() -> str:
    """The program, or a skipped test that says what is missing."""
    found = shutil.which("node")
    if found is None:
        pytest.skip(f"needs node ({LEAST_NODE} or later) to run the engine of pages")
    said = node_version(found)
    major = said.removeprefix("v").partition(".")[0]
    if not major.isdecimal() or int(major) < LEAST_NODE:
        pytest.skip(f"needs node ({LEAST_NODE} or later) to run the engine of pages, got {said or 'no version'}")
    return found


@functools.cache
def node_version(program: str) -> str:
    """What `node --version` says, or nothing if it cannot be run."""
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def ask(*jobs: dict[str, Any]) -> list[Any]:
    """The answers of some jobs, done in one process."""
    program = node()
    try:
        module = engine.path()
    except engine.EngineMissing as missing:
        pytest.skip(str(missing))
    request = json.dumps({"module": str(module), "script": str(SCRIPT), "jobs": jobs})
    done = subprocess.run([program, str(HERE / "engine_node.mjs")], input=request, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def opening(game: GameConfig, seed: int, **more: Any) -> dict[str, Any]:
    """What a world of the page is opened with."""
    name = f"{game.name} {game.fingerprint()}"
    return {"kind": game.kind, "tree": game.core_tree(), "seed": str(seed), "name": name, **more}


def played(game: GameConfig, seed: int, steps: int, every: int = 100) -> dict[str, Any]:
    """What the job `play` answers, by Python and the native core."""
    sha = hashlib.sha256()
    ends = []
    with gridmill.make(game, num_worlds=1, seed=seed, masks=True) as env:
        env.reset()

        def digest() -> None:
            for array in (env.obs, env.final_obs, env.masks, env.rewards, env.terminals, env.truncations):
                sha.update(array.tobytes())  # type: ignore[union-attr]

        digest()
        hashes = [state_hash(env)]
        for step in range(steps):
            env.step(scripted_actions(step, env.num_rows, env.num_actions))
            digest()
            if ended(env):
                ends.append([step, last_hash(env)])
            if (step + 1) % every == 0:
                hashes.append(state_hash(env))
        return {"hashes": hashes, "ends": ends, "last": last_hash(env), "seen": sha.hexdigest()}


def state_hash(env: Any) -> str:
    return f"{int(env.state_hash()[0]):016x}"


def ended(env: Any) -> bool:
    return bool(env.terminals[0] or env.truncations[0])


def last_hash(env: Any) -> str:
    """`last` of a replay, as docs/replays.md defines it."""
    if not ended(env):
        return state_hash(env)
    left = (env.rewards, env.terminals, env.truncations, env.final_obs)
    return f"{zlib.crc32(b''.join(array.tobytes() for array in left)):016x}"
