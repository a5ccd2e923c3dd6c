// What the selected agent sees, and nothing else: its window drawn from its tokens, and the tokens by name. Games without
// tokens show their vector.

import {css, el, figure, fill, fitted, plain, say, show} from "./dom.js";
import {drawAgent} from "./figures.js";
import {agentColour, resourceColour, typeColour} from "./palette.js";
import {sprite} from "./symbols.js";

const GLOBAL = 0xfe;
const EMPTY = 0xff;

export class SeesPanel {
  constructor(app) {
    this.app = app;
    this.slow = true;
    this.hint = el("p", {class: "hint"}, "Choose an agent to see what it sees.");
    this.canvas = el("canvas", {class: "sees", role: "img", "aria-label": "The window of the agent, drawn from its tokens"});
    this.count = el("p", {class: "soft"});
    this.filter = el("input", {type: "search", class: "filter", placeholder: "Find a token", "aria-label": "Find a token", oninput: () => this.update()});
    this.table = el("tbody", {id: "tokens"});
    this.body = el("div", {}, this.canvas, this.count, this.filter,
      el("table", {class: "tokens"}, el("thead", {}, el("tr", {}, el("th", {}, "where"), el("th", {}, "what"), el("th", {}, "value"))), this.table));
    this.node = el("div", {}, this.hint, this.body);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
  }

  rebuild() {
    this.cell = null;
  }

  update() {
    const {app} = this;
    const {track} = app;
    const agent = app.selected < 0 && track.info.numAgents === 1 ? 0 : app.selected;
    show(this.hint, agent < 0);
    show(this.body, agent >= 0);
    if (agent < 0) return;
    const isGrid = track.info.kind === "grid";
    show(this.canvas, isGrid);
    const row = track.world.obs(agent);
    if (isGrid) this.updateTokens(track.info, row, agent);
    else this.updateVector(row);
  }

  updateTokens(info, row, agent) {
    const tokens = tokensOf(info, row);
    this.tokens = tokens;
    this.draw(info, tokens, agent);
    say(this.count, `${tokens.length} tokens of ${info.obsShape[0]}`);
    const wanted = this.filter.value.trim().toLowerCase();
    const shown = tokens.filter((token) => (!this.cell || (token.row === this.cell.row && token.col === this.cell.col)) && (!wanted || `${token.feature} ${token.text}`.toLowerCase().includes(wanted)));
    fill(this.table, shown.slice(0, 220).map((token) => el("tr", {}, el("td", {class: "soft"}, place(token)), el("td", {}, plain(token.feature, 30)), el("td", {}, plain(token.text, 30)))));
  }

  updateVector(row) {
    say(this.count, `${row.length} numbers`);
    const wanted = this.filter.value.trim();
    const rows = [];
    row.forEach((value, i) => {
      if ((value !== 0 || wanted) && (!wanted || String(i).startsWith(wanted))) rows.push(el("tr", {}, el("td", {class: "soft"}, i), el("td", {}, vectorName(this.app.track.info.kind, i)), el("td", {}, figure(value))));
    });
    fill(this.table, rows);
  }

  draw(info, tokens, agent) {
    const {height, width} = info.window;
    const {context: c, width: wide} = fitted(this.canvas);
    const size = wide / width;
    this.canvas.style.height = `${size * height}px`;
    const {ratio} = fitted(this.canvas);
    c.fillStyle = css("--floor");
    c.fillRect(0, 0, wide, size * height);
    c.strokeStyle = css("--gridline");
    for (let i = 1; i < width; i += 1) c.strokeRect(i * size, -1, 0, size * height + 2);
    for (let i = 1; i < height; i += 1) c.strokeRect(-1, i * size, wide + 2, 0);
    const cells = new Map();
    for (const token of tokens) {
      if (token.row === null) continue;
      const key = `${token.row},${token.col}`;
      if (!cells.has(key)) cells.set(key, {row: token.row, col: token.col, held: []});
      const cell = cells.get(key);
      if (token.feature === "tag" && token.text.startsWith("type:")) cell.type = token.text.slice(5);
      else if (token.feature === "agent:id") cell.agent = token.value;
      else if (token.feature.startsWith("inv:")) cell.held.push([token.feature.slice(4), token.value]);
      else if (token.feature === "agent:frozen") cell.frozen = true;
    }
    for (const cell of cells.values()) this.drawCell(c, cell, size, ratio, {height, width}, agent);
    if (this.cell) {
      c.strokeStyle = "#ffd257";
      c.lineWidth = 2;
      c.strokeRect((this.cell.col + (width - 1) / 2) * size, (this.cell.row + (height - 1) / 2) * size, size, size);
    }
  }

