// Unpacking LZMA, which holds the engine of an exported page in two thirds of what gzip needs, and which browsers do not
// know. This reads the old container (13 bytes: properties, dictionary, size) that Python's `lzma` writes as
// FORMAT_ALONE. Our own data only: what is wrong with it is an error, and it never writes beyond the size it is given.

import {FileError} from "./bytes.js";

const TOP = 2 ** 24;
const STATES = 12;
const END_SLOT = 14; // of distances, after which bits have no model of their own
const SHORTEST = 2; // of a match

/** Bits from the range coder; a model is one number in an array of probabilities. */
class Bits {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at + 1; // the first byte is always 0
    this.range = 0xffffffff;
    this.code = 0;
    for (let i = 0; i < 4; i += 1) this.code = ((this.code << 8) | bytes[this.at++]) >>> 0;
  }

  bit(models, index) {
    const model = models[index];
    const bound = (this.range >>> 11) * model;
    let bit;
    if (this.code < bound) {
      this.range = bound;
      models[index] = model + ((2048 - model) >> 5);
      bit = 0;
    } else {
      this.range -= bound;
      this.code -= bound;
      models[index] = model - (model >> 5);
      bit = 1;
    }
    if (this.range < TOP) this.refill();
    return bit;
  }

  refill() {
    this.range = (this.range << 8) >>> 0;
    this.code = ((this.code << 8) | this.bytes[this.at++]) >>> 0;
  }

  /** Bits that are as often 0 as 1. */
  direct(count) {
    let value = 0;
    for (let i = 0; i < count; i += 1) {
      this.range >>>= 1;
      const bit = this.code >= this.range ? 1 : 0;
      if (bit) this.code -= this.range;
      value = value * 2 + bit;
      if (this.range < TOP) this.refill();
    }
    return value;
  }

  /** A number of `count` bits, the highest first, each with a model that depends on those before. */
  tree(models, from, count) {
    let node = 1;
    for (let i = 0; i < count; i += 1) node = node * 2 + this.bit(models, from + node);
    return node - (1 << count);
  }

  /** The same, the lowest bit first. */
  reverse(models, from, count) {
    let [node, value] = [1, 0];
    for (let i = 0; i < count; i += 1) {
      const bit = this.bit(models, from + node);
      node = node * 2 + bit;
      value += bit << i;
    }
    return value;
  }
}

function models(count) {
  return new Uint16Array(count).fill(1024);
}

/** Lengths of matches: short, middle and long ones. */
class Lengths {
  constructor() {
    this.choice = models(2);
    this.short = models(16 << 3);
    this.middle = models(16 << 3);
    this.long = models(256);
  }

  read(bits, position) {
    if (bits.bit(this.choice, 0) === 0) return bits.tree(this.short, position << 3, 3);
    if (bits.bit(this.choice, 1) === 0) return 8 + bits.tree(this.middle, position << 3, 3);
    return 16 + bits.tree(this.long, 0, 8);
  }
}

/** The bytes behind an LZMA stream, of which there must be at most `most`. */
export function unlzma(bytes, most) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 18 || bytes[0] >= 225) throw new FileError("lzma: expected a stream, got something else");
  const known = view.getUint32(9, true) === 0xffffffff ? -1 : view.getUint32(5, true);
  return new Unpacking(bytes, known < 0 ? most : Math.min(known, most)).run();
}

class Unpacking {
  constructor(bytes, room) {
    const properties = bytes[0];
    this.lc = properties % 9;
    this.lp = Math.floor(properties / 9) % 5;
    this.pbMask = (1 << Math.floor(properties / 45)) - 1;
    this.bits = new Bits(bytes, 13);
    this.out = new Uint8Array(room);
    this.size = 0;
    this.literals = models(0x300 << (this.lc + this.lp));
    this.isMatch = models(STATES << 4);
    this.isRep = models(STATES);
    this.isRep0 = models(STATES);
    this.isRep1 = models(STATES);
    this.isRep2 = models(STATES);
    this.isLong = models(STATES << 4);
    this.slots = models(4 << 6);
    this.middle = models(115);
    this.aligned = models(16);
    this.lengths = new Lengths();
    this.repLengths = new Lengths();
  }

  run() {
    const {bits} = this;
    let state = 0;
    let [d0, d1, d2, d3] = [0, 0, 0, 0];
    while (this.size < this.out.length) {
      const position = this.size & this.pbMask;
      if (bits.bit(this.isMatch, (state << 4) + position) === 0) {
        this.literal(state, d0);
        state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
        continue;
      }
      let length;
      if (bits.bit(this.isRep, state) === 0) {
        [d3, d2, d1] = [d2, d1, d0];
        length = this.lengths.read(bits, position);
        state = state < 7 ? 7 : 10;
        d0 = this.distance(length);
        if (d0 === 0xffffffff) break; // the mark of the end
      } else {
        if (bits.bit(this.isRep0, state) === 0) {
          if (bits.bit(this.isLong, (state << 4) + position) === 0) {
            state = state < 7 ? 9 : 11;
            this.copy(d0, 1);
            continue;
          }
        } else if (bits.bit(this.isRep1, state) === 0) [d0, d1] = [d1, d0];
        else if (bits.bit(this.isRep2, state) === 0) [d0, d1, d2] = [d2, d0, d1];
        else [d0, d1, d2, d3] = [d3, d0, d1, d2];
        length = this.repLengths.read(bits, position);
        state = state < 7 ? 8 : 11;
      }
      this.copy(d0, length + SHORTEST);
    }
    return this.out.subarray(0, this.size);
  }

  /** One byte as it is; after a match the byte that would have gone on helps to guess it. */
  literal(state, d0) {
    const {bits, out} = this;
    const before = this.size > 0 ? out[this.size - 1] : 0;
    const from = 0x300 * (((this.size & ((1 << this.lp) - 1)) << this.lc) + (before >> (8 - this.lc)));
    let symbol = 1;
    if (state >= 7) {
      let guess = out[this.size - d0 - 1];
      while (symbol < 0x100) {
        const hint = (guess >> 7) & 1;
        guess <<= 1;
        const bit = bits.bit(this.literals, from + ((1 + hint) << 8) + symbol);
        symbol = symbol * 2 + bit;
        if (bit !== hint) break;
      }
    }
    while (symbol < 0x100) symbol = symbol * 2 + bits.bit(this.literals, from + symbol);
    out[this.size++] = symbol & 0xff;
  }

  distance(length) {
    const {bits} = this;
    const slot = bits.tree(this.slots, Math.min(length, 3) << 6, 6);
    if (slot < 4) return slot;
    const count = (slot >> 1) - 1;
    const base = (2 | (slot & 1)) * 2 ** count;
    if (slot < END_SLOT) return base + bits.reverse(this.middle, base - slot, count);
    return base + bits.direct(count - 4) * 16 + bits.reverse(this.aligned, 0, 4);
  }

  copy(distance, length) {
    if (distance >= this.size) throw new FileError("lzma: a match reaches back beyond the beginning");
    const end = Math.min(this.out.length, this.size + length);
    for (let from = this.size - distance - 1; this.size < end; from += 1) this.out[this.size++] = this.out[from];
  }
}
