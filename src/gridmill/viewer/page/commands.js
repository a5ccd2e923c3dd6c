// What buttons and keys can ask for: open, save, compare, take over, themes. Each catches what goes wrong and says it.

import {helpContent} from "./cards.js";
import {linkOf} from "./link.js";
import {newRecording, readReplay} from "./replay.js";
import {writeReplay} from "./replay_write.js";
import {afterPicture, el, figure, plain} from "./dom.js";
import {bytesOf, chosenFiles, download, fileBytes, listedFiles} from "./sources.js";

export class Commands {
  constructor(app, cards, engine) {
    this.app = app;
    this.cards = cards;
    this.engine = engine; // a promise: files may come before it
    for (const name of ["open", "save", "compare", "theme", "help", "follow", "takeOver", "letGo", "give", "giveAll", "giveTo", "beside", "fit", "palette", "copyLink", "tab", "cardOpen"]) {
      this[name] = this[name].bind(this);
    }
  }

  cardOpen() {
    return this.cards.isOpen;
  }

  // ---- files

  /** From the reader's disk, or one of those that the server has. */
  async open() {
    const listed = await listedFiles();
    if (listed.length === 0) return this.openFiles(await chosenFiles());
    const row = (file) => el("li", {}, el("button", {type: "button", class: "tool", onclick: () => this.openListed(file)}, plain(file.path, 70)), el("span", {class: "soft"}, ` ${figure(Math.ceil(file.size / 1000))} kB`));
    this.cards.open("Open", el("p", {}, el("button", {type: "button", class: "tool strong", onclick: async () => this.openFiles(await chosenFiles())}, "From your disk")), el("ul", {class: "files"}, listed.map(row)));
    return undefined;
  }

  async openListed({path}) {
    this.cards.close();
    const url = `files/${path.split("/").map(encodeURIComponent).join("/")}`;
    await this.guarded(path, async () => this.openBytes(await fileBytes({name: path, url}), path, this.app.panes.length > 1 ? this.app.active : 0));
  }

  /** One file takes the place of what is shown, a second one goes beside it. */
  async openFiles(files) {
    if (this.cards.isOpen) this.cards.close();
    for (const [i, file] of files.slice(0, 2).entries()) {
      await this.guarded(file.name, async () => this.openBytes(await bytesOf(file), file.name, files.length > 1 ? i : this.app.panes.length > 1 ? this.app.active : 0));
    }
  }

  async openBytes(bytes, name, index = 0) {
    const recording = await readReplay(bytes, name);
    await this.engine;
    this.show(recording, index);
  }

  show(recording, index) {
    this.app.pause();
    this.app.openIn(index, recording);
    if (index === 0) {
      this.app.select(recording.agents === 1 ? 0 : -1);
      this.app.seek(0);
    }
    this.addKeyframes(recording); // behind the first picture
  }

  /** The files that a server or an exported page begins with: promises, for they are read while the engine loads. */
  readStart({files = []}) {
    return files.slice(0, 2).map(async (file) => {
      try {
        return {file, recording: await readReplay(await fileBytes(file), file.name)};
      } catch (reason) {
        return {file, reason};
      }
    });
  }

  /** What a server or an exported page begins with. */
  async openStart({game = null, play = null}, recordings) {
    for (const [i, {file, recording, reason}] of (await Promise.all(recordings)).entries()) {
      await this.guarded(file.name, async () => {
        if (reason) throw reason;
        this.show(recording, i);
      });
    }
    if (this.app.active > 0) {
      this.app.active = 0;
      this.app.changed();
    }
    if (!game) return;
    await this.guarded(game.names?.game ?? "game", async () => {
      const recording = newRecording(game, "new game");
      this.app.openIn(0, recording);
      if (play?.others) this.app.takeOver("*", play.others);
      if (play && play.agent !== null && play.agent !== undefined) {
        this.app.takeOver(play.agent, "human");
        this.come();
      }
    });
  }

  /** Saved states of the file make far ticks near before the engine has been there. Nobody trusts them. */
  async addKeyframes(recording) {
    const {app} = this;
    for (const pane of app.panes) {
      if (pane.recording !== recording) continue;
      const {track} = pane; // another branch may be shown while this one's are read
      for (const {tick, state} of track.branch.keyframes) {
        await afterPicture();
        if (tick <= track.ledger.end) continue;
        try {
          track.states.keepOther(tick, await recording.blocks.read(state, null, "$.keyframes"));
        } catch {
          return; // seeking is slower without it, and nothing else
        }
      }
    }
  }

