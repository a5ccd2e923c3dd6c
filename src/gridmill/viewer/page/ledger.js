// A ledger: what happened in a track, tick by tick, as the engine said it: rewards, where the agents were, the
// statistics worth a mark on the timeline, hashes. A fork's ledger asks its parent for what was before it.

import {Column} from "./branch.js";

const MARKS_MOST = 20_000;
const CROWD = 64; // agents: more are marked together
const SAMPLE_EVERY = 1; // ticks between two looks at the statistics of a small world
const SMALL = 6000; // numbers in the statistics of a small world

export class Ledger {
  constructor(info, game, parent, start, room = 256) {
    this.info = info;
    this.parent = parent;
    this.start = start;
    this.rewards = new Column(Float32Array, info.numAgents, room);
    this.total = new Column(Float64Array, 1); // reward of all agents up to and with a tick
    this.scores = new Column(Float64Array, 1); // the game's score, a mean over agents, at the last look
    const {stat} = game?.score ?? {};
    this.scoreName = stat !== "reward" && info.statNames?.includes(stat) ? stat : null;
    this.score = parent ? parent.scoreAt(start - 1) : 0;
    const Cell = info.width * info.height > 0xffff ? Uint32Array : Uint16Array;
    this.cells = info.width ? new Column(Cell, info.numAgents, room) : null;
    this.series = new Map(); // of vector games: name -> numbers by tick
    this.marks = [];
    this.hashes = new Map(); // of live branches: before some ticks
    this.last = null; // of live branches: the hash after the last known tick, and after every one
    this.after = new Map();
    this.moved = new Map(); // ticks at which a statistic changed; null: all the time
    this.before = null; // the watched statistics at the last look
    this.watched = watchedOf(info.statNames ?? [], game);
    const numbers = (info.statNames ?? []).length * info.numAgents;
    this.sampling = numbers <= SMALL ? SAMPLE_EVERY : numbers <= 20 * SMALL ? 10 : 50;
  }

  /** The first tick that is not yet known. */
  get end() {
    return this.start + this.rewards.length;
  }

  /** The world has just played a tick. */
  add(world, tick) {
    const rewards = world.rewards;
    this.rewards.push(rewards);
    let sum = this.totalAt(tick - 1);
    for (const reward of rewards) sum += reward;
    this.total.push(sum);
    if (this.cells) this.cells.push(world.cells());
    else this.addSeries(world);
    if ((tick + 1) % this.sampling === 0) this.look(world, tick);
    this.scores.push(this.score);
    if (world.ended) this.mark(tick + 1, "end", -1, "episode ends");
  }

  addSeries(world) {
    for (const [name, value] of Object.entries(seriesOf(world))) {
      if (!this.series.has(name)) this.series.set(name, []);
      this.series.get(name)[this.rewards.length] = value; // the state after this tick
    }
  }

  look(world, tick) {
    if (this.watched.length === 0) return;
    const stats = world.stats();
    const now = new Map();
    for (const {name, kind, title} of this.watched) {
      const column = stats[name];
      if (!column) continue;
      now.set(name, column);
      const before = this.before?.get(name);
      if (!before) continue;
      if (!this.isRestless(name)) this.compare(column, before, tick, kind, title, name);
    }
    this.before = now;
    const column = now.get(this.scoreName);
    if (column) this.score = column.reduce((sum, value) => sum + value, 0) / column.length;
  }

  /** Whether a statistic changes nearly all the time: then its marks are gone, and no more come. */
  isRestless(name) {
    if (!this.moved.has(name)) this.moved.set(name, new Set());
    const moved = this.moved.get(name);
    if (moved === null) return true;
    if (moved.size < 40 || moved.size < 0.45 * (this.rewards.length / this.sampling) || this.info.numAgents > CROWD) return false;
    if (this.info.numAgents > 1 && !name.includes("/")) return false;
    this.moved.set(name, null);
    const {title} = this.watched.find((watched) => watched.name === name);
    this.marks = this.marks.filter((mark) => mark.title !== title);
    return true;
  }

