// The app: what is open, which tick is shown, who is selected, and the loop that draws. Panels ask it; they are told when
// something changed. There is one clock for all panes.

import {forgetColours} from "./dom.js";
import {Pane} from "./pane.js";
import {MOST_BYTES} from "./states.js";

export const SPEEDS = [1, 2, 4, 8, 15, 30, 60, 125, 250, 500, 1000];
const FRAME_MS = 26; // of the engine in one frame, for getting to a tick
const WORK_MS = 9; // of the engine in one frame, for playing ahead

export class App {
  constructor() {
    this.engine = null; // comes while the page is put together
    this.panes = [];
    this.active = 0;
    this.tick = 0;
    this.playing = false;
    this.speed = 8;
    this.phase = 1; // of the way from the tick before to this one, for gliding
    this.age = 1; // of what just happened
    this.selected = -1;
    this.following = false;
    this.overlays = {areas: true, heat: false, window: false, trail: true};
    this.listeners = new Map();
    this.queued = null; // the action a person chose for the next tick
    this.lastFrame = 0;
    this.arrived = true;
    this.theme = null;
  }

  // ---- telling

  on(name, listener) {
    if (!this.listeners.has(name)) this.listeners.set(name, []);
    this.listeners.get(name).push(listener);
  }

  emit(name, ...what) {
    for (const listener of this.listeners.get(name) ?? []) listener(...what);
  }

  // ---- what is open

  get pane() {
    return this.panes[this.active];
  }

  get track() {
    return this.pane?.track ?? null;
  }

  get recording() {
    return this.pane?.recording ?? null;
  }

  /** The last tick of the clock: as far as any pane goes. */
  get end() {
    return Math.max(0, ...this.panes.filter((pane) => pane.track).map((pane) => pane.track.branch.ticks));
  }

  openIn(index, recording, branch = 0) {
    const pane = new Pane(this); // what is shown stays until the new one is there
    try {
      pane.open(this.engine, recording, branch);
    } catch (reason) {
      pane.close();
      throw reason;
    }
    this.panes[index]?.close();
    this.panes[index] = pane;
    this.active = index;
    this.emit("panes");
    this.changed();
    for (const other of this.panes) other.refit = true;
  }

  closePane(index) {
    if (this.panes.length < 2) return;
    const [gone] = this.panes.splice(index, 1);
    gone.close();
    this.active = 0;
    this.panes[0].refit = true;
    this.emit("panes");
    this.changed();
  }

  showBranch(branch, pane = this.pane) {
    pane.show(branch);
    this.tick = Math.min(this.tick, this.end);
    this.emit("branch");
    this.changed();
  }

  changed() {
    const tracks = this.panes.flatMap((pane) => [...pane.tracks.values()]);
    for (const track of tracks) track.states.limit(MOST_BYTES / tracks.length);
    for (const pane of this.panes) {
      pane.drawnTick = -1;
      pane.dirty = true;
    }
    this.emit("change");
  }

  redraw() {
    forgetColours();
    for (const pane of this.panes) pane.dirty = true;
    this.emit("redraw");
  }

  // ---- the clock

  seek(tick) {
    this.tick = Math.max(0, Math.min(this.end, Math.round(tick)));
    this.phase = 1;
    this.age = 1;
    this.emit("tick");
  }

  step(by) {
    this.pause();
    if (by === 1 && this.atTip && this.live) {
      this.playOn();
      return;
    }
    const before = this.tick;
    this.seek(this.tick + by);
    if (this.tick === before + 1) {
      this.phase = 0;
      this.age = 0;
    }
  }

