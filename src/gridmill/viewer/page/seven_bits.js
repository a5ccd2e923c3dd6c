// Bytes that export.py wrote as text, with seven bits in each character.

const PIECE = 1024; // characters of a call: a function that is called often is compiled sooner than a long loop

export function fromSevenBits(text) {
  const out = new Uint8Array(Math.floor((text.length * 7) / 8));
  for (let i = 0; i < text.length; i += PIECE) readPiece(text, i, Math.min(text.length, i + PIECE), out);
  return out;
}

/** Eight characters are seven bytes. Behind the end of the text are zeros; nothing is written behind the end of the bytes. */
function readPiece(text, from, end, out) {
  for (let i = from, to = (from / 8) * 7; i < end; i += 8, to += 7) {
    const a = ((text.charCodeAt(i) & 127) << 21) | ((text.charCodeAt(i + 1) & 127) << 14) | ((text.charCodeAt(i + 2) & 127) << 7) | (text.charCodeAt(i + 3) & 127);
    const b = ((text.charCodeAt(i + 4) & 127) << 21) | ((text.charCodeAt(i + 5) & 127) << 14) | ((text.charCodeAt(i + 6) & 127) << 7) | (text.charCodeAt(i + 7) & 127);
    out[to] = a >> 20;
    out[to + 1] = a >> 12;
    out[to + 2] = a >> 4;
    out[to + 3] = (a << 4) | (b >> 24);
    out[to + 4] = b >> 16;
    out[to + 5] = b >> 8;
    out[to + 6] = b;
  }
}
