// A track: one branch, simulated. It owns two worlds of the engine: the one that is shown, which jumps to any tick, and
// a scout that plays the branch from its beginning in slices of a few milliseconds. What the scout meets is kept: a
// saved state every so many ticks (so that a jump is short), rewards, hashes, events, where everybody was. A badge says
// whether the hashes are those of the file.

import {FileError} from "./bytes.js";
import {Ledger} from "./ledger.js";
import {States} from "./states.js";

const JUMP_MS = 10; // what replaying from one saved state to the next may take
const LEAST_GAP = 5; // ticks between two saved states
const EVERY = 100; // ticks between two hashes that are kept for saving
const MOST_KEPT = 16e6; // numbers of a ledger that get their room at once; a file may claim ticks that nobody will play
const MOST_CELLS = 1 << 19; // of a map: each may hold an object, and every picture begins with a list of them
const LOCATE_MOST = 1000; // ticks that are played at once to name the first that differs

export class Track {
  constructor(engine, recording, branch, parent = null) {
    this.engine = engine;
    this.recording = recording;
    this.branch = branch;
    this.parent = parent;
    this.own = null; // the world that is shown, opened when it is first looked at: a file may have a thousand branches
    this.info = parent ? parent.info : this.world.info;
    this.shownTick = 0;
    this.scout = null;
    this.scoutTick = 0;
    this.borrowed = false; // the shown world came from a state of the file where the engine has not been yet
    this.redrawn = false; // what was borrowed is now known: the picture of the same tick may be another
    this.over = false; // the episode ended with the last action
    this.stopped = null; // the tick whose action ended the episode though more follow
    this.endedStats = null; // its statistics then
    this.ledger = new Ledger(this.info, recording.game, parent && parent.ledger, branch.forkTick, Math.min(branch.own.length, Math.ceil(MOST_KEPT / branch.agents)));
    this.states = new States();
    this.stepMs = 0.3; // a running mean
    this.check = {state: branch.hashes ? "checking" : "live", tick: branch.forkTick};
    this.actions = new Int32Array(branch.agents);
    if (!parent) this.states.keep(0, this.world);
    else this.checkParent(branch.forkTick);
  }

  open() {
    const {kind, tree, seed, head} = this.recording;
    const world = this.engine.open({kind, tree, seed, masks: true, name: typeof head.saved_name === "string" ? head.saved_name : ""});
    const {numAgents, height = 0, width = 0} = world.info;
    const wrong = numAgents !== this.branch.agents ? `expected actions of ${numAgents} agents, got ${this.branch.agents}`
      : height * width > MOST_CELLS ? `expected a map of at most ${MOST_CELLS} cells in a page, got ${height} x ${width}` : "";
    if (wrong) {
      world.close();
      throw new FileError(`replay: ${wrong}`);
    }
    world.holdEnded();
    return world;
  }

  get world() {
    this.own ??= this.open();
    return this.own;
  }

  close() {
    this.own?.close();
    this.rest();
  }

  /** The scout goes; the next one goes on from the last saved state. */
  rest() {
    this.scout?.close();
    this.scout = null;
  }

  /** The last tick that can be shown: the state that the last action left, or the one that ended the episode. */
  get last() {
    return this.stopped === null ? this.branch.ticks : this.stopped + 1;
  }

  /** The last tick at which somebody can act. */
  get lastOpen() {
    return this.over || this.stopped !== null ? this.last - 1 : this.last;
  }

  get done() {
    return this.stopped !== null || this.knows(this.branch.ticks);
  }

  /** Whether the engine itself has played all ticks before this one. */
  knows(tick) {
    return this.ledger.end >= tick && (!this.parent || this.parent.knows(Math.min(tick, this.branch.forkTick)));
  }

  // ---- saved states

  /** Ticks from one saved state to the next: what can be played in a moment, and more where so many have no room. */
  gapAt(tick) {
    const quick = Math.min(250, Math.round(JUMP_MS / Math.max(0.005, this.stepMs)));
    return Math.max(LEAST_GAP, quick, this.states.gap, this.states.spacing(this.branch.ticks - tick));
  }

  /** The nearest saved state at or before a tick, of this branch or of those it came from; `own`: none of the file. */
  frameBefore(tick, own = false) {
    const best = this.states.before(tick, own);
    if (best || !this.parent) return best;
    return this.parent.frameBefore(Math.min(tick, this.branch.forkTick), own);
  }

  /** Forget saved states of the file, here and in the branches that this one came from. */
  forget(which) {
    for (let track = this; track; track = track.parent) track.states.forget(which);
  }

  // ---- stepping

  stepWorld(world, tick) {
    this.actions.set(this.branch.at(tick));
    const {ledger, branch} = this;
    const sure = !(world === this.own && this.borrowed); // `world` would open one
    const news = sure && tick === ledger.end && tick >= branch.forkTick && this.knows(tick);
    if (news && branch.live && tick % EVERY === 0) ledger.hashes.set(tick, world.hash());
    const began = performance.now();
    world.step(this.actions);
    const took = performance.now() - began;
    this.stepMs = this.stepMs * 0.96 + Math.min(took, 4 * this.stepMs + 0.05) * 0.04;
    if (news) ledger.add(world, tick);
    if (news && branch.live) {
      ledger.last = world.lastHash();
      ledger.after.set(tick, ledger.last);
    }
    if (world.ended && tick === branch.ticks - 1) {
      this.over = true;
      if (sure || !this.endedStats) this.endedStats = world.endedStats();
    }
    return !world.ended;
  }

