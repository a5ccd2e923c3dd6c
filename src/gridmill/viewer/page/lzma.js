// Unpacking LZMA, which holds the engine of an exported page in two thirds of what gzip needs, and which browsers do not
// know. This reads the old container (13 bytes: properties, dictionary, size) that Python's `lzma` writes as
// FORMAT_ALONE. Our own data only: what is wrong with it is an error, and it never writes beyond the size it is given.
//
// A page waits for this, so it is written to be compiled well: the range coder's two numbers need all 32 bits, which a
// field of an object holds on the heap, so they live in a typed array, and in local variables where bits come in rows.

import {FileError} from "./bytes.js";

const TOP = 2 ** 24;
const STATES = 12;
const END_SLOT = 14; // of distances, after which bits have no model of their own
const SHORTEST = 2; // of a match
const RANGE = 0; // places in the coder's array
const CODE = 1;
const AT = 2;

// Models are numbers in one array; where each kind begins.
const IS_MATCH = 0;
const IS_REP = IS_MATCH + (STATES << 4);
const IS_REP0 = IS_REP + STATES;
const IS_REP1 = IS_REP0 + STATES;
const IS_REP2 = IS_REP1 + STATES;
const IS_LONG = IS_REP2 + STATES;
const SLOTS = IS_LONG + (STATES << 4);
const MIDDLE = SLOTS + (4 << 6);
const ALIGNED = MIDDLE + 115;
const LENGTHS = ALIGNED + 16; // two choices, 16 short trees, 16 middle ones, a long one
const REP_LENGTHS = LENGTHS + 2 + 128 + 128 + 256;
const LITERALS = REP_LENGTHS + 2 + 128 + 128 + 256;

/** The bytes behind an LZMA stream, of which there must be at most `most`. */
export function unlzma(bytes, most) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 18 || bytes[0] >= 225) throw new FileError("lzma: expected a stream, got something else");
  const known = view.getUint32(9, true) === 0xffffffff ? -1 : view.getUint32(5, true);
  const out = new Uint8Array(known < 0 ? most : Math.min(known, most));
  return out.subarray(0, run(bytes, out));
}

