// The minimap: the whole world in a corner, and what of it the camera sees. A click goes there.

import {css, el, fitted} from "./dom.js";
import {typeColour} from "./palette.js";

const MOST = 150; // pixels
const SHARE = 0.24; // of the canvas, at most

export class Minimap {
  constructor(go) {
    this.canvas = el("canvas", {class: "minimap", "aria-hidden": "true", hidden: true});
    this.go = go;
    const aim = (event) => {
      if (event.buttons !== 1 || !this.scale) return;
      const box = this.canvas.getBoundingClientRect();
      go((event.clientX - box.left) / this.scale, (event.clientY - box.top) / this.scale);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      aim(event);
    });
    this.canvas.addEventListener("pointermove", aim);
  }

  draw(scene, camera) {
    const a = camera.toWorld({x: 0, y: 0});
    const b = camera.toWorld({x: camera.size.width, y: camera.size.height});
    const {width, height} = scene.bounds;
    const whole = a.x <= 0.5 && a.y <= 0.5 && b.x >= width - 0.5 && b.y >= height - 0.5;
    this.canvas.hidden = whole || camera.auto || !scene.walls;
    if (this.canvas.hidden) return;
    const most = Math.min(MOST, SHARE * camera.size.width);
    this.scale = Math.min(most / width, most / height, 8);
    this.canvas.style.width = `${width * this.scale}px`;
    this.canvas.style.height = `${height * this.scale}px`;
    const {context: c} = fitted(this.canvas);
    this.paint(c, scene, this.scale);
    c.strokeStyle = "#ffd257";
    c.lineWidth = 1.5;
    c.strokeRect(a.x * this.scale, a.y * this.scale, (b.x - a.x) * this.scale, (b.y - a.y) * this.scale);
  }

  paint(c, scene, scale) {
    const {width, height} = scene.bounds;
    c.fillStyle = css("--floor");
    c.fillRect(0, 0, width * scale, height * scale);
    c.fillStyle = css("--wall");
    for (const {row, col} of scene.walls) c.fillRect(col * scale, row * scale, scale + 0.4, scale + 0.4);
    for (const thing of scene.others) {
      c.fillStyle = typeColour(thing.type);
      c.fillRect(thing.col * scale, thing.row * scale, Math.max(1.5, scale), Math.max(1.5, scale));
    }
    const dot = Math.max(2, scale * 1.3);
    for (const thing of scene.agents) {
      c.fillStyle = scene.colours.agent(thing);
      c.fillRect((thing.col + 0.5) * scale - dot / 2, (thing.row + 0.5) * scale - dot / 2, dot, dot);
    }
  }
}
