// One world of the engine: its clock, arrays, states, what is there, and the scripts that can play it.

import { crc32 } from "./bytes.js";
import { EngineError } from "./calls.js";

const ARRAYS = ["obs", "finalObs", "actions", "rewards", "terminals", "truncations", "masks"];  // enum Array in world.hpp

export class World {
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
    const left = ["rewards", "terminals", "truncations", "finalObs"].map((name) => this._arrays[name]);
    const crc = left.reduce((sum, { at, size }) => crc32(new Uint8Array(this._calls.memory, at, size), sum), 0);
    return crc.toString(16).padStart(16, "0");
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
  // stays with its object; that of terrain is negative and stays with its cell. Other kinds: what
  // `inspect` writes in their native/wasm/show_*.cpp.
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
  for (let at = 0; at < numbers.length;) {  // thousands of times a picture: no iterators, no small arrays
    const id = numbers[at++];
    const type = numbers[at++];
    const row = numbers[at++];
    const col = numbers[at++];
    const vibe = numbers[at++];
    const team = numbers[at++];
    const agent = numbers[at++];
    const group = numbers[at++];
    const facing = numbers[at++];
    const frozen = numbers[at++];
    const converting = numbers[at++];
    const uses = numbers[at++];
    const object = { id: id >= 0 ? id : -1 - row * width - col, type: names.types[type], row, col };
    if (vibe >= 0) object.vibe = names.vibes[vibe];
    object.tags = [];
    for (let left = numbers[at++]; left > 0; --left) object.tags.push(names.tags[numbers[at++]]);
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
