// The keyboard. While a person plays an agent at the end of a live branch, arrows move it; otherwise they move the clock.

const DIRECTIONS = {
  ArrowUp: "north", ArrowDown: "south", ArrowLeft: "west", ArrowRight: "east",
  Numpad8: "north", Numpad2: "south", Numpad4: "west", Numpad6: "east", Numpad7: "northwest", Numpad9: "northeast", Numpad1: "southwest", Numpad3: "southeast",
  y: "northwest", u: "northeast", b: "southwest", m: "southeast",
};

const SIGNS = {BracketLeft: "[", BracketRight: "]", Comma: ",", Period: ".", Minus: "-", Equal: "=", Slash: "?"};

/** What a key means: the letter or sign on it, large or small; where keys have others, the one that is usual at its place. */
function keyOf({key = "", code = "", shiftKey = false}) {
  const isStrange = /^[^\x00-\x7f]$/.test(key) || key === "Dead";
  if (/^Digit[0-5]$/.test(code) && !shiftKey) return code[5]; // some need Shift for digits
  if (isStrange && /^Key[A-Z]$/.test(code)) return code[3].toLowerCase();
  if (isStrange && SIGNS[code]) return SIGNS[code];
  return key.length === 1 ? key.toLowerCase() : key;
}

export class Keys {
  constructor(app, commands) {
    this.app = app;
    this.commands = commands;
    this.vibe = 0;
    document.addEventListener("keydown", (event) => this.pressed(event));
  }

  pressed(event) {
    const tag = event.target.tagName;
    const isCommand = (event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph"); // which writes [ and ]
    if (isCommand || tag === "INPUT" || tag === "TEXTAREA" || this.commands.cardOpen()) return;
    if (tag === "SELECT" && event.key !== "Escape") return;
    if (tag === "BUTTON" && (event.key === " " || event.key === "Enter")) return;
    if (!this.app.track) return void this.global(event);
    if (this.playing() && this.play(event)) event.preventDefault();
    else if (this.watch(event) || this.global(event)) event.preventDefault();
  }

  /** Whether arrows belong to an agent. */
  playing() {
    const {app} = this;
    return app.live && app.atTip && app.track.players.human >= 0;
  }

  play(event) {
    const {app} = this;
    const names = app.track.info.actionNames;
    const act = (name) => {
      const action = names.indexOf(name);
      if (action >= 0) app.act(action);
      return action >= 0;
    };
    const key = keyOf(event);
    const direction = DIRECTIONS[event.code] ?? DIRECTIONS[key];
    if (direction) {
      if (names.includes("left")) return act({west: "left", east: "right"}[direction] ?? "stay");
      return act(`move_${direction}`);
    }
    if (key === " " && !app.playing) {
      app.act(app.track.players.idle);
      return true;
    }
    if (key === "x") return act("attack_nearest") || act("attack_0");
    if (key === "z") return act("swap");
    if (key === "v") {
      const {vibes} = app.track.info;
      if (!vibes?.length) return false;
      this.vibe = (this.vibe + 1) % vibes.length;
      return act(`change_vibe_${vibes[this.vibe]}`);
    }
    if (event.key === "Enter") {
      this.commands.palette();
      return true;
    }
    if (event.key === "Escape") {
      this.commands.giveTo(app.track.players.human, app.track.branch.parent ? "replay" : "noop");
      return true;
    }
    return false;
  }

  watch(event) {
    const {app} = this;
    const far = event.shiftKey ? 10 : 1;
    const camera = app.pane.camera;
    const does = {
      " ": () => app.toggle(), ArrowRight: () => app.step(far), ArrowLeft: () => app.step(-far), Home: () => app.seek(0), End: () => app.seek(app.end),
      PageUp: () => app.seek(app.tick - 100), PageDown: () => app.seek(app.tick + 100),
      "[": () => app.faster(-1), "]": () => app.faster(1), ",": () => this.toMark(-1), ".": () => this.toMark(1),
      n: () => app.selectNext(1), p: () => app.selectNext(-1), f: () => this.commands.follow(), t: () => this.commands.takeOver(),
      Escape: () => this.commands.letGo(), "+": () => camera.zoom(1.3), "=": () => camera.zoom(1.3), "-": () => camera.zoom(1 / 1.3), 0: () => this.commands.fit(),
      ArrowUp: () => camera.pan(0, 40), ArrowDown: () => camera.pan(0, -40),
      i: () => camera.pan(0, 40), k: () => camera.pan(0, -40), j: () => camera.pan(40, 0), l: () => camera.pan(-40, 0),
      w: () => app.toggleOverlay("window"), r: () => app.toggleOverlay("trail"), h: () => app.toggleOverlay("heat"), a: () => app.toggleOverlay("areas"),
      s: () => this.commands.save(), c: () => this.commands.compare(),
    }[keyOf(event)];
    if (does) does();
    return Boolean(does);
  }

  global(event) {
    const key = keyOf(event);
    const does = {o: this.commands.open, d: this.commands.theme, "?": this.commands.help}[key];
    if (does) does();
    else if (/^[1-5]$/.test(key)) this.commands.tab(Number(key) - 1);
    else return false;
    return true;
  }

  /** To the event before or after. */
  toMark(by) {
    const {app} = this;
    const ticks = app.track.ledger.allMarks().filter((mark) => app.selected < 0 || mark.agent < 0 || mark.agent === app.selected).map((mark) => mark.tick);
    const found = by > 0 ? ticks.filter((tick) => tick > app.tick) : ticks.filter((tick) => tick < app.tick);
    if (!found.length) return;
    app.pause();
    app.seek(by > 0 ? Math.min(...found) : Math.max(...found));
  }
}
