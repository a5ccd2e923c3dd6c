// The timeline: the whole episode in a strip. A curve of what was earned, marks of what happened, how far the engine has
// played, where branches part, and the head that one drags.

import {css, el, figure, fitted} from "./dom.js";
import {agentColour, faded} from "./palette.js";

export const KINDS = {
  score: {title: "score", colour: "#e0457b", lane: 0},
  beside: {title: "towards the score", colour: "#2fa58c", lane: 1},
  team: {title: "teams", colour: "#e0a52a", lane: 2},
  attack: {title: "attacks", colour: "#e5484d", lane: 3},
  harm: {title: "hits", colour: "#4aa8d8", lane: 4},
  end: {title: "end", colour: "#8a93a3", lane: 5},
};
const EDGE = 14;

export class Timeline {
  constructor(app) {
    this.app = app;
    this.canvas = el("canvas", {
      class: "timeline", tabindex: 0, role: "slider", "aria-label": "Tick", "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0,
    });
    this.tip = el("div", {class: "tip", hidden: true});
    this.node = el("div", {class: "timeline-box"}, this.canvas, this.tip);
    this.listen();
    for (const name of ["tick", "change", "branch", "redraw", "select", "panes"]) app.on(name, () => (this.stale = true));
    app.on("frame", (now) => this.frame(now));
  }

  listen() {
    const {canvas, app} = this;
    const tickAt = (event) => {
      const box = canvas.getBoundingClientRect();
      return ((event.clientX - box.left - EDGE) / Math.max(1, box.width - 2 * EDGE)) * app.end;
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.wasPlaying = app.playing;
      app.pause();
      app.seek(tickAt(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons === 1) app.seek(tickAt(event));
      this.hover(event, Math.max(0, Math.min(app.end, Math.round(tickAt(event)))));
    });
    canvas.addEventListener("pointerup", () => {
      if (this.wasPlaying) app.play();
      this.wasPlaying = false;
    });
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
  }

  hover(event, tick) {
    const near = Math.max(1, (Math.max(1, this.app.end) * 5) / Math.max(1, this.canvas.clientWidth));
    const found = this.marks().filter((mark) => Math.abs(mark.tick - tick) <= near).slice(0, 4);
    const lines = found.map((mark) => `${mark.tick}: ${mark.title}${mark.agent >= 0 ? ` · agent ${mark.agent}` : ""}${mark.amount > 1 ? ` · ${figure(mark.amount)}` : ""}`);
    this.tip.textContent = [`tick ${tick}`, ...lines].join("\n");
    this.tip.hidden = false;
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    this.tip.style.left = `${Math.max(4, Math.min(x - 60, box.width - 190))}px`;
  }

  marks() {
    return this.app.track ? this.app.track.ledger.allMarks() : [];
  }

  frame(now) {
    const {track} = this.app;
    if (!track) return;
    if (track.done !== this.wasDone) this.stale = true;
    this.wasDone = track.done;
    if (!track.done && now - (this.painted ?? 0) > 120) this.stale = true;
    if (!this.stale && !this.app.playing) return;
    this.stale = false;
    this.painted = now;
    this.draw();
    this.canvas.setAttribute("aria-valuemax", this.app.end);
    this.canvas.setAttribute("aria-valuenow", this.app.tick);
    this.canvas.setAttribute("aria-valuetext", `tick ${this.app.tick} of ${this.app.end}`);
  }

  draw() {
    const {context: c, width, height} = fitted(this.canvas);
    this.c = c;
    this.size = {width, height, top: 6, base: height - 16};
    const {end} = this.app;
    this.x = (tick) => EDGE + ((width - 2 * EDGE) * tick) / Math.max(1, end);
    c.clearRect(0, 0, width, height);
    this.drawStrip();
    this.app.panes.forEach((pane, i) => pane.track && this.drawCurve(pane.track, i));
    this.drawMarks();
    this.drawForks();
    this.drawScale();
    this.drawHead();
  }

  drawStrip() {
    const {c} = this;
    const {width, top, base} = this.size;
    c.beginPath();
    c.roundRect(EDGE - 4, top, width - 2 * EDGE + 8, base - top, 6);
    c.fillStyle = css("--card2");
    c.fill();
    const {track} = this.app;
    if (!track.done) {
      const x = this.x(track.ledger.end);
      c.fillStyle = css("--stripe");
      c.fillRect(x, top, width - EDGE + 4 - x, base - top);
    }
  }

