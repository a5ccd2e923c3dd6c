// Prospector's map: sectors and the ways between them, asteroids by what is in them, the ship on its way. Space is dark
// in both themes.

import {fitted} from "./dom.js";
import {layout} from "./belt_layout.js";
import {gain, tag} from "./figures.js";
import {faded, resourceColour} from "./palette.js";

const TAU = Math.PI * 2;

const COST_PLACES = [0.62, 0.75, 0.5, 0.88, 0.4]; // of the way to the next sector
const ROOMY = 26; // pixels of a unit, from which on there is room for all of a cost
const HALF_NAME = 6; // and a name above and below its middle

export class BeltMap {
  constructor(canvas, camera, info) {
    Object.assign(this, {canvas, camera, info});
    this.seen = null;
    this.bounds = {width: 24, height: 16};
    this.before = null; // the sector the ship came from
    this.gains = [];
    this.agents = [];
  }

  update(seen, {tick, glides, rewards}) {
    const key = seen.links.length * 1000 + seen.sectors.length;
    const old = this.seen;
    if (!this.plan || this.planKey !== key) {
      this.plan = layout(seen.sectors, seen.links);
      this.planKey = key;
      this.bounds = {width: this.plan.width, height: this.plan.height};
      this.stars = starsOf(this.bounds);
    }
    this.before = glides && old && old.ship.sector !== seen.ship.sector ? old.ship.sector : null;
    this.seen = seen;
    this.tick = tick;
    this.gains = rewards && Math.abs(rewards[0]) >= 0.005 ? [rewards[0]] : [];
    this.links = seen.links.filter((link) => link.from < link.to);
  }

  agentPlace(agent, share = 1) {
    const here = this.plan.where.get(this.seen.ship.sector);
    if (this.before === null || share >= 1) return here;
    const from = this.plan.where.get(this.before);
    const eased = share * share * (3 - 2 * share);
    return {x: from.x + (here.x - from.x) * eased, y: from.y + (here.y - from.y) * eased};
  }

  draw(share, {age, selected}) {
    const {context: c, width, height} = fitted(this.canvas);
    this.c = c;
    this.size = this.camera.scale;
    const deep = c.createRadialGradient(width * 0.5, height * 0.45, 0, width * 0.5, height * 0.45, Math.max(width, height) * 0.75);
    deep.addColorStop(0, "#1b2438");
    deep.addColorStop(1, "#0b0f19");
    c.fillStyle = deep;
    c.fillRect(0, 0, width, height);
    if (!this.seen) return;
    this.drawStars();
    const here = this.seen.ship.sector;
    for (const link of this.links) this.drawLink(link, link.from === here || link.to === here);
    for (const sector of this.seen.sectors) this.drawSector(sector, sector.id === here);
    this.drawCosts(here);
    this.drawShip(share, selected === 0);
    if (age < 1) for (const reward of this.gains) this.drawGain(reward, share, age);
  }

  screen(place) {
    return this.camera.toScreen(place.x, place.y);
  }

  drawStars() {
    const {c} = this;
    for (const star of this.stars) {
      const at = this.screen(star);
      c.fillStyle = `rgba(220,230,255,${star.light})`;
      c.fillRect(at.x, at.y, star.size, star.size);
    }
  }

  drawLink(link, near) {
    const {c, size} = this;
    const a = this.screen(this.plan.where.get(link.from));
    const b = this.screen(this.plan.where.get(link.to));
    c.beginPath();
    c.moveTo(a.x, a.y);
    c.lineTo(b.x, b.y);
    c.strokeStyle = threatColour(link.threat, near ? 0.95 : 0.38);
    c.lineWidth = near ? Math.max(1.5, size * 0.07) : Math.max(1, size * 0.035);
    c.setLineDash(near ? [] : [size * 0.18, size * 0.14]);
    c.stroke();
    c.setLineDash([]);
  }

