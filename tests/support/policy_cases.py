"""Cases for tests/support/policy_trace.py: a game and a network with drawn weights, and what it does in Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TRACE = Path(__file__).with_name("policy_trace.py")
OWN = {"bag", "mlp", "none", "scan", "lstm"}  # parts that are kernels of ours; others are torch's in Python
STEPS, EVERY = 24, 6


def case(game: str, encoder: str, core: str, **more: Any) -> dict[str, Any]:
    given = {"game": game, "seed": 4, "steps": STEPS, "every": EVERY, "masks": True, "greedy": False, "max_steps": 15}
    config = {"encoder": encoder, "core": core, "hidden": 32, "actor_gain": 1.0, "latents": 3, "heads": 2}
    given |= {"config": config, "exact": {encoder, core} <= OWN} | more
    if game == "prospector":
        del given["max_steps"]
    return given


def traces(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What Python says with the portable kernels."""
    environment = os.environ | {"GRIDMILL_ISA": "portable"}
    done = subprocess.run(
        [sys.executable, str(TRACE)], input=json.dumps(cases), capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]
