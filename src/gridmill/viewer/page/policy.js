// A trained policy in the engine.

import { EngineError } from "./calls.js";

// Whoever asks it decides when: an agent's memory holds the moments in which it was asked since begin(), a new episode, a
// reset or a restored state. In one moment it answers the same however often it is asked.
export class Policy {
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
    if (!this._world) throw new EngineError("call begin(world) before the first question");
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
