// Who plays which agent of a live branch: a person at the keyboard, a script of the engine, the policy of the file, chance,
// nobody, or the actions of the branch it came from, as far as they go.

/** A way to play, from its name in a file: `human`, `replay`, `random`, `noop`, `policy`, `script:NAME`. */
export class Players {
  constructor(track) {
    this.track = track;
    this.scripts = new Map();
    this.policy = null;
    this.options = {greedy: false, temperature: 1};
    this.idle = idleOf(track.info.actionNames);
  }

  get who() {
    return this.track.branch.who;
  }

  of(agent) {
    return this.who[agent] ?? this.who["*"] ?? (this.track.branch.parent ? "replay" : "noop");
  }

  /** The agent that a person plays, or -1. */
  get human() {
    for (const [agent, name] of Object.entries(this.who)) if (name === "human" && agent !== "*") return Number(agent);
    return this.who["*"] === "human" ? 0 : -1;
  }

  /** What everybody does now; a person who has not decided waits. */
  decide(human) {
    const {track} = this;
    const {branch, world} = track;
    const tick = branch.ticks;
    const out = new Int32Array(branch.agents);
    for (let agent = 0; agent < branch.agents; agent += 1) {
      const name = this.of(agent);
      out[agent] = name === "human" ? human ?? this.idle : this.answer(name, agent, tick, world);
    }
    return out;
  }

  answer(name, agent, tick, world) {
    if (name === "replay") return this.recorded(tick, agent);
    if (name === "random") return chance(agent, tick, world);
    if (name === "policy" && this.policy) {
      const {greedy, temperature} = this.options;
      return this.policy.act(agent, {greedy, temperature, seed: this.track.recording.seed, step: tick});
    }
    if (name.startsWith("script:")) return this.script(name.slice(7), world).act(agent);
    return this.idle;
  }

  /** What this agent did in the branch that the fork came from. */
  recorded(tick, agent) {
    for (let up = this.track.branch.parent; up; up = up.parent) if (tick < up.ticks) return up.action(tick, agent);
    return this.idle;
  }

  script(name, world) {
    if (!this.scripts.has(name)) this.scripts.set(name, world.script(name));
    return this.scripts.get(name);
  }

  /** After a jump nobody's memory fits any more. */
  forget() {
    for (const script of this.scripts.values()) script.reset();
    if (this.policy) this.policy.begin(this.track.world);
  }

  usePolicy(policy) {
    this.policy = policy;
    policy.begin(this.track.world);
  }

  close() {
    if (this.policy) this.policy.close();
    this.policy = null;
  }
}

/** The action of somebody who does nothing. */
function idleOf(names) {
  return Math.max(0, ...["noop", "hold", "stay"].map((name) => names.indexOf(name)));
}

/** The names that can be chosen for an agent. */
export function choices(track) {
  const names = ["replay", "human", ...track.world.scripts.map((name) => `script:${name}`)];
  if (track.recording.policy?.canPlay) names.push("policy");
  names.push("random", "noop");
  return track.branch.parent || !track.branch.live ? names : names.filter((name) => name !== "replay");
}

export function titleOf(name) {
  if (name === "replay") return "as recorded";
  if (name === "human") return "you, by keyboard";
  if (name === "noop") return "waits";
  if (name.startsWith("script:")) return `script ${name.slice(7)}`;
  return name;
}

/** One of the actions that would succeed, drawn from a hash of who and when: a jump back draws the same again. */
function chance(agent, tick, world) {
  let h = Math.imul(agent + 1, 0x9e3779b1) ^ Math.imul(tick + 1, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  h = (h ^ (h >>> 12)) >>> 0;
  const masks = world.masks(agent);
  const open = [];
  masks.forEach((can, action) => can && open.push(action));
  return open.length ? open[h % open.length] : 0;
}
