// The corridor: a row of cells, the agent, the far end. The smallest picture, for the smallest game.

import {css, fitted} from "./dom.js";
import {drawAgent} from "./figures.js";
import {agentColour} from "./palette.js";

export class CorridorMap {
  constructor(canvas, camera, info) {
    Object.assign(this, {canvas, camera, info});
    this.bounds = {width: Math.min(info.length, 4096), height: 1};
    this.seen = null;
    this.from = 0;
    this.agents = [];
  }

  update(seen, {glides}) {
    this.from = glides && this.seen ? this.seen.cell : seen.cell;
    this.facing = seen.cell < this.from ? "west" : "east";
    this.seen = seen;
  }

  agentPlace(agent, share = 1) {
    return {x: this.from + (this.seen.cell - this.from) * share + 0.5, y: 0.5};
  }

  draw(share, {selected}) {
    const {context: c, width, height} = fitted(this.canvas);
    c.fillStyle = css("--void");
    c.fillRect(0, 0, width, height);
    if (!this.seen) return;
    const size = this.camera.scale;
    for (let cell = 0; cell < this.bounds.width; cell += 1) {
      const at = this.camera.toScreen(cell, 0);
      if (at.x > width || at.x + size < 0) continue;
      c.beginPath();
      c.roundRect(at.x + 1, at.y + 1, size - 2, size - 2, size * 0.14);
      c.fillStyle = cell === this.info.length - 1 ? "#e0b52e" : css("--floor");
      c.fill();
    }
    const place = this.agentPlace(0, share);
    const at = this.camera.toScreen(place.x, place.y);
    drawAgent(c, at.x, at.y, size, {colour: agentColour(0), facing: this.facing, frozen: false, selected: selected === 0, label: 0});
  }

  at() {
    return null;
  }
}
