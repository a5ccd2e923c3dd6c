// The bar on top: what is open, whether it is verified, and the buttons of the page.

import {el, fill, icon, plain, say} from "./dom.js";

const PATHS = {
  open: "M3 6.5A1.5 1.5 0 0 1 4.5 5h5l2 2.5h8A1.5 1.5 0 0 1 21 9v9.5a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 18.500z",
  save: "M11 3h2v9l3.300-3.300 1.400 1.400L12 15.800 6.300 10.100l1.400-1.400L11 12zM4 18h16v2.500H4z",
  theme: "M12 3a9 9 0 1 0 0 18V3z", help: "M11 17h2v2.200h-2zM12 4.500c2.700 0 4.500 1.700 4.500 4 0 2-1.300 2.900-2.300 3.700-.8.600-1.200 1-1.200 1.800v1h-2v-1.300c0-1.600 1-2.400 1.900-3.100.8-.700 1.500-1.200 1.500-2.100 0-1.200-.9-2-2.400-2s-2.500.9-2.500 2.300H7.500c0-2.500 1.900-4.300 4.500-4.300z",
  compare: "M4 4h7v16H4zM13 4h7v16h-7z",
};

export class TopBar {
  constructor(app, {open, save, compare, theme, help}) {
    this.app = app;
    this.name = el("h1", {}, "gridmill");
    this.sub = el("p", {class: "soft"});
    this.badge = el("span", {class: "badge", role: "status", id: "badge", hidden: true});
    const tool = (path, label, onclick, id) => el("button", {type: "button", class: "tool", onclick, id, title: label, "aria-label": label}, icon(path), el("span", {class: "wide"}, label.split(" (")[0]));
    this.save = tool(PATHS.save, "Save (S)", save, "save");
    this.compare = tool(PATHS.compare, "Compare (C)", compare, "compare");
    this.node = el("header", {class: "top"},
      el("div", {class: "logo", "aria-hidden": "true"}, el("i"), el("i"), el("i"), el("i")),
      el("div", {class: "names"}, this.name, this.sub), this.badge, el("span", {class: "space"}),
      tool(PATHS.open, "Open (O)", open, "open"), this.save, this.compare,
      tool(PATHS.theme, "Dark or light (D)", theme, "theme"), tool(PATHS.help, "Keys (?)", help, "help"));
    for (const name of ["change", "check"]) app.on(name, () => this.refresh());
    app.on("frame", () => this.frame());
  }

  refresh() {
    const {recording, track} = this.app;
    if (!recording) return;
    say(this.name, plain(recording.title, 40));
    document.title = `${plain(recording.title, 40)} · gridmill`;
    const {policy, seed} = recording;
    const parts = [plain(recording.name, 48), policy?.name && plain(ending(policy.name), 48), `seed ${seed}`];
    say(this.sub, parts.filter(Boolean).join(" · "));
    fill(this.badge, ...badgeOf(track));
    this.badge.hidden = false;
    this.badge.className = `badge ${track.check.state}`;
    this.badge.title = explained(track);
  }

  frame() {
    const {track, canSave} = this.app;
    if (!track) return;
    if (this.save.disabled === canSave) this.save.disabled = !canSave;
    if (track.check.state !== "checking") return;
    const share = Math.floor((100 * track.ledger.end) / Math.max(1, track.branch.ticks));
    if (share !== this.share) fill(this.badge, `checking ${share} %`);
    this.share = share;
  }
}

/** Of the path of a checkpoint the end, which says which one it is. */
function ending(name) {
  return String(name).split("/").slice(-3).join("/");
}

function badgeOf(track) {
  const {state, tick} = track.check;
  if (state === "verified") return [el("b", {}, "✓ "), "verified"];
  if (state === "differs") return [el("b", {}, "✗ "), `differs from tick ${tick}`];
  if (state === "checking") return ["checking"];
  return [el("b", {class: "dot"}), "live"];
}

function explained(track) {
  const {state, tick} = track.check;
  if (state === "verified") return `Played again in this page: every hash of the file matches, up to tick ${tick}.`;
  if (state === "differs") return `This engine plays the file differently from tick ${tick} on, or its actions were changed.`;
  if (state === "checking") return "The engine plays the file again and compares hashes.";
  return "Played live in this page.";
}
