// The agent: what it holds, what it did and whether that worked, what it could do now, what it earned, who plays it. The
// ship of Prospector has gauges and a market beside that.

import {ActionGrid} from "./actions.js";
import {Spark} from "./spark.js";
import {el, figure, fill, plain, say, show} from "./dom.js";
import {agentColour, resourceColour} from "./palette.js";
import {choices, titleOf} from "./players.js";
import {ShipPanel} from "./ship.js";
import {WhatIf} from "./whatif.js";

export class AgentPanel {
  constructor(app, commands) {
    this.app = app;
    this.commands = commands;
    this.chip = el("i", {class: "chip"});
    this.name = el("h2", {id: "agent-name"});
    this.sub = el("p", {class: "soft"});
    this.follow = el("button", {type: "button", class: "tool", id: "follow", onclick: () => commands.follow(), "aria-pressed": "false"}, "Follow");
    this.who = el("select", {id: "who", "aria-label": "Who plays this agent", onchange: (event) => this.given(event.target)});
    this.take = el("button", {type: "button", class: "tool strong", id: "take", onclick: () => commands.takeOver()}, "Take over", el("span", {class: "hint-key"}, "(T)"));
    this.policyBox = el("div", {class: "row", hidden: true});
    this.did = el("p", {class: "did", id: "did"});
    this.earned = el("dl", {class: "tiles"});
    this.spark = new Spark();
    this.held = el("ul", {class: "held", id: "inventory"});
    this.facts = el("dl", {class: "facts"});
    this.ship = new ShipPanel(app);
    this.actions = new ActionGrid(app);
    this.whatIf = new WhatIf(app, commands);
    this.none = el("p", {class: "hint"}, "Click an agent on the map, or press N.");
    this.others = [this.nav("‹", -1), this.nav("›", 1)];
    this.body = el("div", {},
      el("div", {class: "row"}, this.chip, el("div", {class: "grow"}, this.name, this.sub), this.others, this.follow),
      el("div", {class: "row"}, el("label", {class: "grow"}, el("span", {class: "soft"}, "Played by "), this.who), this.take), this.policyBox,
      this.did, this.earned, this.spark.canvas, this.ship.node,
      el("h3", {class: "held-title"}, "Holds"), this.held, this.facts, el("h3", {}, "Actions now"), this.actions.node, this.whatIf.node);
    this.node = el("div", {}, this.none, this.body);
    this.buildPolicyBox();
  }

  /** The choice is made: the keyboard belongs to the game again. */
  given(select) {
    select.blur();
    this.commands.give(select.value);
  }

  nav(label, by) {
    return el("button", {type: "button", class: "tool", "aria-label": by > 0 ? "Next agent" : "Previous agent", onclick: () => this.app.selectNext(by)}, label);
  }

  buildPolicyBox() {
    const change = () => {
      const {options} = this.app.track.players;
      options.greedy = greedy.checked;
      options.temperature = Math.max(0.05, Number(heat.value) || 1);
      say(shown, options.greedy ? "always the most likely" : `temperature ${options.temperature.toFixed(2)}`);
      heat.disabled = options.greedy;
    };
    const greedy = el("input", {type: "checkbox", id: "greedy", onchange: change});
    const heat = el("input", {type: "range", min: 0.05, max: 3, step: 0.05, value: 1, "aria-label": "Temperature of the policy", oninput: change});
    const shown = el("span", {class: "soft"}, "temperature 1.00");
    fill(this.policyBox, el("label", {}, greedy, " greedy"), heat, shown);
  }

  rebuild() {
    const {track} = this.app;
    this.held.key = "";
    fill(this.who, choices(track).map((name) => el("option", {value: name}, titleOf(name))));
    this.ship.rebuild();
    this.actions.rebuild();
    this.whatIf.rebuild();
  }

