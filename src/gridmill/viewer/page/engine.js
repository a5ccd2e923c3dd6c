// The engine in a page: gridmill's native core, compiled to WebAssembly (native/wasm/), behind plain objects.
//
//   const engine = await loadEngine(bytes);                    // bytes of engine.wasm
//   const world = engine.open({kind, tree, seed: "7"});        // tree: GameConfig.core_tree(), as an object or JSON text
//   world.step(new Int32Array(world.info.numAgents));
//   world.hash();                                              // as Python's f"{int(env.state_hash()[0]):016x}"
//
// The same code runs in browsers and in node from 20 on, and needs nothing. Everything that is refused is an EngineError
// whose message is one line. Arrays are copies: what a caller holds does not change behind its back.

import { Host, NOT_SUPPORTED } from "./wasi.js";

export class EngineError extends Error {
  constructor(message) {
    super(message);
    this.name = "EngineError";
  }
}

const ARRAYS = ["obs", "finalObs", "actions", "rewards", "terminals", "truncations", "masks"];  // enum Array in world.hpp
const MOST_BYTES = 1 << 30;  // of one argument: more is no game and no saved state

export async function loadEngine(bytes) {
  let module;
  try {
    module = await WebAssembly.compile(bytes);
  } catch (reason) {
    throw new EngineError(`expected the bytes of engine.wasm, got others: ${oneLine(reason)}`);
  }
  const host = new Host();
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    (imports[from] ??= {})[name] = host[name] ? host[name].bind(host) : () => NOT_SUPPORTED;
  }
  let instance;
  try {
    instance = await WebAssembly.instantiate(module, imports);
    host.memory = instance.exports.memory;
    instance.exports._initialize?.();
  } catch (reason) {
    throw new EngineError(`expected an engine that starts, got one that does not: ${oneLine(reason)}`);
  }
  if (!instance.exports.gridmill_open) throw new EngineError("expected the bytes of engine.wasm, got another module");
  return new Engine(new Calls(instance.exports));
}

class Engine {
  constructor(calls) {
    this._calls = calls;
    calls.number("version");
    this.version = calls.text();  // of the package, and the commit the module was built from
  }

  // One world at tick 0 of its first episode. `name` is what saved states call the game ("NAME FINGERPRINT", as Env.save
  // writes it): needed to restore a state that was saved elsewhere.
  open({ kind, tree, seed = "0", masks = true, name = "" }) {
    const how = JSON.stringify({ kind: String(kind), name: String(name), seed: String(seed), masks: Boolean(masks) });
    const text = typeof tree === "string" ? tree : JSON.stringify(tree ?? null);
    const number = this._calls.with([how, text], (...given) => this._calls.number("open", ...given));
    return new World(this._calls, number, String(seed));
  }

  // A trained policy: config and spec as a checkpoint or a replay has them, tensors by name ({shape, data: Float32Array}),
  // masks as it was trained.
  policy({ config, spec, tensors, masks = true }) {
    const list = Object.entries(tensors ?? {});
    const count = list.reduce((sum, [, { data }]) => sum + data.length, 0);
    const numbers = new Float32Array(count);
    let at = 0;
    for (const [, { data }] of list) {
      numbers.set(data, at);
      at += data.length;
    }
    const shapes = list.map(([name, { shape }]) => [name, Array.from(shape)]);
    const head = JSON.stringify({ config, spec, masks: Boolean(masks), tensors: shapes });
    const given = [head, new Uint8Array(numbers.buffer)];
    return new Policy(this._calls, this._calls.with(given, (...args) => this._calls.number("policy", ...args)));
  }
}

// Whoever asks it decides when: an agent's memory holds the moments in which it was asked since begin(), a new episode, a
// reset or a restored state. In one moment it answers the same however often it is asked.
class Policy {
  constructor(calls, number) {
    this._calls = calls;
    this._number = number;
    this._world = null;
  }

