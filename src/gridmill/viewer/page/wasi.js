// What the engine's module asks of its host: a clock, and little else (WASI preview 1).

export const NOT_SUPPORTED = 52;
const BAD_DESCRIPTOR = 8;

export class Host {
  constructor() {
    this.memory = null;
  }
  get _view() {
    return new DataView(this.memory.buffer);
  }
  clock_time_get(id, precision, at) {
    this._view.setBigUint64(at, BigInt(Math.round(globalThis.performance.now() * 1e6)), true);
    return 0;
  }
  environ_sizes_get(count, size) {
    this._view.setUint32(count, 0, true);
    this._view.setUint32(size, 0, true);
    return 0;
  }
  environ_get() {
    return 0;
  }
  args_sizes_get(count, size) {
    return this.environ_sizes_get(count, size);
  }
  args_get() {
    return 0;
  }
  // The core never prints; what a library has to say before it gives up is dropped.
  fd_write(descriptor, vectors, count, written) {
    let size = 0;
    for (let i = 0; i < count; ++i) size += this._view.getUint32(vectors + 8 * i + 4, true);
    this._view.setUint32(written, size, true);
    return 0;
  }
  fd_read() {
    return BAD_DESCRIPTOR;
  }
  fd_close() {
    return BAD_DESCRIPTOR;
  }
  fd_seek() {
    return BAD_DESCRIPTOR;
  }
  fd_fdstat_get() {
    return BAD_DESCRIPTOR;
  }
  fd_prestat_get() {
    return BAD_DESCRIPTOR;
  }
  proc_exit(code) {
    throw new Error(`it exited with code ${code}`);
  }
}
