// Cards over the page: errors, the keys, short notices. An error never takes the page away.

import {el, fill} from "./dom.js";

export class Cards {
  constructor() {
    this.notices = el("div", {class: "notices", role: "status", "aria-live": "polite"});
    this.card = el("dialog", {class: "card-box"});
    this.card.addEventListener("click", (event) => event.target === this.card && this.card.close());
    this.node = el("div", {}, this.notices, this.card);
  }

  get isOpen() {
    return this.card.open;
  }

  close() {
    this.card.close();
  }

  open(title, ...content) {
    fill(this.card, el("div", {class: "card-head"}, el("h2", {}, title), el("button", {type: "button", class: "tool", onclick: () => this.card.close(), "aria-label": "Close"}, "✕")), ...content);
    if (!this.card.open) this.card.showModal();
  }

  notice(text) {
    const note = el("div", {class: "notice"}, text);
    this.notices.append(note);
    setTimeout(() => note.remove(), 4200);
  }

  /** What went wrong, in the words of whoever noticed. */
  error(reason, where = "") {
    const text = reason?.message ? String(reason.message) : String(reason);
    const card = el("div", {class: "notice error", role: "alert"},
      el("b", {}, where ? `${where}: ` : ""), text.slice(0, 600), " ",
      el("button", {type: "button", class: "tool", "aria-label": "Dismiss", onclick: () => card.remove()}, "✕"));
    this.notices.append(card);
    while (this.notices.childElementCount > 4) this.notices.firstElementChild.remove();
  }
}

const KEYS = [
  ["Space", "play, pause"], ["← →", "one tick back, forward (Shift: ten)"], ["Home End", "first, last tick"], ["[ ]", "slower, faster"],
  [", .", "previous, next event"], ["click", "choose an agent"], ["N P", "next, previous agent"], ["F", "follow the agent"], ["Esc", "deselect the agent"],
  ["T", "take over the agent by keyboard"], ["W", "its window"], ["R", "its trail"], ["H", "visits"], ["A", "areas and territory"],
  ["+ − 0", "zoom in, out, show all"], ["I J K L", "move the map"], ["1 … 5", "panels"], ["O S C", "open, save, compare"], ["D ?", "dark or light, this card"],
];
const PLAYING = [
  ["← ↑ → ↓", "move (also the numeric keypad, with diagonals)"], ["Y U B M", "move diagonally"], ["Space", "wait a tick; while the clock runs: pause"], ["X", "attack"], ["V", "next vibe"], ["Z", "swap"],
  ["Enter", "choose an action by name"], ["Esc", "give the agent back"],
];

export function helpContent() {
  const list = (rows) => el("dl", {class: "keys"}, rows.map(([key, what]) => [el("dt", {}, key.split(" ").map((k) => el("kbd", {}, k))), el("dd", {}, what)]));
  return [
    el("div", {class: "two"}, el("div", {}, el("h3", {}, "Watching"), list(KEYS)), el("div", {}, el("h3", {}, "Playing an agent"), list(PLAYING),
      el("p", {class: "soft"}, "This is not a recording: the page plays the game again with its own engine. Stop anywhere, take over an agent, and continue as a fork."))),
  ];
}
