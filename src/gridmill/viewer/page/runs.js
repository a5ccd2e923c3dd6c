// Saved states in less room: most of a large world's rows are the same word again and again. Runs of a word become two
// numbers, the rest stays as it is; both ways take about a millisecond for a megabyte.

const RUN = 0x80000000;
const LEAST = 4; // words: shorter runs are not worth two numbers

/** {words, size}: the bytes with their runs taken out. */
export function pack(bytes) {
  const count = bytes.length >> 2;
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, count);
  const out = new Uint32Array(count + 2 + Math.ceil(count / LEAST));
  let [to, from, at] = [0, 0, 0];
  const literal = (end) => {
    if (end === from) return;
    out[to++] = end - from;
    out.set(words.subarray(from, end), to);
    to += end - from;
  };
  while (at < count) {
    const word = words[at];
    let end = at + 1;
    while (end < count && words[end] === word) end += 1;
    if (end - at >= LEAST) {
      literal(at);
      out[to++] = RUN + (end - at);
      out[to++] = word;
      from = end;
    }
    at = end;
  }
  literal(count);
  return {words: out.slice(0, to), size: bytes.length, tail: bytes.slice(count * 4)};
}

/** The bytes again. */
export function unpack({words, size, tail}) {
  const bytes = new Uint8Array(size);
  const out = new Uint32Array(bytes.buffer, 0, size >> 2);
  let [to, at] = [0, 0];
  while (at < words.length) {
    const head = words[at++];
    if (head >= RUN) {
      out.fill(words[at++], to, to + head - RUN);
      to += head - RUN;
    } else {
      out.set(words.subarray(at, at + head), to);
      at += head;
      to += head;
    }
  }
  bytes.set(tail, size - tail.length);
  return bytes;
}
