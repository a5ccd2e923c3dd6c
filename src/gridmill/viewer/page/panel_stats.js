// All statistics of the episode so far: of the selected agent, and over all agents.

import {breakable, el, figure, fill, show} from "./dom.js";

export class StatsPanel {
  constructor(app) {
    this.app = app;
    this.slow = true;
    this.filter = el("input", {type: "search", class: "filter", placeholder: "Find a statistic", "aria-label": "Find a statistic", oninput: () => this.update()});
    this.zeros = el("input", {type: "checkbox", onchange: () => this.update()});
    this.mine = el("th", {}, "agent");
    this.body = el("tbody", {id: "stats"});
    this.node = el("div", {}, this.filter, el("label", {class: "switch"}, this.zeros, el("span", {}, "Show zeros")),
      el("table", {class: "stats"}, el("thead", {}, el("tr", {}, el("th", {}, "statistic"), this.mine, el("th", {}, "mean"), el("th", {}, "sum"))), this.body));
  }

  rebuild() {}

  update() {
    const {app} = this;
    const {track} = app;
    const ended = track.over && app.tick >= track.branch.ticks && track.endedStats;
    const stats = ended || track.world.stats();
    const wanted = this.filter.value.trim().toLowerCase();
    const agent = app.selected;
    show(this.mine, agent >= 0);
    const score = app.recording.game?.score?.stat;
    const names = Object.keys(stats);
    names.sort((a, b) => rank(a, score) - rank(b, score) || a.localeCompare(b));
    const rows = [];
    for (const name of names) {
      const column = stats[name];
      let sum = 0;
      for (const value of column) sum += value;
      if ((wanted && !name.toLowerCase().includes(wanted)) || (!this.zeros.checked && sum === 0 && !(agent >= 0 && column[agent]))) continue;
      rows.push(el("tr", {class: name === score ? "strong" : ""}, el("th", {scope: "row"}, breakable(name, 44)), agent >= 0 && el("td", {}, figure(column[agent])), el("td", {}, figure(sum / column.length)), el("td", {}, figure(sum))));
      if (rows.length >= 300) break;
    }
    fill(this.body, rows);
  }
}

/** The score first, then what people ask for, actions last. */
function rank(name, score) {
  if (name === score) return 0;
  if (name === "reward") return 1;
  if (name.startsWith("action.")) return 4;
  return name.includes("/") ? 3 : 2;
}
