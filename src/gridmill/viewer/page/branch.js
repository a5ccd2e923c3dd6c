// A branch: what every agent did from some tick on. The first branch of a file is what was recorded; a fork shares the
// ticks before it with its parent, so only its own actions are kept.

/** Numbers that grow: one typed array, doubled when it is full. */
export class Column {
  constructor(Type, width = 1, room = 256) {
    this.width = width;
    this.length = 0; // rows
    this.data = new Type(room * width);
  }

  row(index) {
    return this.data.subarray(index * this.width, (index + 1) * this.width);
  }

  push(values) {
    const at = this.length * this.width;
    if (at + this.width > this.data.length) {
      const next = new this.data.constructor(Math.max(this.data.length * 2, at + this.width, 256));
      next.set(this.data);
      this.data = next;
    }
    if (this.width === 1) this.data[at] = values;
    else this.data.set(values, at);
    this.length += 1;
  }

  static of(data, width) {
    const column = new Column(data.constructor, width, 0);
    column.data = data;
    column.length = data.length / width;
    return column;
  }
}

export class Branch {
  constructor({name, agents, parent = null, forkTick = 0, actions = null, who = {}, hashes = null, keyframes = [], values = null}) {
    Object.assign(this, {name, agents, parent, forkTick, who, hashes, keyframes, values});
    this.own = actions ? Column.of(actions, agents) : new Column(Uint16Array, agents);
    this.live = actions === null; // grows as it is played
  }

  /** Ticks that are known, those of the parents included. */
  get ticks() {
    return this.forkTick + this.own.length;
  }

  /** The actions of tick `tick`, one per agent. */
  at(tick) {
    return tick < this.forkTick ? this.parent.at(tick) : this.own.row(tick - this.forkTick);
  }

  action(tick, agent) {
    return tick >= 0 && tick < this.ticks ? this.at(tick)[agent] : -1;
  }

  push(actions) {
    this.own.push(actions);
  }

  /** The branch that has a tick of its own: this one, or the parent it came from. */
  ownerOf(tick) {
    return tick < this.forkTick ? this.parent.ownerOf(tick) : this;
  }

  /** The value that the policy gave, if it was recorded. */
  value(tick, agent) {
    const owner = this.ownerOf(tick);
    if (!owner.values) return null;
    const at = (tick - owner.forkTick) * owner.agents + agent;
    return at < owner.values.length ? owner.values[at] : null;
  }
}

/** What the policy made of its actions at a tick, if that was recorded: shares from 0 to 1. */
export function recordedShares(branch, tick, agent) {
  const owner = tick < branch.ticks ? branch.ownerOf(tick) : null;
  if (!owner?.probabilities) return null;
  const count = owner.probabilities.length / (owner.own.length * owner.agents);
  const at = ((tick - owner.forkTick) * owner.agents + agent) * count;
  return Array.from(owner.probabilities.subarray(at, at + count), (share) => share / 255);
}

/** The first tick at which two branches of one recording act differently; null if one only goes on where the other ends. */
export function partingTick(a, b) {
  const most = Math.min(a.ticks, b.ticks);
  let from = 0;
  for (const [mine, other] of [[a, b], [b, a]]) {
    for (let up = mine; up; up = up.parent) if (up.parent === other) from = Math.max(from, up.forkTick);
  }
  for (let tick = from; tick < most; tick += 1) {
    const x = a.at(tick);
    const y = b.at(tick);
    for (let i = 0; i < a.agents; i += 1) if (x[i] !== y[i]) return tick;
  }
  return null;
}
