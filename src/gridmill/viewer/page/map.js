// The map of a grid world: floor, terrain as one mass, overlays, objects, agents that glide from cell to cell. Draws what
// `world.inspect()` says and nothing else. Terrain is painted once per camera and kept.

import {css, fitted} from "./dom.js";
import {badge, drawAgent, gain, progress, standard} from "./figures.js";
import {Overlays} from "./overlays.js";
import {colouring, faded, resourceColour, shade, typeColour} from "./palette.js";
import {sprite} from "./symbols.js";

const [OPEN, WALL, FRAME] = [0, 1, 2];
const GLIDE_MOST = 2.3; // cells: a longer way is a jump

export class GridMap {
  constructor(canvas, camera, info, game) {
    Object.assign(this, {canvas, camera, info, game});
    this.bounds = {width: info.width, height: info.height};
    this.overlays = new Overlays(info);
    this.terrain = document.createElement("canvas");
    this.terrainKey = "";
    this.cooldowns = cooldownsOf(game);
    this.seen = null;
    this.places = new Map(); // agent -> {row, col} before the last tick
    this.gains = [];
  }

  /** Show another state. `glides` says that it is the tick after the one shown, so agents move instead of jumping. */
  update(seen, {tick, glides, rewards}) {
    const things = seen.objects;
    const before = new Map();
    if (glides && this.seen) for (const thing of this.agents) before.set(thing.agent, {row: thing.row, col: thing.col});
    this.places = before;
    this.seen = seen;
    this.tick = tick;
    this.walls = [];
    this.agents = [];
    this.others = [];
    for (const thing of things) {
      if (thing.agent !== undefined) this.agents.push(thing);
      else if (thing.type === "wall") this.walls.push(thing);
      else this.others.push(thing);
    }
    this.byAgent = new Map(this.agents.map((thing) => [thing.agent, thing]));
    this.colours = colouring(this.agents, this.info.collectives ?? []);
    this.wallKey = this.walls.length && this.walls.reduce((h, w) => (Math.imul(h, 31) + w.row * 4099 + w.col) | 0, this.walls.length);
    this.focus ??= this.findFocus();
    this.noteGains(rewards);
  }

  /** The part of the map that is not solid wall, which is what a fitted camera shows. */
  findFocus() {
    const {width, height} = this.info;
    const walls = new Uint8Array(width * height);
    for (const {row, col} of this.walls) walls[row * width + col] = 1;
    let [x0, y0, x1, y1] = [width, height, 0, 0];
    for (let cell = 0; cell < walls.length; cell += 1) {
      if (walls[cell]) continue;
      const [row, col] = [Math.floor(cell / width), cell % width];
      [x0, y0, x1, y1] = [Math.min(x0, col), Math.min(y0, row), Math.max(x1, col + 1), Math.max(y1, row + 1)];
    }
    if (x1 <= x0) return {x: 0, y: 0, width, height};
    [x0, y0, x1, y1] = [Math.max(0, x0 - 1), Math.max(0, y0 - 1), Math.min(width, x1 + 1), Math.min(height, y1 + 1)];
    return {x: x0, y: y0, width: x1 - x0, height: y1 - y0};
  }

  noteGains(rewards) {
    this.gains = [];
    if (!rewards || this.agents.length > 300) return;
    rewards.forEach((reward, agent) => {
      const thing = this.byAgent.get(agent);
      if (thing && Math.abs(reward) >= 0.005) this.gains.push({thing, reward});
    });
  }

  placeOf(thing, share) {
    const from = this.places.get(thing.agent);
    if (!from || share >= 1 || Math.hypot(thing.row - from.row, thing.col - from.col) > GLIDE_MOST) return {x: thing.col + 0.5, y: thing.row + 0.5};
    const eased = share * share * (3 - 2 * share);
    return {x: from.col + (thing.col - from.col) * eased + 0.5, y: from.row + (thing.row - from.row) * eased + 0.5};
  }

  /** Where an agent is drawn, in cells. */
  agentPlace(agent, share = 1) {
    const thing = this.byAgent?.get(agent);
    return thing ? this.placeOf(thing, share) : null;
  }

  // ---- drawing