  begin(world) {
    this._calls.number("policy_begin", this._live(), world._live());
    this._world = world;
  }
  // {logits, probs, value} for the actions of the world; probs are 0 where masks forbid.
  think(agent) {
    const world = this._playing();
    this._calls.number("policy_think", this._live(), world._live(), world._agent(agent));
    const found = new Float32Array(this._calls.bytes().buffer);
    const { numActions } = world.info;
    return {
      logits: found.slice(0, numActions), probs: found.slice(numActions, 2 * numActions), value: found[2 * numActions],
    };
  }
  // An action: the best, or one drawn from (seed, step, agent) as Player.choose draws it.
  act(agent, { greedy = false, temperature = 1, seed = "0", step = 0 } = {}) {
    const world = this._playing();
    const who = [this._live(), world._live(), world._agent(agent)];
    return this._calls.number("policy_act", ...who, greedy ? 1 : 0, temperature, big("seed", seed), big("step", step));
  }
  close() {
    this._number = this._calls.close("policy_close", this._number);
  }

  _live() {
    if (!this._number) throw new EngineError("this policy is closed");
    return this._number;
  }
  _playing() {
    if (!this._world) throw new EngineError("begin(world) comes before the first question");
    return this._world;
  }
}

function big(name, value) {
  try {
    return BigInt.asUintN(64, BigInt(value));
  } catch {
    throw new EngineError(`${name}: expected an integer, got ${String(value).slice(0, 40)}`);
  }
}

class World {
  constructor(calls, number, seed) {
    this._calls = calls;
    this._number = number;
    this._arrays = {};
    this.seed = seed;
    this._ask("info");
    this.info = calls.json();
    this._rowSize = this.info.obsShape.reduce((product, side) => product * side, 1);
    ARRAYS.forEach((array, which) => {
      const at = calls.pointer("array", number, which);
      this._arrays[array] = { at, size: calls.uint32s()[0] };
    });
    this._names = nameTables(this.info);
    this._ask("script_names");
    this.scripts = calls.json();  // names of the native scripts that can play this game
    this._readClock();
  }

  // ---- time

  reset() {
    this._ask("reset");
    this._readClock();
  }

  // One tick. A world whose episode ended is reset at once: `ended` is true, `rewards`, `terminals`, `truncations` and
  // `finalObs` are of the step that ended it, and everything else shows the next episode. After holdEnded() it stays as
  // that step left it, to be looked at, until it is reset or restored.
  step(actions) {
    this._live();
    const { numAgents } = this.info;
    if (actions?.length !== numAgents) {
      throw new EngineError(`actions: expected ${numAgents} numbers, got ${actions?.length ?? "none"}`);
    }
    const { at } = this._arrays.actions;
    new Int32Array(this._calls.memory, at, numAgents).set(actions);
    this._ask("step");
    this._readClock();
  }

  holdEnded() {
    this._ask("hold_ended");
  }

  _readClock() {
    this._ask("clock");
    const [tick, episode, maxSteps, ended] = this._calls.uint32s();
    this.tick = tick;  // of this episode
    this.episode = episode;
    this.maxSteps = maxSteps;  // of this episode; 0: no limit
    this.ended = ended !== 0;  // the last step ended an episode
  }

  // ---- the arrays

  get rewards() {
    return this._copy("rewards", Float32Array);
  }
  get terminals() {
    return this._copy("terminals", Uint8Array);
  }
  get truncations() {
    return this._copy("truncations", Uint8Array);
  }
  obs(agent) {
    return this._row("obs", agent);
  }
  finalObs(agent) {
    return this._row("finalObs", agent);
  }
  masks(agent) {
    if (this._arrays.masks.size === 0) throw new EngineError("masks: this world was opened without masks");
    return this._copy("masks", Uint8Array, this._agent(agent), this.info.numActions);
  }

  _row(name, agent) {
    const type = this.info.kind === "grid" ? Uint8Array : Float32Array;
    return this._copy(name, type, this._agent(agent), this._rowSize);
  }
  _copy(name, type, row = 0, size = this.info.numAgents) {
    this._live();
    const { at } = this._arrays[name];
    return new type(this._calls.memory, at + row * size * type.BYTES_PER_ELEMENT, size).slice();
  }
  _agent(agent) {
    const { numAgents } = this.info;
    if (Number.isInteger(agent) && agent >= 0 && agent < numAgents) return agent;
    throw new EngineError(`agent ${String(agent)} is not in [0, ${numAgents})`);
  }

