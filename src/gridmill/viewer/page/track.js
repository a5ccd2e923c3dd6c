// A track: one branch, simulated. It owns two worlds of the engine: the one that is shown, which jumps to any tick, and
// a scout that plays the branch from its beginning in slices of a few milliseconds. What the scout meets is kept: a
// saved state every so many ticks (so that a jump is short), rewards, hashes, events, where everybody was. A badge says
// whether the hashes are those of the file.

import {Ledger} from "./ledger.js";
import {pack, unpack} from "./runs.js";

const KEYFRAME_BYTES = 140e6; // of saved states in memory, of one track
const JUMP_MS = 14; // what replaying from one saved state to the next may take
const EVERY = 100; // ticks between two hashes that are kept for saving

export class Track {
  constructor(engine, recording, branch, parent = null) {
    this.engine = engine;
    this.recording = recording;
    this.branch = branch;
    this.parent = parent;
    this.world = this.open();
    this.info = this.world.info;
    this.shownTick = 0;
    this.scout = null;
    this.scoutTick = 0;
    this.over = false; // the episode ended with the last action
    this.endedStats = null; // its statistics then
    this.ledger = new Ledger(this.info, recording.game, parent && parent.ledger, branch.forkTick, Math.max(256, branch.own.length));
    this.frames = []; // saved states: {tick, state, own}, ascending
    this.frameBytes = 0;
    this.thinned = 5; // ticks between two of them, at least
    this.stepMs = 0.3; // a running mean
    this.check = {state: branch.hashes ? "checking" : "live", tick: 0};
    this.actions = new Int32Array(branch.agents);
    if (!parent) this.keep(0, this.world.save());
    else this.checkParent(branch.forkTick);
  }

  open() {
    const {kind, tree, seed, head} = this.recording;
    const world = this.engine.open({kind, tree, seed, masks: true, name: typeof head.saved_name === "string" ? head.saved_name : ""});
    world.reset();
    if (world.info.numAgents !== this.branch.agents) {
      world.close();
      throw new Error(`replay: expected actions of ${world.info.numAgents} agents, got ${this.branch.agents}`);
    }
    return world;
  }

  close() {
    this.world.close();
    if (this.scout) this.scout.close();
  }

  /** The last tick that can be shown: after the action that ends an episode the engine is in the next one. */
  get last() {
    return Math.max(0, this.over ? this.branch.ticks - 1 : this.branch.ticks);
  }

  get done() {
    return this.ledger.end >= this.branch.ticks && (!this.parent || this.parent.ledger.end >= this.branch.forkTick);
  }

  // ---- saved states

  /** `own`: the engine was there; a state of the file is only believed until then. */
  keep(tick, bytes, own = true) {
    const state = pack(bytes);
    const at = this.frames.findIndex((frame) => frame.tick >= tick);
    if (at >= 0 && this.frames[at].tick === tick) {
      if (own) this.frames[at] = {tick, state, own};
      return;
    }
    this.frames.splice(at < 0 ? this.frames.length : at, 0, {tick, state, own});
    this.frameBytes += state.words.byteLength;
    if (this.frameBytes > KEYFRAME_BYTES && this.frames.length > 8) this.thin();
  }

  /** Every second saved state goes, and the gap doubles. */
  thin() {
    this.frames = this.frames.filter((frame, i) => i % 2 === 0);
    this.frameBytes = this.frames.reduce((sum, frame) => sum + frame.state.words.byteLength, 0);
    this.thinned = Math.max(2 * this.thinned, 2 * this.gap);
  }

  /** Ticks between two saved states: what can be played in a moment. */
  get gap() {
    return Math.max(this.thinned, Math.min(250, Math.round(JUMP_MS / Math.max(0.005, this.stepMs))));
  }

  /** The nearest saved state at or before a tick, of this branch or of those it came from. */
  frameBefore(tick) {
    let best = null;
    for (const frame of this.frames) {
      if (frame.tick > tick) break;
      best = frame;
    }
    if (best || !this.parent) return best;
    return this.parent.frameBefore(Math.min(tick, this.branch.forkTick));
  }

  // ---- stepping

  stepWorld(world, tick) {
    this.actions.set(this.branch.at(tick));
    const began = performance.now();
    world.step(this.actions);
    const took = performance.now() - began;
    this.stepMs = this.stepMs * 0.96 + Math.min(took, 4 * this.stepMs + 0.05) * 0.04;
    if (tick === this.ledger.end && tick >= this.branch.forkTick) this.ledger.add(world, tick);
    if (world.ended && tick === this.branch.ticks - 1) {
      this.over = true;
      this.endedStats ??= world.endedStats();
    }
    return !world.ended;
  }

  /** Bring the shown world to a tick; false if `ms` was not enough, then ask again. */
  seek(tick, ms = 30) {
    const target = Math.min(Math.max(0, tick), this.last);
    const frame = this.frameBefore(target);
    if (this.shownTick > target || this.lost || (frame && frame.tick > this.shownTick)) {
      if (!this.restore(this.world, frame)) return this.seek(tick, ms);
      this.shownTick = frame.tick;
      this.lost = false;
    }
    const until = performance.now() + ms;
    while (this.shownTick < target) {
      if (!this.stepWorld(this.world, this.shownTick)) {
        // The episode is over: the world shows the next one already. Go back to the last state of this one.
        this.lost = true;
        if (this.shownTick === this.branch.ticks - 1) return this.seek(target - 1, ms);
        throw new Error(`replay: the episode ends at tick ${this.shownTick + 1}, but actions go on`);
      }
      this.shownTick += 1;
      if (performance.now() > until) return this.shownTick >= target;
    }
    return true;
  }

