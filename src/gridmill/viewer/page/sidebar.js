// The side of the page: five panels under tabs. A panel is made when it is first opened, and only the one that is open
// is kept up to date, some times a second.

import {AgentPanel} from "./panel_agent.js";
import {BranchPanel} from "./panel_branches.js";
import {SeesPanel} from "./panel_sees.js";
import {StatsPanel} from "./panel_stats.js";
import {WorldPanel} from "./panel_world.js";
import {el} from "./dom.js";

const PANELS = [["Agent", AgentPanel], ["Sees", SeesPanel], ["World", WorldPanel], ["Stats", StatsPanel], ["Branches", BranchPanel]];
const FAST = 33; // ms between two updates of a panel
const SLOW = 150; // of one that costs more

export class Sidebar {
  constructor(app, commands) {
    this.app = app;
    this.commands = commands;
    this.panels = []; // by tab
    this.tabs = PANELS.map(([name], i) => el("button", {
      type: "button", role: "tab", id: `tab-${i}`, "aria-controls": `panel-${i}`, onclick: () => this.open(i),
      onkeydown: (event) => this.arrows(event, i),
    }, name));
    this.bodies = PANELS.map((_, i) => el("div", {role: "tabpanel", class: "panel", id: `panel-${i}`, "aria-labelledby": `tab-${i}`, tabindex: 0}));
    this.node = el("aside", {class: "side", "aria-label": "Panels"}, el("div", {class: "tabs", role: "tablist"}, this.tabs), this.bodies);
    this.built = new Set(); // panels that know what is open
    app.on("change", () => this.rebuild());
    for (const name of ["tick", "select", "overlays", "redraw", "check", "play"]) app.on(name, () => (this.stale = true));
    app.on("frame", (now) => this.frame(now));
    this.open(2);
  }

  open(index) {
    this.shown = index;
    this.tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === index));
      tab.tabIndex = i === index ? 0 : -1;
    });
    this.bodies.forEach((body, i) => (body.hidden = i !== index));
    if (this.app.track) this.build(this.panel);
    this.stale = true;
    this.updated = 0;
  }

  /** The one that is open. */
  get panel() {
    const {shown, panels} = this;
    if (!panels[shown]) {
      const [, Panel] = PANELS[shown];
      panels[shown] = new Panel(this.app, this.commands);
      this.bodies[shown].append(panels[shown].node);
    }
    return panels[shown];
  }

  arrows(event, i) {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by) return;
    const next = (i + by + this.tabs.length) % this.tabs.length;
    this.open(next);
    this.tabs[next].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  build(panel) {
    if (!this.built.has(panel)) panel.rebuild();
    this.built.add(panel);
  }

  rebuild() {
    this.built.clear();
    this.stale = true;
    this.updated = 0;
  }

  frame(now) {
    const {track, pane} = this.app;
    if (!track || !pane.seen || (!this.stale && track.done)) return;
    const {panel} = this;
    this.build(panel);
    const wait = panel.slow ? SLOW : FAST;
    if (now - (this.updated ?? 0) < (this.stale ? wait : 400)) return;
    this.stale = false;
    this.updated = now;
    panel.update();
  }
}