  // ---- state

  // Of the state as it is now: 16 hexadecimal digits.
  hash() {
    this._ask("hash");
    return this._calls.hash();
  }
  // What came of the last step, as a replay's `last` (docs/replays.md): the hash of the state, or, where it ended the
  // episode and the state is the next one's, zeros and the CRC-32 of rewards, terminals, truncations and final_obs.
  lastHash() {
    if (!this.ended) return this.hash();
    const left = ["rewards", "terminals", "truncations", "finalObs"].map((name) => {
      const { at, size } = this._arrays[name];
      return new Uint8Array(this._calls.memory, at, size);
    });
    return crc32(left).toString(16).padStart(16, "0");
  }
  save() {
    return this.saved((bytes) => bytes.slice());
  }
  // What `read` makes of the state's bytes where they are, which is only until the next call.
  saved(read) {
    this._ask("save");
    return read(this._calls.view());
  }
  restore(bytes) {
    if (!(bytes instanceof Uint8Array)) throw new EngineError("expected a Uint8Array, got something else");
    this.restoreFrom(bytes.length, (room) => room.set(bytes));
  }
  // The same of `size` bytes that `write` puts where they are wanted.
  restoreFrom(size, write) {
    this._live();
    this._calls.room(size, (at) => {
      write(new Uint8Array(this._calls.memory, at, size));
      this._ask("restore", at, size);
    });
    this._readClock();
  }

  // ---- looking

  // What is there, by name, as Python's Env.inspect. Grids: {objects: [{id, type, row, col, vibe, tags, inventory,
  // collective?, converting?, uses?, and of agents agent, group, facing, frozen}], collectives: {name: {inventory}}}. An id
  // stays with its object; that of terrain is negative and stays with its cell. Prospector: {ship, cargo, market, sectors,
  // links, lastStep}. Corridor: {cell, reached}.
  inspect() {
    this._ask("inspect");
    const shown = this._calls.json();
    const clock = { tick: this.tick, episode: this.episode, seed: this.seed, maxSteps: this.maxSteps };
    if (this.info.kind !== "grid") return { ...clock, ...shown };
    this._ask("objects");
    const objects = readObjects(this._calls.int32s(), this._names, this.info.width);
    return { ...clock, height: this.info.height, width: this.info.width, objects, ...shown };
  }

  // Where the agents of a grid are: row * width + col of each. Cheap enough for every tick.
  cells() {
    this._ask("cells");
    return this._calls.uint32s();
  }

  // Running statistics of this episode: {name: Float64Array[numAgents]}.
  stats() {
    this._ask("stats", 0);
    return this._byName(this._calls.float64s());
  }
  // The same of the last episode that ended, or null.
  endedStats() {
    this._ask("stats", 1);
    const found = this._calls.float64s();
    return found.length ? this._byName(found) : null;
  }
  _byName(rows) {
    const { numAgents, statNames } = this.info;
    const found = Object.create(null);
    statNames.forEach((name, stat) => {
      const column = new Float64Array(numAgents);
      for (let agent = 0; agent < numAgents; ++agent) column[agent] = rows[agent * statNames.length + stat];
      found[name] = column;
    });
    return found;
  }

  // ---- who plays

  // A native script: act(agent) answers for the world as it is now, as often as it is asked; reset() forgets.
  script(name) {
    this._live();
    const script = this._calls.with([String(name)], (...given) => this._ask("script", ...given));
    return {
      act: (agent) => this._ask("script_act", script, this._agent(agent)),
      reset: () => void this._ask("script_reset", script),
    };
  }

  close() {
    this._number = this._calls.close("close", this._number);
  }

  _ask(name, ...given) {
    return this._calls.number(name, this._live(), ...given);
  }
  _live() {
    if (!this._number) throw new EngineError("this world is closed");
    return this._number;
  }
}

// ---- objects of a grid: numbers to names

function nameTables(info) {
  return {
    types: info.objectTypes, vibes: info.vibes, teams: info.collectives, tags: info.tags, resources: info.resources,
    directions: info.directions,
  };
}

