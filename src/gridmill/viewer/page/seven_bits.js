// Bytes that export.py wrote as text, with seven bits in each character.

export function fromSevenBits(text) {
  const out = new Uint8Array(Math.floor((text.length * 7) / 8));
  let [held, bits, at] = [0, 0, 0];
  for (let i = 0; i < text.length; i += 1) {
    held = (held << 7) | (text.charCodeAt(i) & 127);
    bits += 7;
    if (bits >= 8) {
      bits -= 8;
      out[at] = held >> bits;
      held &= (1 << bits) - 1;
      at += 1;
    }
  }
  return out;
}
