// What if: from the tick that is shown, the selected agent tries every action it could take, and everybody plays on for a
// while. A table says what the rollouts of each brought, and what a policy's critic expected. It runs beside the picture,
// in a world of its own, a few milliseconds per frame.

import {el, figure, fill, plain, show} from "./dom.js";
import {Players, titleOf} from "./players.js";

const SLICE = 7; // ms of a frame

export class WhatIf {
  constructor(app, commands) {
    this.app = app;
    this.commands = commands;
    this.by = el("select", {"aria-label": "Who continues", id: "whatif-by"});
    this.ticks = el("select", {"aria-label": "For how many ticks", id: "whatif-ticks"}, [10, 25, 50, 100, 200].map((n) => el("option", {value: n, selected: n === 50}, `${n} ticks`)));
    this.button = el("button", {type: "button", class: "tool", id: "whatif", onclick: () => this.toggle()}, "Try every action");
    this.list = el("ol", {class: "whatif"});
    this.said = el("p", {class: "soft"});
    this.node = el("div", {}, el("h3", {}, "What if"), el("div", {class: "row"}, this.button, this.by, this.ticks), this.said, this.list);
    app.on("frame", () => this.work());
    for (const name of ["tick", "branch", "panes", "select"]) app.on(name, () => this.stop());
  }

  rebuild() {
    this.stop();
    const {track, recording} = this.app;
    const names = [...(recording.policy?.canPlay ? ["policy"] : []), ...track.world.scripts.map((name) => `script:${name}`), "random"];
    fill(this.by, names.map((name) => el("option", {value: name}, `then ${titleOf(name)}`)));
  }

  toggle() {
    if (this.job) this.stop();
    else this.commands.guarded("what if", () => this.start());
  }

  async start() {
    const {app} = this;
    const {track} = app;
    const agent = Math.max(0, app.selected);
    app.pause();
    if (track.world.ended) throw new Error("the episode is over: go back a tick");
    const name = this.by.value;
    const policy = name === "policy" ? await this.commands.makePolicy() : null;
    const world = track.open();
    world.restore(track.world.save());
    const masks = world.masks(agent);
    const actions = [...masks.keys()].filter((action) => masks[action]);
    const tries = name.startsWith("script:") ? 1 : 6; // a script does the same again
    this.job = {
      world, agent, name, policy, tick: track.shownTick, from: world.save(), ticks: Number(this.ticks.value), tries, actions, rollouts: new Map(actions.map((action) => [action, []])),
      queue: actions.flatMap((action) => Array.from({length: tries}, (_, i) => ({action, i}))), run: null, track,
      players: new Players({branch: track.branch, world, info: track.info, recording: track.recording}),
    };
    if (policy) {
      this.job.players.usePolicy(policy);
      this.job.thought = policy.think(agent);
    }
    fill(this.button, "Stop");
    this.show();
  }

  stop() {
    if (!this.job) return;
    this.job.players.close();
    this.job.world.close();
    this.job = null;
    fill(this.button, "Try every action");
  }

  /** Some milliseconds of rollouts. */
  work() {
    const {job} = this;
    if (!job) return;
    const until = performance.now() + SLICE;
    while (performance.now() < until) {
      if (!job.run && !this.begin(job)) {
        this.show();
        this.stop();
        return;
      }
      this.step(job);
    }
    this.show();
  }

  begin(job) {
    const next = job.queue.shift();
    if (!next) return false;
    job.world.restore(job.from);
    job.players.forget();
    job.run = {...next, left: job.ticks, sum: 0, discounted: 0, tick: job.tick};
    return true;
  }

