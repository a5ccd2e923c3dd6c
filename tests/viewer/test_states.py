"""Saved states in the page: what is kept comes back to the byte, and they fit into the room they are given."""

from __future__ import annotations

import json
import subprocess

from engine_node import node

from gridmill.viewer import export

SCRIPT = """
const {States} = await import(process.argv[1] + "/states.js");
const {pack, unpackInto} = await import(process.argv[1] + "/runs.js");
let seed = 1;
const draw = (most) => (seed = Math.imul(seed, 1664525) + 1013904223 >>> 0) % most;
const same = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]);

/** Bytes with runs in them; of any size, also none that four divides. */
function bytesOf(size) {
  const out = new Uint8Array(size);
  for (let at = 0; at < size;) {
    const run = 1 + draw(60);
    const byte = draw(3) ? 0 : draw(256);
    for (let i = 0; i < run && at < size; i += 1) out[at++] = draw(4) ? byte : draw(256);
  }
  return out;
}
function changed(bytes, count) {
  const out = bytes.slice();
  for (let i = 0; i < count && out.length; i += 1) out[draw(out.length)] = draw(256);
  return out;
}

let packed = 0;
for (let i = 0; i < 400; i += 1) {
  const bytes = bytesOf(draw(3000));
  const later = changed(bytes, draw(40));
  const back = new Uint8Array(bytes.length).fill(7);
  unpackInto(back, pack(bytes));
  packed += same(back, bytes);
  unpackInto(back, pack(later, bytes), true);
  packed += same(back, later);
}

/** A world that has whatever state it is told. */
class World {
  saved(read) {
    return read(this.state);
  }
  restoreFrom(size, write) {
    this.state = new Uint8Array(size).fill(9);
    write(this.state);
  }
}
const truth = new Map();
const world = new World();
const states = new States(1_000_000);
let state = new Uint8Array(40_000).map(() => draw(256));
states.keepOther(35, new Uint8Array(40_000).fill(1));
for (let tick = 0; tick < 4000; tick += 1) {
  state = changed(state, tick % 500 === 0 ? 10_000 : 3);
  if (tick % 5 || tick - (states.before(tick)?.tick ?? -1) < states.gap) continue;
  world.state = state;
  truth.set(tick, state);
  states.keep(tick, world);
}
let right = 0;
let longest = 0;
let before = 0;
for (const frame of states.list) {
  states.restore(world, frame);
  right += same(world.state, truth.get(frame.tick));
  longest = Math.max(longest, frame.tick - before);
  before = frame.tick;
}
// Of a branch whose end is known: states of a growing world at nearly even distances, and the room is used.
const planned = new States(1_000_000);
const places = [];
for (let tick = 0; tick < 4000; tick += 1) {
  const wanted = Math.max(5, planned.gap, planned.spacing(4000 - tick));
  if (places.length && tick - places.at(-1) < wanted) continue;
  world.state = new Uint8Array(10_000 + 5 * tick).map(() => draw(256));
  planned.keep(tick, world);
  places.push(tick);
}
const gaps = places.map((tick, i) => tick - (places[i - 1] ?? 0));
const plan = {bytes: planned.bytes, thinned: planned.gap > 0, longest: Math.max(...gaps)};
planned.limit(200_000);
const small = {bytes: planned.bytes, first: planned.list[0].tick, kept: planned.list.length};
planned.limit(1);
console.log(JSON.stringify({
  plan, small, fewest: planned.list.length,
  packed, right, kept: states.list.length, bytes: states.bytes, longest, last: before, first: states.list[0].tick,
  own: states.list.every((frame) => frame.own), differences: states.list.filter((frame) => frame.base).length,
}));
"""


def test_what_is_kept_comes_back() -> None:
    done = subprocess.run(
        [node(), "--input-type=module", "-e", SCRIPT, str(export.PAGE)], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["packed"] == 800
    assert found["right"] == found["kept"] > 50
    assert found["own"]
    assert found["differences"] > found["kept"] / 2
    assert found["bytes"] <= 1_000_000
    assert (found["first"], found["last"] > 3900, found["longest"] <= 200) == (0, True, True)
    assert not found["plan"]["thinned"]
    assert 700_000 < found["plan"]["bytes"] <= 1_000_000
    assert found["plan"]["longest"] < 200
    assert found["small"]["bytes"] <= 200_000
    assert found["small"]["first"] == 0
    assert 1 <= found["fewest"] <= 8