  play() {
    if (this.tick >= this.end && !this.live) this.seek(0);
    this.playing = true;
    this.carry = 0;
    this.emit("play");
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.emit("play");
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  setSpeed(speed) {
    this.speed = speed;
    this.emit("play");
  }

  faster(by) {
    const at = SPEEDS.findIndex((speed) => speed >= this.speed);
    this.setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at + by))]);
  }

  // ---- live branches

  get live() {
    return Boolean(this.track?.branch.live && !this.track.over);
  }

  /** Whether something was played here. */
  get canSave() {
    return Boolean(this.recording?.branches.some((branch) => branch.live && branch.own.length));
  }

  get atTip() {
    return this.track !== null && this.tick >= this.track.branch.ticks;
  }

  /** A person acts: with the clock at rest that is one tick, else it is what happens in the next one. */
  act(action) {
    if (!this.live || !this.atTip) return;
    this.queued = action;
    if (!this.playing) this.playOn();
  }

  /** One tick more of a live branch. */
  playOn() {
    const {track} = this;
    if (!track || track.over) return false;
    if (this.jumped !== track) track.players.forget();
    this.jumped = track;
    track.extend(track.players.decide(this.queued));
    this.queued = null;
    this.tick = track.branch.ticks;
    this.phase = 0;
    this.age = 0;
    this.emit("tick");
    if (track.over) {
      this.pause();
      this.emit("over");
    }
    return true;
  }

  /** Give an agent (or "*": all) to somebody, from the tick that is shown on. */
  takeOver(agent, name) {
    const {track, pane} = this;
    const {branch} = track;
    const at = Math.min(this.tick, track.lastOpen);
    if (branch.live && at >= branch.ticks && branch.own.length === 0) {
      if (agent === "*") for (const key of Object.keys(branch.who)) delete branch.who[key];
      branch.who[agent] = name;
    } else {
      const before = branch.live && at >= branch.ticks ? {...branch.who} : {};
      for (const [key, who] of Object.entries(before)) if (who === "human") before[key] = "replay"; // a person plays one
      const who = agent === "*" ? {"*": name} : {"*": "replay", ...before, [agent]: name};
      const forks = pane.recording.branches.filter((other) => other.parent).length;
      pane.fork(at, who, `fork ${forks + 1}`);
      this.tick = at;
      this.emit("branch");
    }
    if (name === "human") this.select(agent === "*" ? 0 : agent);
    this.queued = null;
    this.jumped = null;
    this.changed();
  }

  // ---- looking

  select(agent) {
    this.selected = agent;
    for (const pane of this.panes) {
      pane.dirty = true;
      pane.drawnTick = pane.drawnTick < 0 ? -1 : pane.drawnTick;
      if (pane.scene) pane.trail(pane.drawnTick);
    }
    this.emit("select");
  }

  /** Whoever moves the map does not want it to follow somebody. */
  lookAway() {
    if (!this.following) return;
    this.following = false;
    this.emit("select");
  }

  selectNext(by) {
    const count = this.track?.info.numAgents ?? 0;
    if (count) this.select((this.selected + by + count + (this.selected < 0 && by < 0 ? 1 : 0)) % count);
  }

  tapped(pane, point) {
    this.active = this.panes.indexOf(pane);
    const thing = pane.scene?.at(point);
    this.emit("tap", thing, pane);
    if (thing?.agent !== undefined) this.select(thing.agent);
    else if (!thing && !this.following) this.select(-1);
  }

  toggleOverlay(name) {
    this.overlays[name] = !this.overlays[name];
    for (const pane of this.panes) {
      pane.dirty = true;
      pane.heatTick = -1;
    }
    this.emit("overlays");
  }

  // ---- the loop

  start() {
    const draw = (now) => {
      try {
        this.frame(now);
      } catch (reason) {
        this.pause();
        this.emit("fault", reason);
      }
    };
    const loop = (now) => {
      requestAnimationFrame(loop);
      draw(now);
    };
    draw(performance.now());
    requestAnimationFrame(() => requestAnimationFrame(loop)); // the browser shows the first picture before panels are filled
  }

  frame(now) {
    const passed = Math.min(200, now - this.lastFrame);
    this.lastFrame = now;
    if (!this.panes.length) return;
    if (this.playing && this.arrived) this.advance(passed);
    const glide = this.playing ? Math.max(40, Math.min(260, 1000 / this.speed)) : 130;
    this.phase = Math.min(1, this.phase + passed / glide);
    this.age = Math.min(1, this.age + passed / Math.max(500, Math.min(1400, 2500 / this.speed)));
    this.arrived = true;
    for (const pane of this.panes) {
      if (!pane.track) continue;
      if (!pane.frame(this.tick, this.phase, this.age, FRAME_MS / this.panes.length)) this.arrived = false;
    }
    if (!this.begun) {
      this.begun = true;
      performance.mark("first-frame"); // for whoever measures; panels come after it
      return;
    }
    this.emit("frame", now);
    for (const pane of this.panes) this.playAhead(pane);
  }

  advance(passed) {
    this.carry = Math.min(this.carry + (passed * this.speed) / 1000, this.speed > 60 ? 1000 : 4);
    const until = performance.now() + FRAME_MS;
    while (this.carry >= 1) {
      this.carry -= 1;
      if (this.live && this.atTip) {
        if (!this.playOn()) break;
      } else if (this.tick >= this.end) {
        this.pause();
        break;
      } else {
        this.tick += 1;
        this.phase = this.speed <= 15 ? 0 : 1;
        this.age = 0;
      }
      if (performance.now() > until) this.carry = 0;
    }
    this.emit("tick");
  }

  playAhead(pane) {
    if (!pane.track) return;
    const busy = pane.track.work(WORK_MS / this.panes.length);
    if (!busy) for (const track of pane.tracks.values()) if (track !== pane.track && track.work(2)) break;
    if (pane.track.check === pane.checked) return;
    pane.checked = pane.track.check;
    this.emit("check", pane);
  }
}