  update() {
    const {app} = this;
    const {track, pane, selected} = app;
    const one = track.info.numAgents === 1;
    const agent = selected < 0 && one ? 0 : selected;
    show(this.none, agent < 0);
    show(this.body, agent >= 0);
    if (agent < 0) return;
    const thing = pane.scene.byAgent?.get(agent);
    const isShip = track.info.kind === "prospector";
    say(this.name, isShip ? "The ship" : `Agent ${agent}`);
    this.chip.style.background = thing ? pane.scene.colours.agent(thing) : agentColour(agent);
    say(this.sub, isShip ? placeOf(pane.seen) : thing ? [thing.collective && plain(thing.collective), `row ${thing.row}, column ${thing.col}`].filter(Boolean).join(" · ") : "");
    for (const node of this.others) show(node, !one);
    this.follow.setAttribute("aria-pressed", String(app.following));
    const name = track.branch.live ? track.players.of(agent) : "replay";
    if (document.activeElement !== this.who) this.who.value = name;
    show(this.policyBox, track.branch.live && name === "policy");
    show(this.take, name !== "human");
    this.updateDid(track, agent);
    this.updateEarned(track, agent);
    this.updateHeld(thing);
    this.ship.update();
    this.actions.update(agent);
  }

  /** The last action, and whether it worked: the observation says so. */
  updateDid(track, agent) {
    const tick = track.shownTick;
    const action = track.branch.action(tick - 1, agent);
    const names = track.info.actionNames;
    const did = this.did;
    const worked = action >= 0 ? succeeded(track, agent, action) : null;
    const key = `${tick},${agent},${action},${worked},${track.branch.action(tick, agent)}`;
    if (did.key === key) return;
    did.key = key;
    const next = track.branch.action(tick, agent);
    fill(did, action < 0 ? el("span", {class: "soft"}, "no action yet") : [el("b", {class: worked === false ? "bad" : "good"}, worked === false ? "✗ " : worked ? "✓ " : ""), plain(names[action] ?? action)],
      next >= 0 && el("span", {class: "soft"}, `   then ${plain(names[next] ?? next)}`));
  }

  updateEarned(track, agent) {
    const tick = track.shownTick;
    const {ledger} = track;
    const value = track.branch.value(tick, agent);
    const rows = [["now", figure(tick > 0 ? ledger.reward(tick - 1, agent) : 0)], ["so far", figure(ledger.returnOf(agent, tick))]];
    if (value !== null) rows.push(["value", figure(value)]);
    const key = rows.join();
    if (key !== this.earned.key) {
      this.earned.key = key;
      fill(this.earned, rows.map(([name, text]) => el("div", {}, el("dt", {}, name === "value" ? name : `reward ${name}`), el("dd", {}, text))));
    }
    this.spark.draw(track, agent);
  }

  updateHeld(thing) {
    show(this.held, Boolean(thing));
    show(this.facts, Boolean(thing));
    show(this.body.querySelector(".held-title"), Boolean(thing));
    if (!thing) return;
    const held = Object.entries(thing.inventory);
    const key = JSON.stringify([held, thing.vibe, thing.frozen, thing.tags, thing.facing]);
    if (key === this.held.key) return;
    this.held.key = key;
    fill(this.held, held.length === 0 && el("li", {class: "soft"}, "nothing"), held.map(([name, amount]) => {
      const dot = el("i", {class: "dot"});
      dot.style.background = resourceColour(name);
      return el("li", {"data-name": name}, dot, el("span", {}, plain(name, 24)), el("b", {}, figure(amount)));
    }));
    const facts = [["faces", thing.facing], ["vibe", thing.vibe], ["frozen", thing.frozen ? `${thing.frozen} ticks` : ""], ["tags", thing.tags.filter((tag) => !tag.startsWith("type:")).join(", ")]];
    fill(this.facts, facts.filter(([, text]) => text).map(([name, text]) => [el("dt", {}, name), el("dd", {}, plain(text))]));
  }
}

/** Where the ship is. */
function placeOf({ship, sectors}) {
  const sector = sectors.find(({id}) => id === ship.sector);
  return sector?.type === "station" ? "at the station" : `in ${sector?.type ?? "sector"} ${ship.sector}`;
}

/** Grid games say it in a token: `last_action` is 0 where the action failed. */
function succeeded(track, agent, action) {
  const {info, world} = track;
  if (info.kind === "prospector") return !track.seenLast?.invalid;
  if (!info.features) return null;
  const feature = info.features.find((f) => f.name === "last_action");
  if (!feature || action === 0) return null;
  const row = world.obs(agent);
  for (let i = 0; i + 2 < row.length && row[i] === 0xfe; i += 3) if (row[i + 1] === feature.id) return row[i + 2] === action;
  return false;
}
