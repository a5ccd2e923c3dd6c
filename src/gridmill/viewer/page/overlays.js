// What can be laid over the map: the window an agent sees, where it went, how often cells were visited, areas, and the
// ground that teams hold. All of it is computed here from the state, nothing of it was recorded.

import {faded} from "./palette.js";

const LEAST_OUTLINED = 8; // pixels of a cell: of a whole large map, dozens of outlines hide what they surround

export class Overlays {
  constructor(info) {
    this.info = info;
    this.areas = info.areas;
    this.territories = this.areas.filter((area) => area.territory);
    this.strongest = info.territory === "strongest";
    this.heat = null;
    this.trail = [];
  }

  get hasAreas() {
    return this.areas.length > 0;
  }

  under(map, on) {
    if (on.heat && this.heat) this.drawHeat(map);
    if (on.areas && this.hasAreas) this.drawGround(map);
  }

  between(map, on, selected) {
    if (on.areas && this.hasAreas) this.drawAreas(map);
    if (on.trail) this.drawTrail(map, selected);
  }

  over(map, on, selected, share) {
    if (on.window && selected >= 0) this.drawWindow(map, selected, share);
  }

  // ---- the window of an agent

  drawWindow(map, selected, share) {
    const thing = map.byAgent.get(selected);
    if (!thing) return;
    const {height, width, shape} = this.info.window;
    const {c, size} = map.view;
    const {x, y} = map.placeOf(thing, share);
    const path = new Path2D();
    const [rh, rw] = [(height - 1) / 2, (width - 1) / 2];
    for (let dr = -rh; dr <= rh; dr += 1) {
      const half = shape === "disc" ? halfWidth(dr, rh, rw) : rw;
      if (half < 0) continue;
      const at = map.camera.toScreen(x - 0.5 - half, y - 0.5 + dr);
      path.rect(at.x, at.y, (2 * half + 1) * size, size);
    }
    c.save();
    const outside = new Path2D();
    outside.rect(0, 0, map.view.width, map.view.height);
    outside.addPath(path);
    c.fillStyle = "rgba(8,10,16,.34)";
    c.fill(outside, "evenodd");
    c.restore();
    if (shape === "disc") return;
    const at = map.camera.toScreen(x - 0.5 - rw, y - 0.5 - rh);
    c.strokeStyle = "#ffd257";
    c.lineWidth = 1.5;
    c.setLineDash([6, 4]);
    c.strokeRect(at.x, at.y, width * size, height * size);
    c.setLineDash([]);
  }

  // ---- where somebody went

  drawTrail(map, selected) {
    if (this.trail.length < 2 || selected < 0) return;
    const {c, size} = map.view;
    const colour = map.byAgent.has(selected) ? map.colours.agent(map.byAgent.get(selected)) : "#ffd257";
    c.lineCap = "round";
    c.lineJoin = "round";
    c.lineWidth = Math.max(1.5, size * 0.12);
    const {width} = this.info;
    for (let i = 1; i < this.trail.length; i += 1) {
      const [a, b] = [this.trail[i - 1], this.trail[i]];
      const [ax, ay, bx, by] = [a % width, Math.floor(a / width), b % width, Math.floor(b / width)];
      if (a === b || Math.abs(ax - bx) > 2 || Math.abs(ay - by) > 2) continue;
      const from = map.camera.toScreen(ax + 0.5, ay + 0.5);
      const to = map.camera.toScreen(bx + 0.5, by + 0.5);
      c.strokeStyle = faded(colour, 0.08 + (0.75 * i) / this.trail.length);
      c.beginPath();
      c.moveTo(from.x, from.y);
      c.lineTo(to.x, to.y);
      c.stroke();
    }
  }

  // ---- visits

  drawHeat(map) {
    const {counts, most} = this.heat;
    const {c, size} = map.view;
    const {x0, y0, x1, y1} = map.range;
    const top = Math.log1p(most);
    for (let row = Math.max(0, y0); row < Math.min(this.info.height, y1); row += 1) {
      for (let col = Math.max(0, x0); col < Math.min(this.info.width, x1); col += 1) {
        const count = counts[row * this.info.width + col];
        if (!count) continue;
        const at = map.camera.toScreen(col, row);
        c.fillStyle = heatColour(Math.log1p(count) / top);
        c.fillRect(Math.floor(at.x), Math.floor(at.y), Math.ceil(size), Math.ceil(size));
      }
    }
  }

  // ---- areas and ground

  sources(map, areas) {
    const found = [];
    const types = new Map();
    for (const area of areas) types.set(area.type, [...(types.get(area.type) ?? []), area]);
    for (const thing of map.others.concat(map.agents)) {
      for (const area of types.get(thing.type) ?? []) found.push({thing, area});
    }
    return found;
  }