function readObjects(numbers, names, width) {
  const objects = [];
  for (let at = 0; at < numbers.length;) {
    const [id, type, row, col, vibe, team, agent, group, facing, frozen, converting, uses, numTags] =
      numbers.subarray(at, at + 13);
    at += 13;
    const object = { id: id >= 0 ? id : -1 - row * width - col, type: names.types[type], row, col };
    if (vibe >= 0) object.vibe = names.vibes[vibe];
    object.tags = Array.from(numbers.subarray(at, at + numTags), (tag) => names.tags[tag]);
    at += numTags;
    object.inventory = Object.create(null);  // names are a stranger's: `constructor` is one like any other
    for (let left = numbers[at++]; left > 0; --left, at += 2) {
      object.inventory[names.resources[numbers[at]]] = numbers[at + 1];
    }
    if (team >= 0) object.collective = names.teams[team];
    if (converting) object.converting = converting;
    if (uses >= 0) object.uses = uses;
    if (agent >= 0) Object.assign(object, { agent, group, facing: names.directions[facing], frozen });
    objects.push(object);
  }
  return objects;
}

// ---- the C interface (native/wasm/interface.cpp)

class Calls {
  constructor(exports) {
    this._exports = exports;
    this._broken = "";
  }
  get memory() {
    return this._exports.memory.buffer;
  }

  // What a call answers. Whatever breaks inside is not trusted again.
  plain(name, ...given) {
    if (this._broken) throw new EngineError(this._broken);
    try {
      return this._exports[`gridmill_${name}`](...given);
    } catch (reason) {
      this._broken = `the engine broke down and must be loaded again: ${oneLine(reason)}`;
      throw new EngineError(this._broken);
    }
  }
  number(name, ...given) {
    const answer = this.plain(name, ...given);
    if (answer < 0 || (answer === 0 && (name === "open" || name === "policy"))) throw new EngineError(this.text());
    return answer;
  }
  // Ends what has this number, once; an engine that broke down has nothing left to end. The number is then 0.
  close(name, number) {
    if (number && !this._broken) this.plain(name, number);
    return 0;
  }
  pointer(name, ...given) {
    return this.plain(name, ...given) >>> 0;
  }

  // Calls with texts or bytes put into the module's memory: each becomes its place and its size.
  with(items, call) {
    if (items.length === 0) return call();
    const [item, ...others] = items;
    const bytes = typeof item === "string" ? new TextEncoder().encode(item) : item;
    if (!(bytes instanceof Uint8Array)) throw new EngineError("expected a Uint8Array, got something else");
    return this.room(bytes.length, (at) => {
      new Uint8Array(this.memory, at, bytes.length).set(bytes);
      return this.with(others, (...rest) => call(at, bytes.length, ...rest));
    });
  }

  // Calls with the place of so many bytes of the module's memory, and frees them.
  room(size, call) {
    if (size > MOST_BYTES) throw new EngineError(`expected at most ${MOST_BYTES} bytes, got ${size}`);
    const at = this.pointer("alloc", size);
    if (at === 0) throw new EngineError("not enough memory for this in the page");
    try {
      return call(at);
    } finally {
      if (!this._broken) this.plain("free", at);
    }
  }

  // What the last call left, in several readings.
  view() {
    const at = this.pointer("result");
    return new Uint8Array(this.memory, at, this.pointer("result_size"));
  }
  bytes() {
    return this.view().slice();
  }
  text() {
    return new TextDecoder().decode(this.bytes());
  }
  json() {
    return JSON.parse(this.text());
  }
  uint32s() {
    return new Uint32Array(this.bytes().buffer);
  }
  int32s() {
    return new Int32Array(this.bytes().buffer);
  }
  float64s() {
    return new Float64Array(this.bytes().buffer);
  }
  hash() {
    return new DataView(this.bytes().buffer).getBigUint64(0, true).toString(16).padStart(16, "0");
  }
}

// zlib's CRC-32 of several arrays, one behind the other.
function crc32(arrays) {
  let crc = -1;
  for (const bytes of arrays) for (const byte of bytes) crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ byte) & 255];
  return (crc ^ -1) >>> 0;
}
const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  return crc;
});

function oneLine(reason) {
  return String(reason?.message ?? reason).replace(/\s+/g, " ").slice(0, 300);
}
