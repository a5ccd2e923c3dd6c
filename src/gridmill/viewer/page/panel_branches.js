// Branches: the episode as it was recorded and everything that was played on from it, as a tree; how they compare.

import {partingTick} from "./branch.js";
import {css, el, figure, fill, fitted, plain} from "./dom.js";
import {agentColour} from "./palette.js";
import {titleOf} from "./players.js";

const MOST_ROWS = 200;

export class BranchPanel {
  constructor(app, commands) {
    this.app = app;
    this.commands = commands;
    this.slow = true;
    this.list = el("ul", {class: "branches", id: "branches"});
    this.chart = el("canvas", {class: "chart", role: "img", "aria-label": "Reward so far, by branch"});
    this.said = el("div", {id: "parting"});
    this.save = el("button", {type: "button", class: "tool strong", onclick: () => commands.save(), id: "save-fork"}, "Save the file with its forks");
    this.all = el("select", {"aria-label": "Who plays all agents", id: "who-all"});
    this.node = el("div", {},
      el("p", {class: "soft"}, "Stop at any tick, choose an agent and take it over: this starts a fork. The recorded branch does not change."),
      this.list, el("h3", {}, "Reward so far"), this.chart, this.said,
      el("h3", {}, "Give all agents to"), el("div", {class: "row"}, this.all, el("button", {type: "button", class: "tool", id: "give-all", onclick: () => commands.giveAll(this.all.value)}, "Fork here")),
      el("p", {}, this.save));
  }

  rebuild() {
    const {recording, track} = this.app;
    const scripts = track.world.scripts.map((name) => `script:${name}`);
    const names = [...scripts, ...(recording.policy?.canPlay ? ["policy"] : []), "random", "noop"];
    fill(this.all, names.map((name) => el("option", {value: name}, titleOf(name))));
    this.key = "";
  }

  update() {
    const {app} = this;
    const {recording, pane} = app;
    const key = recording.branches.map((branch) => [branch.name, branch.ticks, pane.tracks.get(branch)?.ledger.end]).join() + recording.branches.indexOf(app.track.branch);
    if (key !== this.key) {
      this.key = key;
      const rows = [...recording.branches.entries()].filter(([i, branch]) => i < MOST_ROWS || branch.live || branch === app.track.branch);
      const left = recording.branches.length - rows.length;
      fill(this.list, rows.map(([i, branch]) => this.row(branch, i)), left > 0 && el("li", {class: "soft"}, `and ${figure(left)} more in the file`));
      fill(this.said, this.compared());
    }
    this.save.disabled = !app.canSave;
    this.draw();
  }

  /** The score of the game by its title; a statistic is a mean over agents. */
  get scoreTitle() {
    const {title, stat} = this.app.recording.game.score;
    return plain(title || stat, 20);
  }

  row(branch, i) {
    const {app, commands} = this;
    const track = app.pane.tracks.get(branch);
    const chip = el("i", {class: "chip"});
    chip.style.background = agentColour(i);
    let depth = 0;
    for (let up = branch.parent; up; up = up.parent) depth += 1;
    const who = Object.entries(branch.who).slice(0, 12).map(([agent, name]) => `${agent === "*" ? "all" : agent}: ${titleOf(name)}`).join(", ");
    const {reward, score} = branch.result ?? {};
    const figures = [["reward", track ? track.ledger.totalAt(branch.ticks - 1) : reward * branch.agents]];
    if (app.track.ledger.scoreName) figures.push([this.scoreTitle, track ? track.ledger.scoreAt(branch.ticks - 1) : score]);
    const shown = app.track.branch === branch;
    const row = el("li", {class: shown ? "shown" : ""}, chip,
      el("button", {type: "button", class: "grow name", "aria-pressed": String(shown), onclick: () => app.showBranch(branch)},
        el("b", {}, plain(branch.name, 30)), el("span", {class: "soft"}, [branch.parent ? ` from ${figure(branch.forkTick)}` : "", ` to ${figure(branch.ticks)}`, branch.tags?.length ? ` · ${plain(branch.tags.join(", "), 30)}` : ""].join("")),
        who && el("p", {class: "soft"}, plain(who, 90))),
      el("div", {class: "figures"}, figures.map(([name, value]) => el("p", {}, el("span", {class: "soft"}, `${name} `), el("b", {}, figure(value))))),
      el("button", {type: "button", class: "tool", title: "Show side by side", "aria-label": `Show ${plain(branch.name, 30)} side by side`, onclick: () => commands.beside(branch)}, "◫"));
    row.style.marginLeft = `${Math.min(5, depth) * 14}px`;
    return row;
  }

  /** Where the shown branch parts from what was recorded (or from the other pane's), and what that brought. */
  compared() {
    const {app} = this;
    const mine = app.track.branch;
    const other = app.panes.length > 1 ? app.panes[1 - app.active].track.branch : app.recording.branches[0];
    if (!other || other === mine || other.agents !== mine.agents) return null;
    const tick = partingTick(mine, other);
    const end = Math.min(mine.ticks, other.ticks);
    const theirs = app.panes.length > 1 ? app.panes[1 - app.active].track : app.pane.trackOf(other);
    const [ours, others] = [app.track.ledger, theirs.ledger];
    const lines = [["reward", ours.totalAt(end - 1), others.totalAt(end - 1)]];
    if (ours.scoreName && others.scoreName === ours.scoreName) lines.push([this.scoreTitle, ours.scoreAt(end - 1), others.scoreAt(end - 1)]);
    const said = lines.map(([name, a, b]) => `${name} ${figure(a)} here, ${figure(b)} in ${plain(other.name, 30)} (${a >= b ? "+" : "−"}${figure(Math.abs(a - b))})`);
    return el("p", {}, tick === null ? "The actions are the same as far as both branches go. " : ["The branches diverge at tick ", el("button", {type: "button", class: "tool", onclick: () => app.seek(tick)}, figure(tick)), ". "],
      `At tick ${figure(end)}: ${said.join("; ")}.`);
  }

  draw() {
    const {context: c, width, height} = fitted(this.chart);
    c.clearRect(0, 0, width, height);
    const {recording, pane} = this.app;
    const tracks = recording.branches.map((branch, i) => ({branch, i, track: pane.tracks.get(branch)})).filter(({track}) => track);
    let [low, high, end] = [0, 1e-9, 1];
    for (const {track} of tracks) {
      end = Math.max(end, track.branch.ticks);
      for (let k = 0; k <= 60; k += 1) {
        const value = track.ledger.totalAt(Math.floor((track.ledger.end * k) / 60) - 1);
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    const x = (tick) => (tick / end) * (width - 6) + 3;
    const y = (value) => height - 4 - ((value - low) / (high - low)) * (height - 20);
    for (const {track, i, branch} of tracks) {
      c.beginPath();
      const from = Math.max(0, branch.forkTick - 1);
      const points = Math.min(width, Math.max(2, track.ledger.end - from));
      for (let k = 0; k <= points; k += 1) {
        const tick = from + Math.floor(((track.ledger.end - from) * k) / points);
        const [px, py] = [x(tick), y(track.ledger.totalAt(tick - 1))];
        if (k) c.lineTo(px, py);
        else c.moveTo(px, py);
      }
      c.strokeStyle = agentColour(i);
      c.lineWidth = branch === this.app.track.branch ? 2.6 : 1.6;
      c.stroke();
    }
    c.fillStyle = css("--soft");
    c.font = "12px system-ui, sans-serif";
    if (high > 1e-6) c.fillText(figure(high), 4, 11);
    c.fillStyle = css("--ink");
    c.fillRect(x(this.app.tick), 0, 1, height);
  }
}