  drawCell(c, cell, size, ratio, {height, width}, agent) {
    const x = (cell.col + (width - 1) / 2) * size;
    const y = (cell.row + (height - 1) / 2) * size;
    if (cell.agent !== undefined || cell.type === "agent") {
      const index = cell.agent ?? 0;
      const {scene} = this.app.pane;
      const thing = scene.byAgent.get(index);
      drawAgent(c, x + size / 2, y + size / 2, size, {colour: thing ? scene.colours.agent(thing) : agentColour(index), frozen: cell.frozen, label: index, selected: cell.row === 0 && cell.col === 0 && agent >= 0});
    } else if (cell.type === "wall") {
      c.fillStyle = css("--wall");
      c.fillRect(x, y, size + 0.5, size + 0.5);
    } else if (cell.type) c.drawImage(sprite(cell.type, Math.round(size * ratio)), x, y, size, size);
    else {
      c.fillStyle = typeColour("?");
      c.fillRect(x + size / 4, y + size / 4, size / 2, size / 2);
    }
    cell.held.slice(0, 3).forEach(([name], i) => {
      c.beginPath();
      c.arc(x + size * (0.2 + 0.2 * i), y + size * 0.86, size * 0.09, 0, Math.PI * 2);
      c.fillStyle = resourceColour(name);
      c.fill();
    });
  }

  hover(event) {
    const {info} = this.app.track;
    if (!event || !info.window) this.cell = null;
    else {
      const box = this.canvas.getBoundingClientRect();
      const size = box.width / info.window.width;
      this.cell = {col: Math.floor((event.clientX - box.left) / size) - (info.window.width - 1) / 2, row: Math.floor((event.clientY - box.top) / size) - (info.window.height - 1) / 2};
    }
    this.update();
  }
}

/** The tokens of a row by name; places are relative to the agent, null for what is not in a place. */
export function tokensOf(info, row) {
  const out = [];
  const [rh, rw] = [(info.window.height - 1) / 2, (info.window.width - 1) / 2];
  for (let i = 0; i + 2 < row.length; i += 3) {
    const [location, id, value] = [row[i], row[i + 1], row[i + 2]];
    if (location === EMPTY) break;
    const feature = info.features[id]?.name ?? `feature ${id}`;
    const isGlobal = location === GLOBAL;
    out.push({row: isGlobal ? null : (location >> 4) - rh, col: isGlobal ? null : (location & 15) - rw, feature, value, text: wordOf(info, feature, value)});
  }
  return out;
}

function wordOf(info, feature, value) {
  if (feature === "tag") return info.tags[value] ?? String(value);
  if (feature === "vibe") return info.vibes[value] ?? String(value);
  if (feature === "collective") return info.collectives[value] ?? String(value);
  if (feature === "last_action") return info.actionNames[value] ?? String(value);
  if (feature === "last_reward") return `${value} (${value - 128 >= 0 ? "+" : "−"}${Math.abs(value - 128)})`;
  if (feature === "agent:facing") return info.directions?.[value] ?? String(value);
  return String(value);
}

function place({row, col}) {
  if (row === null) return "all";
  if (row === 0 && col === 0) return "here";
  return `${row ? `${Math.abs(row)}${row < 0 ? "N" : "S"}` : ""}${row && col ? " " : ""}${col ? `${Math.abs(col)}${col < 0 ? "W" : "E"}` : ""}`;
}

/** The blocks of Prospector's 260 numbers. */
function vectorName(kind, i) {
  if (kind !== "prospector") return "";
  const ship = ["fuel", "hull", "heat", "tool", "cargo", "alert", "time left", "credits (log)"];
  if (i < 8) return ship[i];
  if (i < 14) return `cargo ${i - 8}`;
  if (i < 17) return ["repair kits", "stabilizers", "decoys"][i - 14];
  if (i < 24) return ["at station", "selected", "station here", "cluster here", "hazard here", "sector", "hops home"][i - 17];
  if (i < 66) return `way ${Math.floor((i - 24) / 7)}: ${["there", "station", "cluster", "hazard", "time", "fuel", "threat"][(i - 24) % 7]}`;
  if (i < 68) return "";
  if (i < 244) return `asteroid ${Math.floor((i - 68) / 11)}: ${["there", "iron", "nickel", "water ice", "pge", "isotopes", "volatiles", "stability", "depletion", "confidence", "selected"][(i - 68) % 11]}`;
  if (i < 250) return `price ${i - 244}`;
  return i < 256 ? `price change ${i - 250}` : `stock ${i - 256}`;
}