  /** Bring the shown world to a tick; false if `ms` was not enough, then ask again. */
  seek(tick, ms = 30) {
    const target = Math.min(Math.max(0, tick), this.last);
    const sure = this.knows(target);
    if (sure && this.borrowed) this.lost = this.redrawn = true;
    let frame = this.frameBefore(target, sure);
    if (this.shownTick > target || this.lost || (frame && frame.tick > this.shownTick)) {
      while (!this.restore(this.world, frame)) frame = this.frameBefore(target, sure);
      this.shownTick = frame.tick;
      this.borrowed = !frame.own;
      this.lost = false;
    }
    const until = performance.now() + ms;
    while (this.shownTick < target) {
      const goesOn = this.stepWorld(this.world, this.shownTick);
      this.shownTick += 1;
      if (!goesOn && this.shownTick < this.branch.ticks) {
        if (!this.borrowed) {
          this.stop(this.shownTick - 1);
          return true;
        }
        this.lost = true; // a state of the file led here
        this.forget(() => true);
        return this.seek(tick, ms);
      }
      if (performance.now() > until) return this.shownTick >= target;
    }
    return true;
  }

  /** The episode ends before the actions do: what comes after it is another episode, and is not shown. */
  stop(tick) {
    this.stopped = tick;
    if (this.check.state === "checking") this.check = {state: "differs", tick: tick + 1};
  }

  /** Put a saved state into a world. One of the file that the engine refuses is forgotten: false, then ask again. */
  restore(world, frame) {
    if (!frame) throw new Error("replay: no state to start from");
    try {
      this.states.restore(world, frame);
      return true;
    } catch (reason) {
      if (frame.own) throw reason;
      this.forget((other) => other === frame);
      return false;
    }
  }

  // ---- the scout

  /** Simulate on in the background for so many milliseconds; true if something is left to do. */
  work(ms) {
    if (this.stopped !== null) return false;
    if (this.parent && !this.parent.knows(this.branch.forkTick)) {
      if (this.parent.work(ms)) return true;
      if (this.parent.stopped !== null) this.stop(this.parent.stopped);
      return !this.parent.done;
    }
    if (this.ledger.end >= this.branch.ticks && this.check.state !== "checking") return false;
    if (!this.scout) this.parent?.rest();
    const until = performance.now() + ms;
    if (!this.scout) {
      this.scout = this.open();
      const frame = this.frameBefore(this.branch.hashes ? this.check.tick : this.ledger.end, true);
      this.restore(this.scout, frame);
      this.scoutTick = frame.tick;
    }
    while (this.scoutTick < this.branch.ticks) {
      const tick = this.scoutTick;
      this.passing(this.scout, tick);
      const goesOn = this.stepWorld(this.scout, tick);
      this.scoutTick += 1;
      if (!goesOn || this.scoutTick === this.branch.ticks) {
        this.finish(this.scout);
        this.rest();
        return false;
      }
      if (performance.now() > until) return true;
    }
    return false;
  }

  /** Before a tick is played: keep the state now and then, compare hashes. */
  passing(world, tick) {
    if (tick < this.branch.forkTick) return;
    const frame = this.frameBefore(tick);
    const here = frame?.tick === tick && !frame.own;
    if (here || tick - (frame?.tick ?? 0) >= this.gapAt(tick)) this.states.keep(tick, world);
    const {hashes} = this.branch;
    if (!hashes || tick % hashes.every !== 0 || this.check.state !== "checking") return;
    this.compare(world.hash(), hashes.values[(tick - this.firstHash(hashes.every)) / hashes.every], tick);
  }

  /** The tick of the first hash in the branch's list. */
  firstHash(every) {
    return this.branch.hashFrom ?? Math.ceil(this.branch.forkTick / every) * every;
  }

  compare(found, expected, tick) {
    if (expected === undefined) return;
    if (found === expected) this.check.tick = tick;
    else this.check = {state: "differs", ...this.locate(tick)};
  }

  /** The first tick that differs, by the checks of the file; its hashes alone only name a hundred. */
  locate(until) {
    const {checks, forkTick} = this.branch;
    const frame = this.frameBefore(this.check.tick, true);
    if (!checks || until - frame.tick > LOCATE_MOST) return {tick: until, since: this.check.tick};
    const world = this.open();
    this.states.restore(world, frame);
    let tick = frame.tick;
    for (; tick < until; tick += 1) {
      this.actions.set(this.branch.at(tick));
      world.step(this.actions);
      if (tick >= forkTick && parseInt(world.lastHash().slice(-4), 16) !== (checks[tick - forkTick] & 0xffff)) break;
      if (world.ended) break;
    }
    world.close();
    return {tick: Math.min(tick, until)};
  }

  finish(world) {
    const end = this.scoutTick;
    const {hashes} = this.branch;
    if (end < this.branch.ticks) this.stop(end - 1);
    else this.over = world.ended;
    if (hashes && this.check.state === "checking") {
      if (hashes.last) this.compare(world.lastHash(), hashes.last, end);
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
    if (!this.seek(this.branch.ticks, 1e9) || this.over || this.stopped !== null) return false;
    const tick = this.branch.ticks;
    if (!this.borrowed) this.passing(this.world, tick);
    this.branch.push(actions);
    const goesOn = this.stepWorld(this.world, tick);
    this.shownTick = tick + 1;
    return goesOn;
  }
}
