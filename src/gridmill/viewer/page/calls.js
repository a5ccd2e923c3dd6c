// The C interface of the engine's module (native/wasm/interface.cpp): texts and bytes in, numbers, texts and bytes out, and
// what went wrong as an EngineError whose message is one line.

const MOST_BYTES = 1 << 30;  // of one argument: more is no game and no saved state

export class EngineError extends Error {
  constructor(message) {
    super(message);
    this.name = "EngineError";
  }
}

export class Calls {
  constructor(exports) {
    this._exports = exports;
    this._broken = "";
  }
  get memory() {
    return this._exports.memory.buffer;
  }

  // What a call answers. Whatever breaks inside is not trusted again.
  plain(name, ...given) {
    if (this._broken) throw new EngineError(this._broken);
    try {
      return this._exports[`gridmill_${name}`](...given);
    } catch (reason) {
      this._broken = `the engine crashed and must be loaded again: ${oneLine(reason)}`;
      throw new EngineError(this._broken);
    }
  }
  number(name, ...given) {
    const answer = this.plain(name, ...given);
    if (answer < 0 || (answer === 0 && (name === "open" || name === "policy"))) throw new EngineError(this.text());
    return answer;
  }
  // Ends what has this number, once; an engine that broke down has nothing left to end. The number is then 0.
  close(name, number) {
    if (number && !this._broken) this.plain(name, number);
    return 0;
  }
  pointer(name, ...given) {
    return this.plain(name, ...given) >>> 0;
  }

  // Calls with texts or bytes put into the module's memory: each becomes its place and its size.
  with(items, call) {
    if (items.length === 0) return call();
    const [item, ...others] = items;
    const bytes = typeof item === "string" ? new TextEncoder().encode(item) : item;
    if (!(bytes instanceof Uint8Array)) throw new EngineError("expected a Uint8Array, got something else");
    return this.room(bytes.length, (at) => {
      new Uint8Array(this.memory, at, bytes.length).set(bytes);
      return this.with(others, (...rest) => call(at, bytes.length, ...rest));
    });
  }

  // Calls with the place of so many bytes of the module's memory, and frees them.
  room(size, call) {
    if (size > MOST_BYTES) throw new EngineError(`expected at most ${MOST_BYTES} bytes, got ${size}`);
    const at = this.pointer("alloc", size);
    if (at === 0) throw new EngineError("not enough memory for this in the page");
    try {
      return call(at);
    } finally {
      if (!this._broken) this.plain("free", at);
    }
  }

  // What the last call left, in several readings.
  view() {
    const at = this.pointer("result");
    return new Uint8Array(this.memory, at, this.pointer("result_size"));
  }
  bytes() {
    return this.view().slice();
  }
  text() {
    return new TextDecoder().decode(this.bytes());
  }
  json() {
    return JSON.parse(this.text());
  }
  uint32s() {
    return new Uint32Array(this.bytes().buffer);
  }
  int32s() {
    return new Int32Array(this.bytes().buffer);
  }
  float64s() {
    return new Float64Array(this.bytes().buffer);
  }
  hash() {
    return new DataView(this.bytes().buffer).getBigUint64(0, true).toString(16).padStart(16, "0");
  }
}

export function oneLine(reason) {
  return String(reason?.message ?? reason).replace(/\s+/g, " ").slice(0, 300);
}