  draw(share, {selected, overlays, age}) {
    const {context: c, width, height, ratio} = fitted(this.canvas);
    this.view = {c, width, height, ratio, size: this.camera.scale};
    c.fillStyle = css("--void");
    c.fillRect(0, 0, width, height);
    if (!this.seen) return;
    this.range = this.visible();
    this.drawGround();
    this.overlays.under(this, overlays);
    this.drawTerrain();
    for (const thing of this.others) if (this.inSight(thing)) this.drawThing(thing);
    this.overlays.between(this, overlays, selected);
    for (const thing of this.agents) {
      const {x, y} = this.placeOf(thing, share);
      if (!this.near(x, y)) continue;
      const at = this.camera.toScreen(x, y);
      drawAgent(c, at.x, at.y, Math.max(5.5, this.view.size), {
        colour: this.colours.agent(thing), facing: thing.facing, frozen: thing.frozen > 0, selected: thing.agent === selected,
        label: thing.agent, held: Object.entries(thing.inventory),
      });
      if (thing.vibe && this.info.vibes?.indexOf(thing.vibe) > 0 && this.view.size >= 22) this.drawVibe(at, thing.vibe);
    }
    this.overlays.over(this, overlays, selected, share);
    if (age < 1) for (const {thing, reward} of this.gains) this.drawGain(thing, reward, share, age);
  }

  visible() {
    const a = this.camera.toWorld({x: 0, y: 0});
    const b = this.camera.toWorld({x: this.view.width, y: this.view.height});
    return {x0: Math.floor(a.x), y0: Math.floor(a.y), x1: Math.ceil(b.x), y1: Math.ceil(b.y)};
  }

  near(x, y) {
    const {x0, y0, x1, y1} = this.range;
    return x >= x0 - 1 && x <= x1 + 1 && y >= y0 - 1 && y <= y1 + 1;
  }

  inSight(thing) {
    return this.near(thing.col, thing.row);
  }

  drawGround() {
    const {c, size} = this.view;
    const a = this.camera.toScreen(0, 0);
    const [w, h] = [this.info.width * size, this.info.height * size];
    c.fillStyle = css("--floor");
    const [x, y] = [Math.floor(a.x), Math.floor(a.y)]; // whole pixels, as walls have: else a line of floor shows beside them
    c.fillRect(x, y, Math.floor(a.x + w) - x, Math.floor(a.y + h) - y);
    if (size < 7) return;
    c.strokeStyle = css("--gridline");
    c.lineWidth = 1;
    c.beginPath();
    const {x0, y0, x1, y1} = this.range;
    for (let x = Math.max(1, x0); x < Math.min(this.info.width, x1 + 1); x += 1) {
      const at = Math.round(a.x + x * size) + 0.5;
      c.moveTo(at, Math.max(a.y, 0));
      c.lineTo(at, Math.min(a.y + h, this.view.height));
    }
    for (let y = Math.max(1, y0); y < Math.min(this.info.height, y1 + 1); y += 1) {
      const at = Math.round(a.y + y * size) + 0.5;
      c.moveTo(Math.max(a.x, 0), at);
      c.lineTo(Math.min(a.x + w, this.view.width), at);
    }
    c.stroke();
  }

  /** Walls as one mass with round corners; kept as a picture until camera or walls change. */
  drawTerrain() {
    const {c, width, height, ratio, size} = this.view;
    const key = [this.wallKey, size, this.camera.x, this.camera.y, width, height, ratio, css("--wall")].join();
    if (key !== this.terrainKey) {
      this.terrainKey = key;
      this.terrain.width = Math.round(width * ratio);
      this.terrain.height = Math.round(height * ratio);
      const t = this.terrain.getContext("2d");
      t.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.paintWalls(t, size);
    }
    c.save();
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.drawImage(this.terrain, 0, 0);
    c.restore();
  }