  /** Put a saved state into a world. One of the file that the engine refuses is forgotten: false, then ask again. */
  restore(world, frame) {
    if (!frame) throw new Error("replay: no state to start from");
    try {
      world.restore(unpack(frame.state));
      return true;
    } catch (reason) {
      if (frame.own) throw reason;
      this.frames = this.frames.filter((other) => other !== frame);
      return false;
    }
  }

  // ---- the scout

  /** Simulate on in the background for so many milliseconds; true if something is left to do. */
  work(ms) {
    if (this.parent && this.parent.ledger.end < this.branch.forkTick) return this.parent.work(ms);
    if (this.ledger.end >= this.branch.ticks) return false;
    const until = performance.now() + ms;
    if (!this.scout) {
      this.scout = this.open();
      const frame = this.frameBefore(this.ledger.end);
      this.restore(this.scout, frame);
      this.scoutTick = frame.tick;
    }
    while (this.scoutTick < this.branch.ticks) {
      const tick = this.scoutTick;
      this.passing(this.scout, tick);
      const goesOn = this.stepWorld(this.scout, tick);
      this.scoutTick += 1;
      if (!goesOn || this.scoutTick === this.branch.ticks) {
        this.finish(this.scout, goesOn);
        return false;
      }
      if (performance.now() > until) return true;
    }
    return false;
  }

  /** Before a tick is played: keep the state now and then, keep and compare hashes. */
  passing(world, tick) {
    if (tick < this.branch.forkTick) return;
    const frame = this.frameBefore(tick);
    if (frame && frame.tick === tick && !frame.own) this.keep(tick, world.save());
    else if (tick - (frame?.tick ?? 0) >= this.gap) this.keep(tick, world.save());
    const {hashes} = this.branch;
    const every = hashes ? hashes.every : EVERY;
    if (tick % every !== 0 || this.ledger.hashes.has(tick)) return;
    const hash = world.hash();
    this.ledger.hashes.set(tick, hash);
    if (hashes && this.check.state === "checking") this.compare(hash, hashes.values[(tick - this.firstHash(every)) / every], tick);
  }

  /** The tick of the first hash in the branch's list. */
  firstHash(every) {
    return this.branch.hashFrom ?? Math.ceil(this.branch.forkTick / every) * every;
  }

  compare(found, expected, tick) {
    if (expected === undefined) return;
    if (found === expected) this.check.tick = tick;
    else this.check = {state: "differs", tick: this.locate(tick)};
  }

  /** The first tick that differs, by the checks of the file; its hashes alone only name a hundred. */
  locate(until) {
    const {checks, forkTick} = this.branch;
    const frame = this.frameBefore(this.check.tick);
    if (!checks || !frame.own) return until;
    const world = this.open();
    world.restore(unpack(frame.state));
    let tick = frame.tick;
    for (; tick < until; tick += 1) {
      this.actions.set(this.branch.at(tick));
      world.step(this.actions);
      if (tick >= forkTick && parseInt(world.lastHash().slice(-4), 16) !== (checks[tick - forkTick] & 0xffff)) break;
      if (world.ended) break;
    }
    world.close();
    return Math.min(tick, until);
  }

  finish(world, goesOn) {
    const end = this.scoutTick;
    const {hashes} = this.branch;
    if (end < this.branch.ticks) this.check = {state: "differs", tick: end};
    this.ledger.last = world.lastHash();
    if (hashes && this.check.state === "checking") {
      if (hashes.last) this.compare(this.ledger.last, hashes.last, end);
      if (this.check.state === "checking") this.check = {state: "verified", tick: end};
    }
  }

  checkParent(tick) {
    if (tick > this.parent.branch.ticks) throw new Error(`replay: a fork at tick ${tick} of a branch of ${this.parent.branch.ticks} ticks`);
  }

  /** The game's score at the end of the episode, a mean over agents; null while it goes on. */
  get score() {
    const {stat, per} = this.recording.game?.score ?? {};
    const column = this.endedStats?.[stat];
    if (!column || (per ?? "episode") !== "episode") return null;
    return column.reduce((sum, value) => sum + value, 0) / column.length;
  }

  // ---- playing on

  /** At the end of a live branch: everybody acts, and the branch is one tick longer. False if the episode is over. */
  extend(actions) {
    if (this.over) return false;
    if (!this.seek(this.branch.ticks, 1e9)) return false;
    const tick = this.branch.ticks;
    this.passing(this.world, tick);
    this.branch.push(actions);
    const goesOn = this.stepWorld(this.world, tick);
    this.shownTick = tick + 1;
    this.ledger.last = this.world.lastHash();
    this.ledger.after.set(tick, this.ledger.last);
    if (!goesOn) {
      this.lost = true; // the engine shows the next episode; the next seek goes back
      this.shownTick = tick;
    }
    return goesOn;
  }
}
