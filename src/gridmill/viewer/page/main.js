// The beginning: load the engine, put the page together, open what there is to open.

import {App} from "./app.js";
import {Cards} from "./cards.js";
import {Commands} from "./commands.js";
import {button} from "./transport.js";
import {el, fill, plain} from "./dom.js";
import {loadEngine} from "./engine.js";
import {Keys} from "./keys.js";
import {follow, keepLink, readLink} from "./link.js";
import {Pad} from "./pad.js";
import {Sidebar} from "./sidebar.js";
import {engineSource, onDrop, startOf} from "./sources.js";
import {Timeline} from "./timeline.js";
import {TopBar} from "./topbar.js";
import {Transport} from "./transport.js";

const ZOOM = {
  in: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6z", out: "M5 11h14v2H5z",
  fit: "M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z",
};

async function begin() {
  const cards = new Cards();
  document.body.append(cards.node);
  addEventListener("error", (event) => cards.error(event.error ?? event.message, "page"));
  addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    cards.error(event.reason, "page");
  });
  const link = readLink();
  const app = new App();
  window.gridmill = app; // for people who look inside, and for tests
  const loading = loadEngine(engineSource()).then((engine) => (app.engine = engine));
  loading.catch(() => {}); // said below
  const start = await startOf();
  const commands = new Commands(app, cards, loading);
  app.commands = commands;
  const recordings = commands.readStart(start);
  const panes = build(app, commands, cards); // while the engine is compiled
  try {
    await loading;
  } catch (reason) {
    cards.error(reason, "engine");
    fill(panes, el("p", {class: "loading"}, "The engine did not start."));
    return;
  }
  await commands.openStart(start, recordings);
  if (!app.track) fill(panes, welcome(commands.open));
  follow(app, link);
  keepLink(app);
  app.start();
  document.body.dataset.ready = "yes";
}

/** Everything but the pictures; where they go. */
function build(app, commands, cards) {
  const stage = el("main", {class: "stage", id: "stage"});
  const banner = el("div", {class: "banner", role: "status", id: "banner", hidden: true});
  const zoom = el("div", {class: "zoom"},
    button(ZOOM.in, "Zoom in (+)", () => app.pane?.camera.zoom(1.3)), button(ZOOM.out, "Zoom out (−)", () => app.pane?.camera.zoom(1 / 1.3)), button(ZOOM.fit, "Show all (0)", () => app.panes.length && commands.fit()));
  const sidebar = new Sidebar(app, commands);
  commands.sidebar = sidebar;
  const top = new TopBar(app, commands);
  const timeline = new Timeline(app);
  const transport = new Transport(app);
  const panes = el("div", {class: "panes"}, el("p", {class: "loading"}, "Starting the engine …"));
  fill(stage, panes, zoom, new Pad(app).node, banner);
  fill(document.getElementById("app"), top.node, stage, sidebar.node, el("footer", {class: "bottom"}, timeline.node, transport.node));
  app.on("panes", () => {
    fill(panes, app.panes.map((pane) => pane.node));
    panes.classList.toggle("two", app.panes.length > 1);
    titles(app);
  });
  app.on("branch", () => titles(app));
  app.on("select", () => app.selected >= 0 && sidebar.shown === 2 && sidebar.open(0));
  app.on("fault", (reason) => faulty(app, cards, reason));
  app.on("frame", () => {
    showBanner(app, banner);
    for (const pane of app.panes) pane.node.classList.toggle("active", pane === app.pane);
  });
  app.on("over", () => cards.notice("The episode is over. Save it (S), or go back and try something else."));
  new Keys(app, commands);
  onDrop(document.body, (files) => commands.openFiles(files));
  const resized = () => {
    for (const pane of app.panes) {
      if (pane.camera.auto && pane.scene) pane.camera.fit(pane.scene.bounds, pane.scene.focus);
      pane.dirty = true;
    }
    app.redraw();
  };
  new ResizeObserver(resized).observe(stage);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.redraw());
  return panes;
}

function titles(app) {
  for (const pane of app.panes) {
    pane.over.textContent = "The episode is over.";
    pane.title.hidden = app.panes.length < 2;
    const who = pane.recording.policy?.name;
    pane.title.textContent = [plain(pane.recording.name, 30), plain(pane.track.branch.name, 30), who && plain(who, 30)].filter(Boolean).join(" · ");
  }
}

/** A fault of the engine ends what is shown, not the page. */
function faulty(app, cards, reason) {
  cards.error(reason, "engine");
  const {panes: gone} = app;
  app.panes = [];
  app.active = 0;
  for (const pane of gone) pane.close();
  app.emit("panes");
  const panes = document.querySelector(".panes");
  if (panes) fill(panes, welcome(app.commands.open));
}

function showBanner(app, banner) {
  const {track} = app;
  const human = track?.branch.live ? track.players.human : -1;
  const wanted = Boolean(track?.branch.live);
  if (banner.hidden === wanted) banner.hidden = !wanted;
  if (!wanted) return;
  const where = track.branch.parent ? `${plain(track.branch.name, 24)} from tick ${track.branch.forkTick}` : "a new game";
  const state = track.over ? "the episode is over" : !app.atTip ? `you are looking back; End goes to tick ${track.branch.ticks}` : human >= 0 ? `you play agent ${human}` : "live";
  const text = `${where} · ${state}`;
  if (banner.textContent !== text) banner.textContent = text;
}

function welcome(open) {
  return el("div", {class: "welcome"}, el("h2", {}, "Drop a replay here"), el("p", {}, "or ", el("button", {type: "button", class: "tool strong", onclick: open}, "open a file"), "."),
    el("p", {class: "soft"}, "gridmill eval GAME --replay FILE writes one; gridmill play GAME starts a new one."));
}

begin();