  paintWalls(t, size) {
    const wide = this.info.width + 2; // with a frame around the map, which is neither open nor wall
    const cells = new Uint8Array(wide * (this.info.height + 2)).fill(FRAME);
    for (let row = 1; row <= this.info.height; row += 1) cells.fill(OPEN, row * wide + 1, (row + 1) * wide - 1);
    for (const {row, col} of this.walls) cells[(row + 1) * wide + col + 1] = WALL;
    const lift = size >= 6 ? size * 0.13 : 0;
    const seen = this.walls.filter((wall) => this.inSight(wall));
    const mass = new Path2D();
    const rock = new Path2D();
    const around = [-wide - 1, -wide, -wide + 1, -1, 1, wide - 1, wide, wide + 1];
    const tops = new Path2D();
    const round = size >= 8 ? size * 0.26 : 0;
    for (const {row, col} of seen) {
      const at = this.camera.toScreen(col, row);
      const here = (row + 1) * wide + col + 1;
      const [n, s, w, e] = [-wide, wide, -1, 1].map((by) => cells[here + by] === WALL);
      const corners = [n || w ? 0 : round, n || e ? 0 : round, s || e ? 0 : round, s || w ? 0 : round];
      const x = Math.floor(at.x);
      const y = Math.floor(at.y);
      const right = Math.floor(at.x + size);
      const low = Math.floor(at.y + size);
      if (!around.some((by) => cells[here + by] === OPEN)) {
        rock.rect(x, y - lift, right - x, low - y + lift);
        continue;
      }
      mass.roundRect(x, y, right - x, low - y, corners);
      tops.roundRect(x, y - lift, right - x, low - y, corners);
    }
    t.fillStyle = css("--rock");
    t.fill(rock);
    t.fillStyle = css("--wall-side");
    t.fill(mass);
    t.fillStyle = css("--wall");
    t.fill(tops);
  }

  drawThing(thing) {
    const {c, size, ratio} = this.view;
    const at = this.camera.toScreen(thing.col + 0.5, thing.row + 0.5);
    const team = thing.collective ? this.colours.team(thing.collective) : null;
    if (team && size >= 6) standard(c, at.x, at.y, size, team);
    if (size < 5) {
      c.fillStyle = typeColour(thing.type);
      c.fillRect(at.x - size / 2, at.y - size / 2, Math.max(1.5, size), Math.max(1.5, size));
      return;
    }
    const pixels = Math.max(4, Math.round(size * 0.92 * ratio));
    const picture = sprite(thing.type, pixels, team && thing.type.endsWith("junction") ? team : undefined);
    c.drawImage(picture, at.x - size * 0.46, at.y - size * 0.46, size * 0.92, size * 0.92);
    if (size < 16) return;
    const cooldown = this.cooldowns.get(thing.type);
    if (thing.converting > 0 && cooldown) progress(c, at.x, at.y, size, 1 - thing.converting / cooldown);
    const [most] = Object.entries(thing.inventory).sort((x, y) => y[1] - x[1]);
    if (most) badge(c, at.x, at.y, size, most[1], shade(resourceColour(most[0]), -0.15));
  }

  drawVibe(at, vibe) {
    const {c, size} = this.view;
    const font = Math.max(10, size * 0.22);
    const [x, y] = [at.x + size * 0.4, at.y - size * 0.34];
    c.beginPath();
    c.roundRect(x - font * 0.62, y - font * 0.66, font * 1.24, font * 1.32, font * 0.4);
    c.fillStyle = faded(resourceColour(vibe), 0.95);
    c.fill();
    c.fillStyle = "#fff";
    c.font = `700 ${font}px system-ui, sans-serif`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillText([...vibe][0].toUpperCase(), x, y);
  }

  drawGain(thing, reward, share, age) {
    const {x, y} = this.placeOf(thing, share);
    if (!this.near(x, y)) return;
    const at = this.camera.toScreen(x, y);
    gain(this.view.c, at.x, at.y, this.view.size, `${reward > 0 ? "+" : "−"}${Math.abs(reward).toFixed(Math.abs(reward) < 0.1 ? 3 : 2)}`, age, reward > 0);
  }

  // ---- asking

  /** What stands at a place of the world. */
  at({x, y}) {
    const [row, col] = [Math.floor(y), Math.floor(x)];
    return this.agents?.find((t) => t.row === row && t.col === col) ?? this.others?.find((t) => t.row === row && t.col === col)
      ?? this.walls?.find((t) => t.row === row && t.col === col) ?? null;
  }
}

/** How long the machines of a game take, by type. */
function cooldownsOf(game) {
  const found = new Map();
  for (const [name, type] of Object.entries(game.objects ?? {})) {
    const ticks = type?.converter?.cooldown ?? type?.assembler?.cooldown;
    if (typeof ticks === "number" && ticks > 0) found.set(name, ticks);
  }
  return found;
}