  /** A mark for every agent that gained; one for all where there are very many, or where it is a team's. */
  compare(column, before, tick, kind, title, name) {
    let together = 0;
    for (let agent = 0; agent < column.length; agent += 1) {
      const gained = column[agent] - before[agent];
      if (!(gained > 0)) continue;
      if (column.length <= CROWD && kind !== "team") this.mark(tick + 1, kind, agent, title, gained);
      else together = kind === "team" ? gained : together + gained;
      this.moved.get(name).add(tick);
    }
    if (together > 0) this.mark(tick + 1, kind, -1, title, together);
  }

  mark(tick, kind, agent, title, amount = 1) {
    if (this.marks.length < MARKS_MOST) this.marks.push({tick, kind, agent, title, amount});
  }

  // ---- asking

  totalAt(tick) {
    const {owner, at} = this.place(tick);
    return at < 0 ? 0 : owner.total.data[at];
  }

  scoreAt(tick) {
    const {owner, at} = this.place(tick);
    return at < 0 ? 0 : owner.scores.data[at];
  }

  /** Whose row a tick is, or the last before it that is known, and which: one of ours, or of a branch we came from. */
  place(tick) {
    let owner = this;
    let at = Math.min(tick - owner.start, owner.total.length - 1);
    while (at < 0 && owner.parent) {
      const last = Math.min(tick, owner.start - 1);
      owner = owner.parent;
      at = Math.min(last - owner.start, owner.total.length - 1);
    }
    return {owner, at};
  }

  reward(tick, agent) {
    if (tick < this.start) return this.parent ? this.parent.reward(tick, agent) : 0;
    const at = tick - this.start;
    return at < this.rewards.length ? this.rewards.data[at * this.rewards.width + agent] : 0;
  }

  /** The sum of an agent's rewards before a tick. */
  returnOf(agent, tick) {
    let sum = 0;
    for (let t = 0; t < Math.min(tick, this.end); t += 1) sum += this.reward(t, agent);
    return sum;
  }

  /** Where the agents stood after a tick was played; null if nobody looked. */
  cellsAfter(tick) {
    if (tick < this.start) return this.parent ? this.parent.cellsAfter(tick) : null;
    const at = tick - this.start;
    return this.cells && at >= 0 && at < this.cells.length ? this.cells.row(at) : null;
  }

  /** A number of a vector game in the state before a tick. */
  seriesAt(name, tick) {
    if (tick < this.start && this.parent) return this.parent.seriesAt(name, tick);
    return this.series.get(name)?.[tick - this.start];
  }

  allMarks() {
    const before = this.parent ? this.parent.allMarks().filter((mark) => mark.tick <= this.start) : [];
    return before.concat(this.marks);
  }
}

/** What is worth a mark: the score, what the game names beside it, attacks and freezes, what teams win and lose. */
export function watchedOf(names, game) {
  const found = new Map();
  const add = (name, kind, title) => {
    if (names.includes(name) && !found.has(name)) found.set(name, {name, kind, title});
  };
  const score = game?.score?.stat;
  if (typeof score === "string" && score !== "reward") add(score, "score", score);
  for (const name of Array.isArray(game?.beside) ? game.beside : []) {
    if (name !== "length" && name !== "ticks") add(String(name), "beside", String(name));
  }
  for (const name of names) {
    if (/^action\.attack.*\.success$/.test(name)) add(name, "attack", "attack");
    else if (/^(frozen|freezes?|deaths?|attack\.|pirate_encounters|overheat)/.test(name) && !/ticks/.test(name)) add(name, "harm", name);
    else if (/^heart\.(get|gained)$/.test(name)) add(name, "score", name);
    else if (/^[^/]+\/aligned\..*\.(gained|lost)$/.test(name)) add(name, "team", name);
    else if (/aligned_by_agent$|deposited_by_agent$/.test(name)) add(name, "beside", name);
  }
  return [...found.values()].slice(0, 24);
}

/** The numbers of a vector game that are drawn as curves. */
function seriesOf(world) {
  const seen = world.inspect();
  const out = {};
  for (const [name, value] of Object.entries(seen.ship ?? seen)) if (typeof value === "number") out[name] = value;
  for (const [name, value] of Object.entries(seen.market?.price ?? {})) out[`price:${name}`] = value;
  return out;
}