  /** What the ways from here cost, each where its words cover no others; one that finds no place goes without. */
  drawCosts(here) {
    if (this.size <= 13) return;
    const half = this.size < ROOMY ? 30 : 49; // pixels that the words take on each side
    const taken = this.seen.sectors.map((sector) => ({...this.nameAt(sector, sector.id === here), half: sector.type === "station" ? 28 : 14}));
    for (const link of this.links) {
      if (link.from !== here && link.to !== here) continue;
      const a = this.screen(this.plan.where.get(here));
      const b = this.screen(this.plan.where.get(link.from === here ? link.to : link.from));
      const fuel = `${Math.round(link.fuel)} fuel`;
      const free = COST_PLACES.map((share) => ({x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share}))
        .find((at) => taken.every((other) => Math.abs(at.x - other.x) > half + other.half || Math.abs(at.y - other.y) > 18));
      if (!free) continue;
      taken.push({...free, half});
      tag(this.c, free.x, free.y, this.size < ROOMY ? fuel : `${link.time} t · ${fuel}`, 12);
    }
  }

  drawSector(sector, here) {
    const {c, size} = this;
    const at = this.screen(this.plan.where.get(sector.id));
    const r = size * 0.62;
    if (here) {
      c.beginPath();
      c.arc(at.x, at.y, size * 2.05, 0, TAU);
      c.fillStyle = "rgba(255,210,87,.06)";
      c.fill();
      c.strokeStyle = "rgba(255,210,87,.28)";
      c.lineWidth = 1;
      c.stroke();
    }
    if (sector.type === "station") this.drawStation(at, r);
    else this.drawField(sector, at, r, here);
    if (size > 13) {
      c.fillStyle = sector.seen || sector.type === "station" ? "rgba(232,238,250,.92)" : "rgba(200,210,230,.5)";
      c.font = `600 ${Math.max(12, Math.min(13, size * 0.34))}px system-ui, sans-serif`;
      c.textAlign = "center";
      c.textBaseline = "top";
      const name = sector.type === "station" ? "Station" : `${sector.type === "hazard" ? "⚠ " : ""}${sector.id}`;
      c.fillText(name, at.x, this.nameAt(sector, here).y - HALF_NAME);
    }
  }

  /** The middle of a sector's name, below it; below its surroundings where the ship is among its asteroids. */
  nameAt(sector, here) {
    const at = this.screen(this.plan.where.get(sector.id));
    return {x: at.x, y: at.y + this.size * (here && sector.type !== "station" ? 2.1 : 0.775) + HALF_NAME};
  }

  drawStation(at, r) {
    const {c} = this;
    c.lineWidth = r * 0.18;
    c.strokeStyle = "#cfd8ea";
    c.beginPath();
    c.arc(at.x, at.y, r, 0, TAU);
    c.stroke();
    for (let i = 0; i < 6; i += 1) {
      const turn = (i * TAU) / 6;
      c.beginPath();
      c.moveTo(at.x, at.y);
      c.lineTo(at.x + r * Math.cos(turn), at.y + r * Math.sin(turn));
      c.lineWidth = r * 0.09;
      c.stroke();
    }
    c.beginPath();
    c.arc(at.x, at.y, r * 0.45, 0, TAU);
    c.fillStyle = "#4f8ae0";
    c.fill();
    c.lineWidth = r * 0.12;
    c.stroke();
  }

  drawField(sector, at, r, here) {
    const {c, size} = this;
    const colour = sector.type === "hazard" ? "#e2603f" : "#7f93b5";
    c.beginPath();
    c.arc(at.x, at.y, r, 0, TAU);
    c.fillStyle = faded(colour, sector.seen ? 0.3 : 0.14);
    c.fill();
    c.lineWidth = Math.max(1, r * 0.09);
    c.strokeStyle = faded(colour, sector.seen ? 1 : 0.55);
    c.stroke();
    const count = sector.numAsteroids;
    if (!here) {
      for (let i = 0; i < count; i += 1) {
        const turn = i * 2.4;
        const far = r * 0.75 * Math.sqrt((i + 0.5) / count);
        const rock = sector.asteroids[i];
        c.beginPath();
        c.arc(at.x + far * Math.cos(turn), at.y + far * Math.sin(turn), r * 0.1, 0, TAU);
        c.fillStyle = rock ? faded(richest(rock), 1 - 0.8 * rock.depletion) : "rgba(190,200,220,.45)";
        c.fill();
      }
      return;
    }
    sector.asteroids.forEach((rock, slot) => this.drawAsteroid(rock, slot, sector.asteroids.length, at, size));
  }

