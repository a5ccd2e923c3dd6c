// A pad for fingers: where there is no keyboard, the agent one plays is moved by touching where it should go.

import {el, show} from "./dom.js";

const CELLS = [
  ["northwest", "↖"], ["north", "↑"], ["northeast", "↗"], ["west", "←"], ["", "•"], ["east", "→"], ["southwest", "↙"], ["south", "↓"], ["southeast", "↘"],
];

export class Pad {
  constructor(app) {
    this.app = app;
    this.coarse = matchMedia("(pointer: coarse)");
    this.buttons = CELLS.map(([direction, sign]) => el("button", {type: "button", class: "key", "aria-label": direction ? `Move ${direction}` : "Wait", onclick: () => this.go(direction)}, sign));
    this.node = el("div", {class: "pad", role: "group", "aria-label": "Move", hidden: true}, this.buttons);
    app.on("frame", () => this.frame());
  }

  /** The action of a direction, or -1: corridors know left and right only. */
  actionOf(direction) {
    const {track} = this.app;
    if (!direction) return track.players.idle;
    const names = track.info.actionNames;
    const plain = names.indexOf({west: "left", east: "right"}[direction] ?? "");
    return plain >= 0 ? plain : names.indexOf(`move_${direction}`);
  }

  go(direction) {
    const action = this.actionOf(direction);
    if (action >= 0) this.app.act(action);
  }

  frame() {
    const {app} = this;
    const wanted = this.coarse.matches && app.live && app.atTip && app.track.players.human >= 0 && (this.actionOf("east") >= 0);
    show(this.node, wanted);
    if (!wanted) return;
    CELLS.forEach(([direction], i) => {
      this.buttons[i].disabled = this.actionOf(direction) < 0;
    });
  }
}
