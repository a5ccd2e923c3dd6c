"""The engine in Chromium plays every game as the native core does: hashes, and every byte of the arrays. A policy acts
there as the portable path does (long tier).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import chromium
import numpy as np
import pytest
import viewed
from engine_node import opening
from policy_cases import case, traces
from random_games import scripted_actions

import gridmill
from gridmill.env import GameConfig

pytestmark = pytest.mark.long
SEEDS = (0, 7, 2026, 2**53 + 1, 2**64 - 1)
TICKS = 1_000
ARRAYS = ("obs", "final_obs", "masks", "rewards", "terminals", "truncations")
# Actions as scripted_actions of tests/support/random_games.py draws them; `seen` is one CRC-32 of all that was shown.
PLAY = """async ([open, ticks]) => {
  const {crc32} = await import("./bytes.js");
  const world = gridmill.engine.open(open);
  const {numAgents, numActions} = world.info;
  const bytes = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  let seen = 0;
  const look = () => {
    for (const row of ["obs", "finalObs", "masks"]) {
      for (let agent = 0; agent < numAgents; agent += 1) seen = crc32(bytes(world[row](agent)), seen);
    }
    for (const name of ["rewards", "terminals", "truncations"]) seen = crc32(bytes(world[name]), seen);
  };
  const hashes = [world.hash()];
  look();
  for (let tick = 0; tick < ticks; tick += 1) {
    world.step(Int32Array.from({length: numAgents}, (_, row) => {
      const mixed = BigInt.asUintN(64, (BigInt(row) * 104729n + BigInt(tick * 7919 + 1)) * 0x9e3779b97f4a7c15n);
      return Number((mixed >> 33n) % BigInt(numActions));
    }));
    look();
    if ((tick + 1) % 100 === 0) hashes.push(world.hash());
  }
  world.close();
  return {hashes, seen};
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chromium.require(fail=True)
    with (
        chromium.browser() as running,
        viewed.served({"files": []}, {}, tmp_path_factory.mktemp("root")) as url,
        chromium.page_of(running, url) as (found, faults),
    ):
        yield found
        assert not faults


def native(game: GameConfig, seed: int) -> dict[str, Any]:
    with gridmill.make(game, num_worlds=1, seed=seed, masks=True) as env:
        env.reset()
        seen, hashes = 0, [f"{int(env.state_hash()[0]):016x}"]
        for tick in range(TICKS + 1):
            for name in ARRAYS:
                seen = zlib.crc32(np.ascontiguousarray(getattr(env, name)).tobytes(), seen)
            if tick == TICKS:
                return {"hashes": hashes, "seen": seen}
            env.step(scripted_actions(tick, env.num_rows, env.num_actions))
            if (tick + 1) % 100 == 0:
                hashes.append(f"{int(env.state_hash()[0]):016x}")
    raise AssertionError


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", gridmill.games.names())
def test_a_thousand_ticks_in_chromium_equal_the_native_ones(name: str, seed: int, page: Any) -> None:
    game = gridmill.games.build(name)
    assert page.evaluate(PLAY, [opening(game, seed), TICKS]) == native(game, seed)


# A policy of tests/support/policy_trace.py in the page: what all agents did.
ACT = """async ([open, head, weights, steps]) => {
  const world = gridmill.engine.open(open);
  const {buffer} = Uint8Array.from(atob(weights), (c) => c.charCodeAt(0));
  const tensors = {};
  let at = 0;
  for (const [name, shape] of head.tensors) {
    const size = shape.reduce((product, side) => product * side, 1);
    tensors[name] = {shape, data: new Float32Array(buffer, at, size)};
    at += 4 * size;
  }
  const policy = gridmill.engine.policy({...head, tensors});
  policy.begin(world);
  const done = [];
  for (let step = 0; step < steps; step += 1) {
    const row = Array.from({length: world.info.numAgents}, (_, agent) => policy.act(agent, {seed: open.seed, step}));
    done.push(row);
    world.step(Int32Array.from(row));
  }
  policy.close();
  world.close();
  return done;
}"""


def test_a_policy_acts_in_chromium_as_the_portable_path_does(page: Any) -> None:
    """Over an episode of the arena, to the bit."""
    given = case("arena", "bag", "scan", steps=TICKS, max_steps=TICKS, every=TICKS)
    [trace] = traces([given])
    opened = trace["game"] | {"seed": str(given["seed"])}
    actions = page.evaluate(ACT, [opened, trace["head"], trace["weights"], TICKS])
    assert actions == trace["actions"]