  /** Reward of everybody so far; of the selected agent if there is one. */
  drawCurve(track, index) {
    const {ledger} = track;
    const {width, top, base} = this.size;
    const agent = this.app.selected;
    const points = Math.min(width, Math.max(2, ledger.end));
    const values = [];
    let sum = 0;
    let done = 0;
    for (let i = 0; i <= points; i += 1) {
      const tick = Math.floor((ledger.end * i) / points);
      if (agent >= 0) {
        for (; done < tick; done += 1) sum += ledger.reward(done, agent);
        values.push([tick, sum]);
      } else values.push([tick, ledger.totalAt(tick - 1)]);
    }
    let [low, high] = [0, 0];
    for (const [, value] of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const range = high - low < 1e-9 ? 1 : high - low; // nothing earned is a line too
    const y = (value) => base - 3 - ((value - low) / range) * (base - top - 12);
    const {c} = this;
    c.beginPath();
    values.forEach(([tick, value], i) => (i ? c.lineTo(this.x(tick), y(value)) : c.moveTo(this.x(tick), y(value))));
    const colour = agent >= 0 ? agentColour(agent) : index ? css("--second") : css("--accent");
    c.lineWidth = 1.8;
    c.lineJoin = "round";
    c.strokeStyle = colour;
    c.stroke();
    c.lineTo(this.x(values[values.length - 1][0]), base);
    c.lineTo(this.x(0), base);
    c.fillStyle = faded(colour, 0.12);
    c.fill();
  }

  drawMarks() {
    const {c} = this;
    const {top, base} = this.size;
    const {selected} = this.app;
    const used = new Set();
    for (const mark of this.marks()) {
      const kind = KINDS[mark.kind] ?? KINDS.beside;
      const x = Math.round(this.x(mark.tick));
      const mine = selected < 0 || mark.agent < 0 || mark.agent === selected;
      const key = (x * 8 + kind.lane) * 2 + Number(mine);
      if (used.has(key)) continue;
      used.add(key);
      if (mark.kind === "end") {
        c.fillStyle = kind.colour;
        c.fillRect(x - 1, top, 2, base - top);
        continue;
      }
      const y = top + 6 + kind.lane * ((base - top - 8) / 5);
      c.beginPath();
      c.arc(x, y, mine && selected >= 0 ? 3.4 : 2.4, 0, Math.PI * 2);
      c.fillStyle = faded(kind.colour, mine ? 0.95 : 0.18);
      c.fill();
    }
  }

  drawForks() {
    const {c} = this;
    const {base} = this.size;
    for (const branch of this.app.recording.branches) {
      if (!branch.parent) continue;
      const x = this.x(branch.forkTick);
      c.beginPath();
      c.moveTo(x - 5, base + 3);
      c.lineTo(x + 5, base + 3);
      c.lineTo(x, base - 5);
      c.closePath();
      c.fillStyle = branch === this.app.track.branch ? css("--accent") : css("--soft");
      c.fill();
    }
  }

  drawScale() {
    const {c} = this;
    const {width, height} = this.size;
    const {end} = this.app;
    const rough = (end * 90) / Math.max(1, width);
    const unit = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
    const every = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= rough) ?? unit * 10;
    c.fillStyle = css("--soft");
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "alphabetic";
    for (let tick = 0; tick <= end; tick += Math.max(1, every)) {
      const atEnd = this.x(tick) > width - EDGE - 16;
      c.textAlign = tick === 0 ? "left" : atEnd ? "right" : "center";
      c.fillText(figure(tick), this.x(tick) + (tick === 0 ? -4 : atEnd ? 4 : 0), height - 3);
    }
  }

  drawHead() {
    const {c} = this;
    const {top, base} = this.size;
    const x = this.x(Math.min(this.app.tick, this.app.end));
    c.fillStyle = css("--ink");
    c.fillRect(x - 1, top - 3, 2, base - top + 6);
    c.beginPath();
    c.arc(x, top - 1, 5, 0, Math.PI * 2);
    c.fill();
    c.beginPath();
    c.arc(x, top - 1, 2, 0, Math.PI * 2);
    c.fillStyle = css("--accent");
    c.fill();
  }
}
