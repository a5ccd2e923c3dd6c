// A pane: one picture of one branch, with its camera, scene and minimap. The app has one pane, or two on the same clock.

import {BeltMap} from "./belt.js";
import {Branch} from "./branch.js";
import {Camera} from "./camera.js";
import {CorridorMap} from "./corridor.js";
import {el, plain} from "./dom.js";
import {GridMap} from "./map.js";
import {Minimap} from "./minimap.js";
import {Players} from "./players.js";
import {Track} from "./track.js";

const SCENES = {grid: GridMap, prospector: BeltMap, corridor: CorridorMap};

export class Pane {
  constructor(app) {
    this.app = app;
    this.canvas = el("canvas", {class: "map", tabindex: 0, role: "img", "aria-label": "Map of the world"});
    this.title = el("div", {class: "pane-title"});
    this.tip = el("div", {class: "tip", role: "status", hidden: true});
    this.minimap = new Minimap((x, y) => {
      app.lookAway();
      this.camera.centre(x, y);
    });
    this.over = el("div", {class: "over", hidden: true});
    this.node = el("section", {class: "pane"}, this.canvas, this.title, this.minimap.canvas, this.over, this.tip);
    this.camera = new Camera(this.canvas, {
      onchange: () => (this.dirty = true),
      onpan: () => app.lookAway(),
      ontap: (point) => app.tapped(this, point),
      onhover: (point) => this.hover(point),
    });
    this.tracks = new Map();
    this.drawnTick = -1;
    this.dirty = true;
  }

  open(engine, recording, index = 0) {
    this.close();
    this.engine = engine;
    this.recording = recording;
    this.show(recording.branches[index]);
  }

  close() {
    for (const track of this.tracks.values()) {
      track.players.close();
      track.close();
    }
    this.tracks.clear();
    this.track = null;
    this.scene = null;
  }

  /** The track of a branch, made when it is first asked for. */
  trackOf(branch) {
    if (!this.tracks.has(branch)) {
      const track = new Track(this.engine, this.recording, branch, branch.parent && this.trackOf(branch.parent));
      track.players = new Players(track);
      this.tracks.set(branch, track);
    }
    return this.tracks.get(branch);
  }

  show(branch) {
    this.track = this.trackOf(branch);
    const fresh = !this.scene;
    if (fresh) {
      const {info} = this.track;
      this.scene = new SCENES[info.kind](this.canvas, this.camera, info, this.recording.game);
    }
    this.drawnTick = -1;
    this.heatTick = -1;
    this.dirty = true;
    if (fresh) this.refit = true;
  }

  /** A new branch from a tick of the shown one; from its beginning it is one of its parent. */
  fork(tick, who, name) {
    let parent = this.track.branch;
    while (parent.parent && tick <= parent.forkTick) parent = parent.parent;
    const branch = new Branch({name, agents: parent.agents, parent, forkTick: tick, who});
    this.recording.branches.push(branch);
    this.show(branch);
    this.track.players.forget();
    return branch;
  }

  // ---- every frame

  /** Bring the picture to a tick; false if the engine is still on its way there. */
  frame(tick, share, age, ms) {
    const {track, scene} = this;
    this.camera.measure();
    const there = track.seek(tick, ms);
    if (track.redrawn) this.drawnTick = -1;
    track.redrawn = false;
    const shown = track.shownTick;
    if (shown !== this.drawnTick) {
      const glides = shown === this.drawnTick + 1;
      const rewards = glides && shown > 0 ? Array.from(track.info.numAgents > 300 ? [] : track.world.rewards) : null;
      this.seen = track.world.inspect();
      scene.update(this.seen, {tick: shown, glides, rewards});
      this.drawnTick = shown;
      this.dirty = true;
      if (this.refit) {
        this.refit = false;
        this.camera.fit(scene.bounds, scene.focus);
      }
      this.camera.bounds = scene.bounds;
      this.trail(shown);
    }
    this.follow(share);
    if (this.dirty || share < 1 || age < 1) {
      this.heat(shown);
      scene.draw(share, {selected: this.app.selected, overlays: this.app.overlays, age});
      this.minimap.draw(scene, this.camera);
      this.dirty = false;
    }
    this.over.hidden = !(track.over && tick >= track.branch.ticks);
    return there;
  }

  follow(share) {
    if (!this.app.following || this.app.selected < 0) return;
    const place = this.scene.agentPlace(this.app.selected, share);
    if (place) this.camera.drift(place.x, place.y, 0.18);
  }

  trail(shown) {
    if (!this.scene.overlays) return;
    const cells = [];
    for (let tick = Math.max(0, shown - 60); tick < shown; tick += 1) {
      const row = this.track.ledger.cellsAfter(tick);
      if (row && this.app.selected >= 0) cells.push(row[this.app.selected]);
    }
    this.scene.overlays.trail = cells;
  }

  /** How often every cell was visited up to now: of the followed agent, or of all. */
  heat(shown) {
    if (!this.app.overlays.heat || !this.scene.overlays) return;
    const who = this.app.selected;
    if (this.heatTick > shown || this.heatWho !== who || this.heatTick < 0) {
      this.heatCounts = new Uint32Array(this.track.info.width * this.track.info.height);
      this.heatTick = 0;
      this.heatWho = who;
    }
    for (; this.heatTick < shown; this.heatTick += 1) {
      const row = this.track.ledger.cellsAfter(this.heatTick);
      if (!row) break;
      if (who >= 0) this.heatCounts[row[who]] += 1;
      else for (const cell of row) this.heatCounts[cell] += 1;
    }
    let most = 1;
    for (const count of this.heatCounts) if (count > most) most = count;
    this.scene.overlays.heat = {counts: this.heatCounts, most};
  }

  // ---- the pointer

  hover(point) {
    const thing = point && this.scene?.seen ? this.scene.at(point) : null;
    this.canvas.style.cursor = thing ? "pointer" : "";
    this.tip.hidden = !thing;
    if (!thing) return;
    this.tip.textContent = describe(thing);
    const at = this.camera.toScreen(point.x, point.y);
    this.tip.style.left = `${Math.min(at.x + 14, this.canvas.clientWidth - 180)}px`;
    this.tip.style.top = `${Math.min(at.y + 14, this.canvas.clientHeight - 60)}px`;
  }
}

/** What a thing on the map is, in a line. */
export function describe(thing) {
  if (thing.sector) {
    const {sector} = thing;
    return `${sector.type === "station" ? "station" : `${sector.type} ${sector.id}`} · ${sector.numAsteroids} asteroids · hazard ${sector.hazard.toFixed(2)} · pirates ${sector.pirates.toFixed(2)}`;
  }
  const parts = [thing.agent === undefined ? plain(thing.type) : `agent ${thing.agent}`];
  if (thing.collective) parts.push(plain(thing.collective));
  if (thing.converting) parts.push(`ready in ${thing.converting}`);
  if (thing.frozen) parts.push(`frozen for ${thing.frozen}`);
  if (thing.uses !== undefined) parts.push(`${thing.uses} uses left`);
  for (const [name, amount] of Object.entries(thing.inventory ?? {})) parts.push(`${amount} ${plain(name)}`);
  parts.push(`row ${thing.row}, column ${thing.col}`);
  return parts.join(" · ");
}
