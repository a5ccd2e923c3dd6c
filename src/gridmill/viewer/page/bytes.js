// Bytes from outside: text, inflating with a limit, checksums. Every size is checked before memory is
// taken, and every failure is a FileError with one line for people.

export class FileError extends Error {
  constructor(message) {
    super(message);
    this.name = "FileError";
  }
}

const RATIO = 200; // what a block may unpack to, in times of its size: docs/replays.md
const MOST_BLOCK = 64 << 20;

/** Inflate (`deflate` = zlib, `gzip`) into exactly `size` bytes; a longer or shorter stream is refused. */
export async function inflate(bytes, size, format = "deflate", where = "$") {
  if (!Number.isSafeInteger(size) || size < 0 || size > MOST_BLOCK || size > RATIO * bytes.length) {
    throw new FileError(`replay: ${size} bytes cannot be in a block of ${bytes.length} - at \`${where}\``);
  }
  const out = new Uint8Array(size);
  let at = 0;
  const reader = streamed(bytes).pipeThrough(new DecompressionStream(format)).getReader();
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) break;
      if (at + value.length > size) throw new FileError(`replay: expected ${size} bytes, got more - at \`${where}\``);
      out.set(value, at);
      at += value.length;
    }
  } catch (reason) {
    reader.cancel().catch(() => {});
    if (reason instanceof FileError) throw reason;
    throw new FileError(`replay: a block cannot be inflated - at \`${where}\``);
  }
  if (at !== size) throw new FileError(`replay: expected ${size} bytes, got ${at} - at \`${where}\``);
  return out;
}

export async function deflate(bytes) {
  const stream = streamed(bytes).pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Bytes as a stream, here: those of a Blob take the way through another process. */
function streamed(bytes) {
  return new Response(bytes).body;
}

export function joined(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

export function utf8(bytes) {
  try {
    return new TextDecoder("utf-8", {fatal: true}).decode(bytes);
  } catch {
    throw new FileError("replay: expected UTF-8 text in the head");
  }
}

let crcTable = null;

/** CRC-32 as zlib computes it. */
export function crc32(bytes, before = 0) {
  if (!crcTable) {
    crcTable = new Uint32Array(256);
    for (let n = 0; n < 256; n += 1) {
      let c = n;
      for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
      crcTable[n] = c >>> 0;
    }
  }
  let c = ~before >>> 0;
  for (let i = 0; i < bytes.length; i += 1) c = crcTable[(c ^ bytes[i]) & 255] ^ (c >>> 8);
  return ~c >>> 0;
}
