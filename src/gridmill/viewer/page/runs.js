// Saved states in less room. Most of a large world's words are the same again and again, or the same as in a state a
// little before: a state is kept as runs, or as runs of what is different from another one. Taking one back costs what
// it takes to fill the memory; a difference costs only what is different.

const RUN = 0x80000000;
const LEAST = 4; // words: shorter runs are not worth two numbers
let room = new Uint32Array(0); // the longest result so far

/** {words, size, tail}: the bytes with their runs taken out. With `base`, a state of the same size, of what differs. */
export function pack(bytes, base = null) {
  const count = bytes.length >> 2;
  const words = wordsOf(bytes);
  const old = base && wordsOf(base);
  if (room.length < count + 2) room = new Uint32Array(count + 2);
  let [to, from, at] = [0, 0, 0];
  while (at < count) {
    let end = at + 1;
    let word = 0;
    if (old) while (end < count && words[at] === old[at] && words[end] === old[end]) end += 1;
    else {
      word = words[at];
      while (end < count && words[end] === word) end += 1;
    }
    if (end - at >= LEAST) {
      to = literal(words, from, at, to);
      room[to++] = RUN + (end - at);
      if (!old) room[to++] = word;
      from = end;
    }
    at = end;
  }
  to = literal(words, from, count, to);
  return {words: room.slice(0, to), size: bytes.length, tail: bytes.slice(count * 4)};
}

function literal(words, from, end, to) {
  if (end === from) return to;
  room[to] = end - from;
  room.set(words.subarray(from, end), to + 1);
  return to + 1 + end - from;
}

/** The bytes again, written into `bytes`; a difference goes onto the state it was made from. */
export function unpackInto(bytes, {words, size, tail}, isDifference = false) {
  const out = wordsOf(bytes);
  let [to, at] = [0, 0];
  while (at < words.length) {
    const head = words[at++];
    if (head >= RUN) {
      if (!isDifference) out.fill(words[at++], to, to + head - RUN);
      to += head - RUN;
    } else {
      out.set(words.subarray(at, at + head), to);
      at += head;
      to += head;
    }
  }
  bytes.set(tail, size - tail.length);
}

function wordsOf(bytes) {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
}