  /** An asteroid beside the ship: a pie of what is thought to be in it, as large as it is rich, emptied as it is mined. */
  drawAsteroid(rock, slot, count, at, size) {
    const {c} = this;
    const turn = -Math.PI / 2 + (slot * TAU) / count;
    const [x, y] = [at.x + size * 1.5 * Math.cos(turn), at.y + size * 1.5 * Math.sin(turn)];
    const r = size * (0.13 + 0.045 * Math.min(4, rock.richness));
    let from = -Math.PI / 2;
    const total = Object.values(rock.estimate).reduce((sum, part) => sum + Math.max(0, part), 0) || 1;
    c.globalAlpha = rock.depletion >= 1 ? 0.2 : 0.45 + 0.55 * rock.confidence;
    for (const [good, part] of Object.entries(rock.estimate)) {
      const to = from + (TAU * Math.max(0, part)) / total;
      c.beginPath();
      c.moveTo(x, y);
      c.arc(x, y, r, from, to);
      c.fillStyle = resourceColour(good);
      c.fill();
      from = to;
    }
    c.globalAlpha = 1;
    c.beginPath();
    c.arc(x, y, r * Math.sqrt(Math.min(1, rock.depletion)), 0, TAU);
    c.fillStyle = "rgba(10,13,22,.9)";
    c.fill();
    if (slot !== this.seen.ship.selected) return;
    c.beginPath();
    c.arc(x, y, r + 3, 0, TAU);
    c.strokeStyle = "#ffd257";
    c.lineWidth = 2;
    c.stroke();
    c.beginPath();
    c.setLineDash([3, 3]);
    c.moveTo(at.x, at.y);
    c.lineTo(x, y);
    c.stroke();
    c.setLineDash([]);
  }

  drawShip(share, selected) {
    const {c, size} = this;
    const at = this.screen(this.agentPlace(0, share));
    const to = this.screen(this.plan.where.get(this.seen.ship.sector));
    const flying = this.before !== null && share < 1;
    const turn = flying ? Math.atan2(to.y - at.y, to.x - at.x) : -Math.PI / 2;
    c.save();
    c.translate(at.x, at.y - (flying ? 0 : size * 0.1));
    c.rotate(turn);
    const s = size * 0.5;
    if (flying) {
      c.beginPath();
      c.moveTo(-s * 0.5, -s * 0.22);
      c.lineTo(-s * (1.2 + 0.3 * Math.sin(share * 40)), 0);
      c.lineTo(-s * 0.5, s * 0.22);
      c.fillStyle = "#ff9b4a";
      c.fill();
    }
    c.beginPath();
    c.moveTo(s, 0);
    c.lineTo(-s * 0.6, s * 0.62);
    c.lineTo(-s * 0.3, 0);
    c.lineTo(-s * 0.6, -s * 0.62);
    c.closePath();
    c.shadowColor = "rgba(255,210,87,.9)";
    c.shadowBlur = selected ? 18 : 8;
    c.fillStyle = this.seen.ship.hull < 30 ? "#ff8a70" : "#fff6dc";
    c.fill();
    c.lineWidth = Math.max(1, s * 0.1);
    c.strokeStyle = "#2a3042";
    c.stroke();
    c.restore();
  }

  drawGain(reward, share, age) {
    const at = this.screen(this.agentPlace(0, share));
    gain(this.c, at.x, at.y - this.size * 0.4, this.size, `${reward > 0 ? "+" : "−"}${Math.abs(reward).toFixed(2)}`, age, reward > 0);
  }

  /** The sector at a place of the map. */
  at({x, y}) {
    if (!this.plan) return null;
    let best = null;
    for (const sector of this.seen.sectors) {
      const place = this.plan.where.get(sector.id);
      const far = Math.hypot(place.x - x, place.y - y);
      if (far < 1.1 && (!best || far < best.far)) best = {far, sector, type: sector.type};
    }
    return best;
  }
}

function richest(rock) {
  const [good] = Object.entries(rock.estimate).sort((a, b) => b[1] - a[1])[0];
  return resourceColour(good);
}

function threatColour(threat, alpha) {
  const hue = 150 - 150 * Math.min(1, Math.max(0, threat * 1.6));
  return `hsla(${hue}, 60%, 62%, ${alpha})`;
}

function starsOf({width, height}) {
  const stars = [];
  let seed = 7;
  const draw = () => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) / 16777216;
  };
  for (let i = 0; i < 260; i += 1) {
    stars.push({x: (draw() * 2 - 0.5) * width, y: (draw() * 2 - 0.5) * height, light: 0.12 + 0.5 * draw() ** 3, size: draw() < 0.9 ? 1 : 2});
  }
  return stars;
}
