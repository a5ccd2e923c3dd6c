// A small curve of one agent: its rewards as bars, their sum as a line, the policy's values if they were recorded.

import {css, el, figure, fitted} from "./dom.js";
import {agentColour, faded} from "./palette.js";

export class Spark {
  constructor() {
    this.canvas = el("canvas", {class: "spark", role: "img", "aria-label": "Rewards of this agent"});
  }

  draw(track, agent) {
    const {context: c, width, height} = fitted(this.canvas);
    c.clearRect(0, 0, width, height);
    const {ledger, branch} = track;
    const end = Math.max(1, branch.ticks);
    const known = ledger.end;
    const columns = Math.max(1, Math.floor(width / 2));
    const sums = new Float64Array(columns);
    const peaks = new Float64Array(columns);
    const values = new Float64Array(columns).fill(NaN);
    let sum = 0;
    for (let tick = 0; tick < known; tick += 1) {
      const reward = ledger.reward(tick, agent);
      const at = Math.min(columns - 1, Math.floor((tick / end) * columns));
      sum += reward;
      sums[at] = sum;
      if (Math.abs(reward) > Math.abs(peaks[at])) peaks[at] = reward;
      const value = branch.values || branch.parent ? branch.value(tick, agent) : null;
      if (value !== null) values[at] = value;
    }
    this.bars(c, peaks, width, height);
    const last = Math.min(columns - 1, Math.floor((known / end) * columns));
    this.line(c, sums, last, width, height, agentColour(agent), true);
    if (values.some((value) => !Number.isNaN(value))) this.line(c, values, last, width, height, css("--second"), false);
    const x = (track.shownTick / end) * width;
    c.fillStyle = faded(css("--ink"), 0.6);
    c.fillRect(x, 0, 1, height);
    c.fillStyle = css("--soft");
    c.font = "12px system-ui, sans-serif";
    c.textAlign = "right";
    c.fillText(`sum ${figure(sum)}`, width - 4, 11);
  }

  bars(c, peaks, width, height) {
    const most = peaks.reduce((top, peak) => Math.max(top, Math.abs(peak)), 0);
    if (!most) return;
    peaks.forEach((peak, i) => {
      if (!peak) return;
      const size = (Math.abs(peak) / most) * height * 0.5;
      c.fillStyle = peak > 0 ? "rgba(80,190,120,.45)" : "rgba(230,90,80,.5)";
      c.fillRect((i / peaks.length) * width, height - size, Math.max(1, width / peaks.length), size);
    });
  }

  line(c, series, last, width, height, colour, fromZero) {
    let [low, high] = fromZero ? [0, 0] : [Infinity, -Infinity];
    for (let i = 0; i <= last; i += 1) {
      if (Number.isNaN(series[i])) continue;
      low = Math.min(low, series[i]);
      high = Math.max(high, series[i]);
    }
    if (!(high >= low)) return;
    const range = high - low > 1e-9 ? high - low : 1; // a flat line is at the bottom
    c.beginPath();
    let before = null;
    for (let i = 0; i <= last; i += 1) {
      const value = Number.isNaN(series[i]) || (fromZero && series[i] === 0 && before !== null) ? before : series[i];
      if (value === null) continue;
      const x = (i / series.length) * width;
      const y = height - 3 - ((value - low) / range) * (height - 20);
      if (before === null) c.moveTo(x, y);
      else c.lineTo(x, y);
      before = value;
    }
    c.strokeStyle = colour;
    c.lineWidth = 1.8;
    c.lineJoin = "round";
    c.stroke();
  }
}
