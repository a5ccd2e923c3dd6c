// The saved states of a track, by tick, in a bounded room. Those that the engine made itself are kept as what differs
// from a whole one before them; every now and then, when too much does, one is whole. A state of the file is only used
// until the engine has been there.

import {pack, unpackInto} from "./runs.js";

export const MOST_BYTES = 200e6; // of all tracks of a page together
const PLANNED = 0.9; // of the room: states may become larger than they were
const FEWEST = 8; // that are kept, however small the room
const WORTH = 0.5; // of a whole state: a difference that is longer is not worth its while

export class States {
  constructor(most = MOST_BYTES) {
    this.most = most;
    this.list = []; // {tick, state, base, own}, ascending; base: the frame that it differs from, or null of a whole one
    this.bytes = 0;
    this.usual = 0; // bytes of one of them, of late
    this.gap = 0; // ticks between two of them, at least: grows when there is no more room
    this.whole = null; // {frame, bytes}: the last whole state that was made, as it is
  }

  /** Another room; what does not fit goes. */
  limit(most) {
    this.most = most;
    while (this.bytes > most && this.list.length > FEWEST) this.thin();
  }

  /** Ticks between two states, so that those of as many ticks as are still to come fit into what is left of the room. */
  spacing(ticks) {
    return Math.ceil((ticks * this.usual) / Math.max(1, PLANNED * this.most - this.bytes));
  }

  /** Keep the state of one of our worlds, as it is before a tick. */
  keep(tick, world) {
    this.put(world.saved((bytes) => this.packed(tick, bytes)));
  }

  /** Keep a state that the file brought, where there is none yet. */
  keepOther(tick, bytes) {
    if (this.before(tick)?.tick !== tick) this.put({tick, state: pack(aligned(bytes)), base: null, own: false});
  }

  packed(tick, bytes) {
    const {whole} = this;
    if (whole && whole.frame.tick < tick && whole.bytes.length === bytes.length) {
      const state = pack(bytes, whole.bytes);
      if (state.words.length < WORTH * whole.frame.state.words.length) return {tick, state, base: whole.frame, own: true};
    }
    const frame = {tick, state: pack(bytes), base: null, own: true};
    this.whole = {frame, bytes: bytes.slice()};
    return frame;
  }

  put(frame) {
    const at = this.list.findIndex((other) => other.tick >= frame.tick);
    const replaces = at >= 0 && this.list[at].tick === frame.tick;
    this.list.splice(at < 0 ? this.list.length : at, replaces ? 1 : 0, frame);
    const size = frame.state.words.byteLength;
    this.usual = this.usual ? 0.8 * this.usual + 0.2 * size : size;
    this.count();
    if (this.bytes > this.most && this.list.length > FEWEST) this.thin();
  }

  /** Every second difference goes, or, if there are few, every second whole state with what differs from it. */
  thin() {
    const [first] = this.list;
    const most = this.list.filter((frame) => frame.base).length > this.list.length / 2;
    const gone = new Set(this.list.filter((frame) => frame !== first && Boolean(frame.base) === most).filter((_, i) => i % 2 === 0));
    this.list = this.list.filter((frame) => !gone.has(frame) && !gone.has(frame.base));
    if (this.whole && gone.has(this.whole.frame)) this.whole = null;
    this.count();
    const own = this.list.filter((frame) => frame.own);
    if (own.length > 1) this.gap = Math.ceil((own.at(-1).tick - own[0].tick) / (own.length - 1));
  }

  count() {
    this.bytes = this.list.reduce((sum, frame) => sum + frame.state.words.byteLength, 0);
  }

  /** The nearest at or before a tick; `own`: none of the file. */
  before(tick, own = false) {
    let best = null;
    for (const frame of this.list) {
      if (frame.tick > tick) break;
      if (frame.own || !own) best = frame;
    }
    return best;
  }

  forget(which) {
    this.list = this.list.filter((frame) => frame.own || !which(frame));
    this.count();
  }

  restore(world, {state, base}) {
    world.restoreFrom(state.size, (room) => {
      unpackInto(room, base ? base.state : state);
      if (base) unpackInto(room, state, true);
    });
  }
}

/** The same bytes, at a place where words can be read. */
function aligned(bytes) {
  return bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
}
