// Play, pause, step, speed, and the tick in figures.

import {SPEEDS} from "./app.js";
import {el, figure, fill, icon, say} from "./dom.js";

const PATHS = {
  play: "M7 4.5v15l13-7.5z", pause: "M6 4.5h4.5v15H6zM13.5 4.5H18v15h-4.5z", first: "M5 5h2.5v14H5zM20 5v14L9 12z",
  last: "M16.5 5H19v14h-2.5zM4 5v14l11-7z", back: "M14.5 5v14L4 12z", ahead: "M9.5 5v14L20 12z",
};

export function button(path, title, onclick, more = {}) {
  return el("button", {type: "button", title, "aria-label": title, class: "round", onclick, ...more}, icon(path));
}

export class Transport {
  constructor(app) {
    this.app = app;
    this.play = button(PATHS.play, "Play or pause (space)", () => app.toggle(), {class: "round primary", id: "play"});
    this.tick = el("input", {class: "tick", type: "text", inputmode: "numeric", "aria-label": "Tick", id: "tick", onchange: (event) => this.typed(event)});
    this.end = el("span", {class: "soft"});
    this.state = el("span", {class: "soft", role: "status", id: "state"});
    this.speed = el("select", {"aria-label": "Speed in ticks per second", title: "Ticks per second ([ and ])", id: "speed", onchange: (event) => {
      app.setSpeed(Number(event.target.value));
      event.target.blur();
    }},
      SPEEDS.map((speed) => el("option", {value: speed}, `${figure(speed)} ticks/s`)));
    this.node = el("div", {class: "transport"},
      button(PATHS.first, "To the beginning (Home)", () => app.seek(0)),
      button(PATHS.back, "One tick back (left)", () => app.step(-1)),
      this.play,
      button(PATHS.ahead, "One tick forward (right)", () => app.step(1), {id: "ahead"}),
      button(PATHS.last, "To the end (End)", () => app.seek(app.end)),
      el("span", {class: "ticks"}, this.tick, this.end), this.speed, this.state);
    app.on("play", () => this.refresh());
    app.on("frame", () => this.frame());
    this.refresh();
  }

  typed(event) {
    const tick = Number(event.target.value.replace(/\D/g, ""));
    if (Number.isFinite(tick)) this.app.seek(tick);
    event.target.blur();
  }

  refresh() {
    fill(this.play, icon(this.app.playing ? PATHS.pause : PATHS.play));
    this.play.setAttribute("aria-pressed", String(this.app.playing));
    this.speed.value = String(this.app.speed);
  }

  frame() {
    const {app} = this;
    if (document.activeElement !== this.tick && this.tick.value !== String(app.tick)) this.tick.value = String(app.tick);
    say(this.end, `/ ${figure(app.end)}`);
    const {track} = app;
    if (!track) return;
    if (!app.arrived) say(this.state, `playing to tick ${figure(track.shownTick)} …`);
    else if (!track.done) say(this.state, `played ahead to ${figure(track.ledger.end)}`);
    else say(this.state, "");
  }
}
