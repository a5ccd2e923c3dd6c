// The world: what stands in it (the legend), what teams own, what can be laid over the map, and where all this comes from.

import {breakable, css, el, figure, fill, plain, say, show} from "./dom.js";
import {drawAgent} from "./figures.js";
import {agentColour, resourceColour, teamColour} from "./palette.js";
import {drawSymbol} from "./symbols.js";
import {KINDS} from "./timeline.js";

const OVERLAYS = [["areas", "Areas and territory", "A"], ["window", "Window of the agent", "W"], ["trail", "Trail of the agent", "R"], ["heat", "Visits", "H"]];

/** The first of some names, and how many others there are. */
function listed(names, most = 4) {
  const rest = names.length - most;
  return names.slice(0, most).map((name) => plain(name, 40)).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

export class WorldPanel {
  constructor(app, commands) {
    this.app = app;
    this.slow = true;
    this.switches = new Map();
    const toggles = OVERLAYS.map(([name, title, key]) => {
      const box = el("input", {type: "checkbox", id: `overlay-${name}`, onchange: () => app.toggleOverlay(name)});
      this.switches.set(name, box);
      return el("label", {class: "switch"}, box, el("span", {}, title), el("kbd", {}, key));
    });
    this.overlays = el("div", {}, el("h3", {}, "On the map"), el("div", {class: "switches"}, toggles));
    this.legend = el("ul", {class: "legend", id: "legend"});
    this.events = el("ul", {class: "events"});
    this.teams = el("div");
    this.about = el("dl", {class: "facts"});
    this.node = el("div", {}, el("h3", {}, "Legend"), this.legend, this.teams, el("h3", {}, "On the timeline"), this.events, this.overlays, el("h3", {}, "About"), this.about,
      el("p", {}, el("button", {type: "button", class: "tool", onclick: commands.copyLink, id: "copy-link"}, "Copy a link to this tick and agent")));
  }

  rebuild() {
    this.rows = new Map();
    fill(this.legend);
    const {recording, track} = this.app;
    show(this.overlays, track.info.kind === "grid");
    fill(this.events, Object.entries(KINDS).map(([kind, {title, colour}]) => {
      const dot = el("i", {class: "dot"});
      dot.style.background = colour;
      const names = [...new Set(track.ledger.watched.filter((w) => w.kind === kind).map((w) => w.title))];
      return (names.length > 0 || kind === "end") && el("li", {}, dot, el("span", {}, title), el("span", {class: "soft"}, listed(names)));
    }));
    const {info} = track;
    const facts = [
      ["game", recording.title], ["size", info.width && `${info.height} × ${info.width}`], ["agents", figure(info.numAgents)], ["actions", info.numActions],
      ["seed", recording.seed], ["ticks", figure(track.branch.ticks)], ["policy", recording.policy?.name], ["recorded by", `gridmill ${recording.version}${recording.commit ? ` (${recording.commit.slice(0, 10)})` : ""}`],
      ["engine", this.app.engine.version], ["score", recording.game?.score?.title || recording.game?.score?.stat],
    ];
    fill(this.about, facts.filter(([, value]) => value !== undefined && value !== null && value !== "").map(([name, value]) => [el("dt", {}, name), el("dd", {}, plain(value, 90))]));
  }

  update() {
    const {app} = this;
    for (const [name, box] of this.switches) box.checked = app.overlays[name];
    const {seen} = app.pane;
    if (app.track.info.kind === "prospector") this.updateBelt(seen);
    else this.updateLegend(seen.objects ?? []);
    this.updateTeams(seen.collectives ?? {});
  }

  updateLegend(objects) {
    const counts = new Map();
    for (const thing of objects) {
      const name = thing.agent === undefined ? thing.type : "agent";
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    for (const name of [...counts.keys()].sort()) if (!this.rows.has(name)) this.addRow(name);
    for (const [name, row] of this.rows) say(row, figure(counts.get(name) ?? 0));
  }

  addRow(name, paint = null) {
    const canvas = el("canvas", {width: 60, height: 60, "aria-hidden": "true"});
    const c = canvas.getContext("2d");
    if (paint) paint(c);
    else if (name === "agent") drawAgent(c, 30, 30, 60, {colour: agentColour(0), facing: "south"});
    else {
      c.scale(0.6, 0.6);
      drawSymbol(c, name, name === "wall" ? css("--wall") || "#667089" : undefined);
    }
    const count = el("b");
    this.rows.set(name, count);
    this.legend.append(el("li", {}, canvas, el("span", {}, breakable(name, 28)), count));
  }

  updateBelt(seen) {
    const dot = (colour) => (c) => {
      c.beginPath();
      c.arc(30, 30, 17, 0, Math.PI * 2);
      c.fillStyle = colour;
      c.fill();
    };
    const kinds = [["station", "#4f8ae0"], ["cluster", "#7f93b5"], ["hazard", "#e2603f"]];
    for (const [name, colour] of kinds) if (!this.rows.has(name)) this.addRow(name, dot(colour));
    for (const good of this.app.track.info.goods) if (!this.rows.has(good)) this.addRow(good, dot(resourceColour(good)));
    for (const [name, row] of this.rows) {
      const count = seen.sectors.filter((sector) => sector.type === name).length;
      say(row, count ? figure(count) : `${seen.market.price[name]?.toFixed(0) ?? ""}`);
    }
  }

  updateTeams(teams) {
    const names = this.app.track.info.collectives ?? [];
    const key = JSON.stringify(teams);
    if (key === this.teamKey) return;
    this.teamKey = key;
    const entries = Object.entries(teams);
    fill(this.teams, entries.length > 0 && el("h3", {}, "Teams"), entries.map(([name, {inventory}]) => {
      const dot = el("i", {class: "chip"});
      dot.style.background = teamColour(Math.max(0, names.indexOf(name)));
      const held = Object.entries(inventory).map(([what, amount]) => `${figure(amount)} ${what}`).join(" · ");
      return el("div", {class: "row"}, dot, el("div", {class: "grow"}, el("b", {}, plain(name, 30)), el("p", {class: "soft"}, plain(held || "nothing", 120))));
    }));
  }
}