  /** One tick: in the first the agent does what is tried and the others what they did; then all play on. */
  step(job) {
    const {run, world, players, track, agent} = job;
    const first = run.tick === job.tick;
    const row = new Int32Array(track.info.numAgents);
    for (let i = 0; i < row.length; i += 1) {
      const recorded = first ? track.branch.action(run.tick, i) : -1;
      row[i] = recorded >= 0 ? recorded : players.answer(job.name, i, run.tick + 7919 * run.i, world);
    }
    if (first) row[agent] = run.action;
    world.step(row);
    const reward = world.rewards[agent];
    const {gamma, rewardScale} = track.recording.policy ?? {};
    run.sum += reward;
    run.discounted += gamma ** (run.tick - job.tick) * reward;
    run.tick += 1;
    run.left -= 1;
    if (run.left > 0 && !world.ended) return;
    if (job.policy && !world.ended) run.discounted += gamma ** (run.tick - job.tick) * rewardScale * job.policy.think(agent).value;
    job.rollouts.get(run.action).push(run);
    job.run = null;
  }

  show() {
    const {job} = this;
    const rows = job.actions.map((action) => ({action, ...summary(job.rollouts.get(action).map((run) => run.sum))}));
    rows.sort((a, b) => b.mean - a.mean);
    const known = rows.filter((row) => row.count);
    const [low, high] = [Math.min(0, ...known.map((row) => row.low)), Math.max(1e-9, ...known.map((row) => row.high))];
    const did = job.track.branch.action(job.tick, job.agent);
    const head = el("li", {class: "soft"}, ["action", "mean", "5 %", "median", "95 %"].map((title) => el("span", {}, title)));
    fill(this.list, head, rows.slice(0, 24).map((row) => {
      const range = el("i");
      range.style.marginLeft = `${(100 * (row.low - low)) / (high - low)}%`;
      range.style.width = `${(100 * (row.high - row.low)) / (high - low)}%`;
      const numbers = [row.mean, row.low, row.middle, row.high].map((value) => el("b", {}, row.count ? figure(value) : "…"));
      return el("li", {class: row.action === did ? "next" : "", "data-action": row.action}, el("span", {}, plain(job.track.info.actionNames[row.action], 28)), numbers, el("span", {class: "bar"}, range));
    }));
    const open = job.queue.length + (job.run ? 1 : 0);
    fill(this.said, open ? `${open} rollouts to go` : [result(job, rows, did), critic(job)].filter(Boolean).join(" "));
    show(this.said, true);
  }
}

/** What was paid, and how much below the best the action was that the agent took. */
function result(job, rows, did) {
  const own = rows.find((row) => row.action === did);
  const paid = `Reward of agent ${job.agent} in ${job.ticks} ticks, ${job.tries === 1 ? "one rollout" : `${job.tries} rollouts`} of each action.`;
  return own ? `${paid} What it did is ${figure(Math.max(0, rows[0].mean - own.mean))} below the best.` : paid;
}

/** The policy's value against the discounted mean of the rollouts, actions weighed as the policy takes them. */
function critic({policy, thought, rollouts, track}) {
  const {gamma, rewardScale} = track.recording.policy ?? {};
  if (!policy || gamma === null || rewardScale === null) return "";
  let [expected, weight] = [0, 0];
  for (const [action, runs] of rollouts) {
    expected += thought.probs[action] * summary(runs.map((run) => run.discounted)).mean;
    weight += thought.probs[action];
  }
  const value = rewardScale * thought.value;
  const error = value - expected / weight;
  return `The critic says ${figure(value)}, the mean discounted return is ${figure(expected / weight)} (gamma ${gamma}): error ${error > 0 ? "+" : ""}${figure(error)}.`;
}

/** Of some numbers: how many, their mean, and quantiles as numpy computes them. */
function summary(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const at = (share) => {
    const place = share * (sorted.length - 1);
    const below = Math.floor(place);
    return sorted[below] + (place - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
  };
  return {count: sorted.length, mean: sorted.reduce((a, b) => a + b, 0) / Math.max(1, sorted.length), low: at(0.05), middle: at(0.5), high: at(0.95)};
}