/** Fills `out`; how much of it was filled. */
function run(bytes, out) {
  const properties = bytes[0];
  const lc = properties % 9;
  const lpMask = (1 << (Math.floor(properties / 9) % 5)) - 1;
  const pbMask = (1 << Math.floor(properties / 45)) - 1;
  const models = new Uint16Array(LITERALS + (0x300 << (lc + 4))).fill(1024);
  const coder = new Uint32Array([0xffffffff, new DataView(bytes.buffer, bytes.byteOffset + 14, 4).getUint32(0), 18]);
  let [state, size, d0, d1, d2, d3] = [0, 0, 0, 0, 0, 0];
  while (size < out.length) {
    const position = size & pbMask;
    if (bit(bytes, coder, models, IS_MATCH + (state << 4) + position) === 0) {
      const before = size > 0 ? out[size - 1] : 0;
      const from = LITERALS + 0x300 * (((size & lpMask) << lc) + (before >> (8 - lc)));
      out[size] = state < 7 ? tree(bytes, coder, models, from, 8) : guessed(bytes, coder, models, from, out[size - d0 - 1]);
      size += 1;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let length = SHORTEST;
    if (bit(bytes, coder, models, IS_REP + state) === 0) {
      d3 = d2;
      d2 = d1;
      d1 = d0;
      length += lengthOf(bytes, coder, models, LENGTHS, position);
      state = state < 7 ? 7 : 10;
      d0 = distanceOf(bytes, coder, models, length - SHORTEST);
      if (d0 === 0xffffffff) break; // the mark of the end
    } else {
      let short = false;
      if (bit(bytes, coder, models, IS_REP0 + state) === 0) short = bit(bytes, coder, models, IS_LONG + (state << 4) + position) === 0;
      else if (bit(bytes, coder, models, IS_REP1 + state) === 0) [d0, d1] = [d1, d0];
      else if (bit(bytes, coder, models, IS_REP2 + state) === 0) [d0, d1, d2] = [d2, d0, d1];
      else [d0, d1, d2, d3] = [d3, d0, d1, d2];
      if (short) length = 1;
      else length += lengthOf(bytes, coder, models, REP_LENGTHS, position);
      state = short ? (state < 7 ? 9 : 11) : state < 7 ? 8 : 11;
    }
    if (d0 >= size) throw new FileError("lzma: a match reaches back beyond the beginning");
    const end = Math.min(out.length, size + length);
    for (; size < end; size += 1) out[size] = out[size - d0 - 1];
  }
  return size;
}

/** One bit from the range coder, by a model that learns from it. */
function bit(bytes, coder, models, index) {
  const model = models[index];
  const range = coder[RANGE];
  const code = coder[CODE];
  const bound = Math.imul(range >>> 11, model) >>> 0;
  const one = code >= bound ? 1 : 0;
  let left = one ? (range - bound) >>> 0 : bound;
  let rest = one ? (code - bound) >>> 0 : code;
  models[index] = one ? model - (model >> 5) : model + ((2048 - model) >> 5);
  if (left < TOP) {
    left = (left << 8) >>> 0;
    rest = ((rest << 8) | bytes[coder[AT]++]) >>> 0;
  }
  coder[RANGE] = left;
  coder[CODE] = rest;
  return one;
}

/** A number of `count` bits, the highest first, each with a model that depends on those before. */
function tree(bytes, coder, models, from, count) {
  let node = 1;
  let range = coder[RANGE];
  let code = coder[CODE];
  for (let i = 0; i < count; i += 1) {
    const model = models[from + node];
    const bound = Math.imul(range >>> 11, model) >>> 0;
    if (code < bound) {
      range = bound;
      models[from + node] = model + ((2048 - model) >> 5);
      node <<= 1;
    } else {
      range = (range - bound) >>> 0;
      code = (code - bound) >>> 0;
      models[from + node] = model - (model >> 5);
      node = (node << 1) | 1;
    }
    if (range < TOP) {
      range = (range << 8) >>> 0;
      code = ((code << 8) | bytes[coder[AT]++]) >>> 0;
    }
  }
  coder[RANGE] = range;
  coder[CODE] = code;
  return node - (1 << count);
}

/** The same, the lowest bit first. */
function reverse(bytes, coder, models, from, count) {
  const found = tree(bytes, coder, models, from, count);
  let value = 0;
  for (let i = 0; i < count; i += 1) value |= ((found >> i) & 1) << (count - 1 - i);
  return value;
}

/** A byte after a match: the one that would have gone on helps to guess it, as long as it is right. */
function guessed(bytes, coder, models, from, guess) {
  let symbol = 1;
  let offset = 0x100; // 0 once a bit was guessed wrong
  let left = guess;
  let range = coder[RANGE];
  let code = coder[CODE];
  let at = coder[AT];
  while (symbol < 0x100) {
    left <<= 1;
    const hint = left & offset;
    const index = from + offset + hint + symbol;
    const model = models[index];
    const bound = Math.imul(range >>> 11, model) >>> 0;
    if (code < bound) {
      range = bound;
      models[index] = model + ((2048 - model) >> 5);
      symbol <<= 1;
      offset &= ~hint;
    } else {
      range = (range - bound) >>> 0;
      code = (code - bound) >>> 0;
      models[index] = model - (model >> 5);
      symbol = (symbol << 1) | 1;
      offset &= hint;
    }
    if (range < TOP) {
      range = (range << 8) >>> 0;
      code = ((code << 8) | bytes[at]) >>> 0;
      at += 1;
    }
  }
  coder[RANGE] = range;
  coder[CODE] = code;
  coder[AT] = at;
  return symbol & 0xff;
}

/** Lengths of matches: short, middle and long ones. */
function lengthOf(bytes, coder, models, from, position) {
  if (bit(bytes, coder, models, from) === 0) return tree(bytes, coder, models, from + 2 + (position << 3), 3);
  if (bit(bytes, coder, models, from + 1) === 0) return 8 + tree(bytes, coder, models, from + 130 + (position << 3), 3);
  return 16 + tree(bytes, coder, models, from + 258, 8);
}

function distanceOf(bytes, coder, models, length) {
  const slot = tree(bytes, coder, models, SLOTS + (Math.min(length, 3) << 6), 6);
  if (slot < 4) return slot;
  const count = (slot >> 1) - 1;
  const base = (2 | (slot & 1)) * 2 ** count;
  if (slot < END_SLOT) return base + reverse(bytes, coder, models, MIDDLE + base - slot, count);
  return base + direct(bytes, coder, count - 4) * 16 + reverse(bytes, coder, models, ALIGNED, 4);
}

/** Bits that are as often 0 as 1. */
function direct(bytes, coder, count) {
  let value = 0;
  let range = coder[RANGE];
  let code = coder[CODE];
  for (let i = 0; i < count; i += 1) {
    range >>>= 1;
    const one = code >= range;
    if (one) code = (code - range) >>> 0;
    value = value * 2 + (one ? 1 : 0);
    if (range < TOP) {
      range = (range << 8) >>> 0;
      code = ((code << 8) | bytes[coder[AT]++]) >>> 0;
    }
  }
  coder[RANGE] = range;
  coder[CODE] = code;
  return value;
}