  async save() {
    const {app} = this;
    const {recording, pane} = app;
    if (!app.canSave) {
      this.cards.notice("Nothing has been played here yet: take over an agent first (T).");
      return;
    }
    app.pause();
    await this.guarded("save", async () => {
      const bytes = await writeReplay(recording, (branch) => played(pane.trackOf(branch)));
      const base = recording.name.replace(/^.*[/\\]/, "").replace(/\.replay$/, "").replace(/[^\w.-]+/g, "-").slice(0, 60) || "played";
      download(bytes, `${base}${recording.fresh ? "" : "-fork"}.replay`);
      this.cards.notice("Saved: the file contains the recording and every fork.");
    });
  }

  async guarded(where, work) {
    try {
      await work();
    } catch (reason) {
      this.cards.error(reason, String(where).slice(0, 60));
    }
  }

  // ---- comparing

  compare() {
    const {app} = this;
    if (!app.track) return;
    if (app.panes.length > 1) app.closePane(1);
    else this.beside(app.recording.branches[0]);
  }

  beside(branch) {
    const {app} = this;
    this.guarded("compare", async () => {
      const {recording} = app;
      app.openIn(1, recording, recording.branches.indexOf(branch));
      app.active = 0;
      app.changed();
    });
  }

  // ---- taking over

  takeOver() {
    const {app} = this;
    if (!app.track) return;
    if (app.selected < 0) app.select(0);
    this.give("human");
  }

  give(name) {
    this.giveTo(Math.max(0, this.app.selected), name);
  }

  giveAll(name) {
    this.giveTo("*", name);
  }

  giveTo(agent, name) {
    const {app} = this;
    this.guarded("take over", async () => {
      if (name === "replay" && !app.track.branch.live) return;
      app.pause();
      app.takeOver(agent, name);
      if (Object.values(app.track.branch.who).includes("policy")) await this.loadPolicy();
      if (name === "human") this.come();
      if (name === "human") this.cards.notice("You play. Arrows move, space waits, Enter finds an action, Esc gives the agent back.");
      else this.cards.notice("A fork begins here: press play.");
    });
  }

  async loadPolicy() {
    const {app} = this;
    const {players} = app.track;
    if (!players.policy) players.usePolicy(await this.makePolicy());
    app.changed();
  }

  /** The policy of the file, ready to play. */
  async makePolicy() {
    const {recording, engine} = this.app;
    const {config, spec} = recording.policy;
    recording.weights ??= await recording.policy.tensors();
    return engine.policy({config, spec, tensors: recording.weights, masks: recording.policy.masks});
  }

  letGo() {
    const {app} = this;
    app.following = false;
    app.select(app.track?.info.numAgents === 1 ? 0 : -1);
  }

  follow() {
    const {app} = this;
    if (app.selected < 0) app.selectNext(1);
    app.following = !app.following;
    const {camera} = app.pane;
    const place = app.pane.scene?.seen && app.pane.scene.agentPlace(app.selected);
    if (app.following && camera.scale < 26) camera.centre(place?.x ?? camera.x, place?.y ?? camera.y, 30);
    app.select(app.selected);
  }

  /** Near the agent that one plays. */
  come() {
    const {app} = this;
    app.following = false;
    for (const pane of app.panes) pane.refit = false;
    if (app.track.info.kind !== "prospector") this.follow();
  }

  palette() {
    this.tab(0);
    const find = document.getElementById("find-action");
    const first = document.querySelector("#actions button.can");
    if (find && !find.hidden) find.focus();
    else if (first) first.focus();
  }

  // ---- the page

  fit() {
    this.app.following = false;
    for (const pane of this.app.panes) pane.camera.fit(pane.scene.bounds, pane.scene.focus);
    this.app.select(this.app.selected);
  }

  tab(index) {
    this.sidebar.open(index);
  }

  theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.app.redraw();
  }

  help() {
    this.cards.open("Keys", ...helpContent());
  }

  async copyLink() {
    const link = location.href.replace(/#.*$/, "") + linkOf(this.app);
    try {
      await navigator.clipboard.writeText(link);
      this.cards.notice("Copied.");
    } catch {
      this.cards.open("Link", document.createTextNode(link));
    }
  }
}

/** A track when the engine has played all of its branch: another pane's may have been the one that was played in. */
async function played(track) {
  while (track.work(30)) await new Promise((resolve) => setTimeout(resolve));
  if (!track.knows(track.branch.ticks)) throw new Error(`${plain(track.branch.name, 30)}: this engine cannot play it to its end`);
  return track;
}
