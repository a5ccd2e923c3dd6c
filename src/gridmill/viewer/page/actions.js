// All actions of an agent by name: which would succeed now (its mask), which one comes next, what the policy thinks of them.
// Where a person plays, a click does it.

import {recordedShares} from "./branch.js";
import {el, fill, plain, show} from "./dom.js";

/** Names that belong together, for games with many actions. */
function groupOf(name) {
  const known = ["move", "attack", "change_vibe", "travel", "select", "mine", "jettison", "sell", "buy"];
  return known.find((group) => name === group || name.startsWith(`${group}_`)) ?? "";
}

export class ActionGrid {
  constructor(app) {
    this.app = app;
    this.filter = el("input", {type: "search", class: "filter", placeholder: "Find an action", "aria-label": "Find an action", id: "find-action", oninput: () => this.filtered(), onkeydown: (event) => this.typed(event)});
    this.list = el("div", {class: "actions", id: "actions"});
    this.node = el("div", {}, this.filter, this.list);
    this.buttons = [];
  }

  rebuild() {
    const names = this.app.track.info.actionNames;
    const key = names.join();
    show(this.filter, names.length > 14);
    if (key === this.key) return;
    this.key = key;
    this.buttons = names.map((name, action) => {
      const group = groupOf(name);
      const short = group && group !== "mine" ? name.slice(group.length + 1) : name;
      return el("button", {type: "button", class: "action", title: plain(name), "data-action": action, onclick: () => this.app.act(action)}, plain(short.replaceAll("_", " "), 26));
    });
    const groups = new Map();
    names.forEach((name, action) => {
      const group = groupOf(name);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(this.buttons[action]);
    });
    fill(this.list, [...groups].map(([group, buttons]) => el("div", {class: "group"}, group && el("span", {class: "soft"}, group.replaceAll("_", " ")), buttons)));
  }

  update(agent) {
    const {app} = this;
    const {track} = app;
    const masks = track.world.masks(agent);
    const next = track.branch.action(track.shownTick, agent);
    const mine = app.live && app.atTip && track.players.of(agent) === "human";
    const thinks = track.players.policy && track.players.of(agent) === "policy" && app.live && app.atTip;
    const probabilities = thinks ? track.players.policy.think(agent).probs : recordedShares(track.branch, track.shownTick, agent);
    this.list.classList.toggle("mine", mine);
    this.buttons.forEach((button, action) => {
      const state = `action${masks[action] ? " can" : ""}${action === next ? " next" : ""}`;
      if (button.className !== state) button.className = state;
      button.disabled = !mine;
      const share = probabilities ? `${Math.round(100 * probabilities[action])}%` : "0";
      if (button.share !== share) button.style.setProperty("--share", share);
      button.share = share;
    });
  }

  filtered() {
    const wanted = this.filter.value.trim().toLowerCase().replaceAll(" ", "_");
    const names = this.app.track.info.actionNames;
    this.buttons.forEach((button, action) => show(button, names[action].includes(wanted)));
  }

  /** Enter does the first that is left and possible. */
  typed(event) {
    if (event.key === "Escape") {
      this.filter.value = "";
      this.filtered();
      this.filter.blur();
    }
    if (event.key !== "Enter") return;
    const first = this.buttons.find((button) => !button.hidden && button.classList.contains("can")) ?? this.buttons.find((button) => !button.hidden);
    if (first) this.app.act(Number(first.dataset.action));
  }
}