  /** One shape for all areas of a team that act alike. Neutral objects have neither friends nor enemies. */
  drawAreas(map) {
    const {c, size} = map.view;
    const shapes = new Map();
    for (const {thing, area} of this.sources(map, this.areas)) {
      if (!thing.collective && (area.affects === "friend" || area.affects === "enemy")) continue;
      const key = `${thing.collective ?? ""}|${area.affects === "enemy"}`;
      if (!shapes.has(key)) shapes.set(key, {path: new Path2D(), colour: (thing.collective && map.colours.team(thing.collective)) || "#8a93a3", enemy: area.affects === "enemy"});
      const at = map.camera.toScreen(thing.col + 0.5, thing.row + 0.5);
      const reach = (area.radius + 0.5) * size;
      const {path} = shapes.get(key);
      path.moveTo(at.x + reach, at.y);
      if (area.metric === "euclid") path.arc(at.x, at.y, reach, 0, Math.PI * 2);
      else path.roundRect(at.x - reach, at.y - reach, 2 * reach, 2 * reach, Math.min(size, 10));
    }
    const corner = map.camera.toScreen(0, 0);
    c.save();
    c.beginPath();
    c.rect(corner.x, corner.y, this.info.width * size, this.info.height * size);
    c.clip();
    for (const {path, colour, enemy} of shapes.values()) {
      c.fillStyle = faded(colour, enemy ? 0.05 : 0.13);
      c.fill(path);
      if (size < LEAST_OUTLINED) continue;
      c.strokeStyle = faded(colour, enemy ? 0.3 : 0.22);
      c.lineWidth = 1;
      c.setLineDash(enemy ? [3, 4] : []);
      c.stroke(path);
    }
    c.restore();
  }

  /** Who holds which cell: the rule of the engine (docs/mechanics.md, Areas). */
  drawGround(map) {
    if (this.territories.length === 0) return;
    const {x0, y0, x1, y1} = map.range;
    const seen = {left: Math.max(0, x0), top: Math.max(0, y0), right: Math.min(this.info.width, x1), bottom: Math.min(this.info.height, y1)};
    const [width, height] = [Math.max(0, seen.right - seen.left), Math.max(0, seen.bottom - seen.top)];
    const teams = this.info.collectives;
    const claims = teams.map(() => new Float64Array(width * height));
    for (const {thing, area} of this.sources(map, this.territories)) {
      const team = teams.indexOf(thing.collective);
      if (team >= 0) this.claim(claims[team], seen, width, thing, area);
    }
    const {c, size} = map.view;
    for (let cell = 0; cell < width * height; cell += 1) {
      const owner = ownerOf(claims, cell);
      if (owner < 0) continue;
      const at = map.camera.toScreen(seen.left + (cell % width), seen.top + Math.floor(cell / width));
      c.fillStyle = faded(map.colours.team(teams[owner]), 0.22);
      c.fillRect(Math.floor(at.x), Math.floor(at.y), Math.ceil(size), Math.ceil(size));
    }
  }

  /** What an area claims of the cells that are seen, `width` of them in a row. */
  claim(mine, {left, top, right, bottom}, width, thing, area) {
    for (let row = Math.max(top, thing.row - area.radius); row <= Math.min(bottom - 1, thing.row + area.radius); row += 1) {
      for (let col = Math.max(left, thing.col - area.radius); col <= Math.min(right - 1, thing.col + area.radius); col += 1) {
        const [dr, dc] = [Math.abs(row - thing.row), Math.abs(col - thing.col)];
        const squared = area.metric === "euclid" ? dr * dr + dc * dc : Math.max(dr, dc) ** 2;
        if (squared > area.radius ** 2) continue;
        const cell = (row - top) * width + col - left;
        if (this.strongest) mine[cell] += 1024 * area.radius - Math.floor(Math.sqrt(1024 * 1024 * squared));
        else mine[cell] = Math.max(mine[cell], 1e9 - squared);
      }
    }
  }
}

function ownerOf(claims, cell) {
  let [best, owner] = [0, -1];
  claims.forEach((claim, team) => {
    if (claim[cell] > best) [best, owner] = [claim[cell], team];
    else if (claim[cell] === best && best > 0) owner = -1;
  });
  return owner;
}

/** Half the width of a disc window in a row: docs/observations.md. */
function halfWidth(dr, rh, rw) {
  const r = Math.min(rh, rw);
  for (let dc = r; dc >= 0; dc -= 1) {
    const far = dr * dr + dc * dc;
    const rim = r >= 2 && far === r * r + 1 && (Math.abs(dr) === r || dc === r);
    if (far <= r * r || rim) return dc;
  }
  return -1;
}

function heatColour(share) {
  const hue = 48 - 46 * share;
  return `hsla(${hue}, 92%, ${60 - 12 * share}%, ${0.1 + 0.72 * share})`;
}
