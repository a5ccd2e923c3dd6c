// Writing replays: the file as it was read, with the branches that were played here behind it. Old blocks stay where they
// are and keys nobody knows are kept; offsets count from the end of the head, so nothing of them changes.

import {FileError, crc32, deflate, joined} from "./bytes.js";

const RATIO = 200;
const EVERY = 100;

/** The bytes of a file with every branch that has ticks of its own; `trackOf(branch)` has played all of it. */
export async function writeReplay(recording, trackOf) {
  if (!recording.blocks && !recording.fresh) throw new FileError("a replay of format 1 cannot be saved with forks: write it again with gridmill eval --replay");
  const old = recording.blocks ? recording.blocks.body : new Uint8Array(0);
  const parts = [old];
  let at = old.length;
  const store = async (raw) => {
    const packed = await pack(raw);
    parts.push(packed);
    at += packed.length;
    return {at: at - packed.length, size: packed.length, raw: raw.length};
  };
  const kept = recording.branches.filter((branch) => branch.own.length > 0);
  const entries = [];
  for (const branch of kept) {
    entries.push(branch.live ? await entryOf(branch, kept, await trackOf(branch), store, recording) : branch.entry);
  }
  const head = {...recording.head, format: 2, branches: entries};
  delete head.play; // what the command line told the page
  const line = new TextEncoder().encode(`gridmill-replay 2\n${JSON.stringify(head)}\n`);
  return joined([line, ...parts]);
}

async function entryOf(branch, kept, track, store, recording) {
  const width = recording.head.action_bytes ?? (track.info.numActions > 255 ? 2 : 1);
  const count = branch.own.length * branch.agents;
  const numbers = branch.own.data.subarray(0, count);
  const raw = width === 1 ? Uint8Array.from(numbers) : new Uint8Array(Uint16Array.from(numbers).buffer);
  const {ledger} = track;
  const values = [];
  for (let tick = Math.ceil(branch.forkTick / EVERY) * EVERY; tick < branch.ticks; tick += EVERY) values.push(ledger.hashes.get(tick));
  const checks = checksOf(branch, ledger, raw, width);
  const result = resultOf(track);
  return {
    name: branch.name,
    parent: branch.parent ? kept.indexOf(branch.parent) : null,
    fork_tick: branch.forkTick,
    ticks: branch.own.length,
    ended: track.over,
    who: branch.who,
    hashes: {every: EVERY, values, last: ledger.last},
    actions: await store(raw),
    checks: await store(checks),
    keyframes: [],
    result,
    tags: [],
  };
}

/** Of every tick: the low half of the hash after it, and of the CRC of its actions. */
function checksOf(branch, ledger, raw, width) {
  const out = new Uint32Array(branch.own.length);
  const size = branch.agents * width;
  for (let i = 0; i < out.length; i += 1) {
    const actions = crc32(raw.subarray(i * size, (i + 1) * size)) & 0xffff;
    const hash = i === out.length - 1 ? ledger.last : ledger.after.get(branch.forkTick + i);
    out[i] = ((actions << 16) | parseInt(hash.slice(-4), 16)) >>> 0;
  }
  return new Uint8Array(out.buffer);
}

function resultOf(track) {
  const reward = track.ledger.totalAt(track.branch.ticks - 1) / track.branch.agents;
  const {title, stat} = track.recording.game?.score ?? {};
  return {score: track.score, score_name: track.score === null ? null : title || stat, reward, length: track.branch.ticks};
}

/** A zlib stream; one that would unpack to more than 200 times its size begins with a stored part instead. */
async function pack(raw) {
  const packed = await deflate(raw);
  if (raw.length <= RATIO * packed.length) return packed;
  const head = Math.ceil(raw.length / RATIO);
  const rest = (await deflate(raw.subarray(head))).subarray(2, -4); // without head and checksum of the stream
  const parts = [new Uint8Array([0x78, 0x01])];
  for (let from = 0; from < head; from += 65535) {
    const size = Math.min(65535, head - from);
    parts.push(new Uint8Array([0, size & 255, size >> 8, ~size & 255, (~size >> 8) & 255]), raw.subarray(from, from + size));
  }
  const sum = adler32(raw);
  parts.push(rest, new Uint8Array([sum >>> 24, (sum >>> 16) & 255, (sum >>> 8) & 255, sum & 255]));
  return joined(parts);
}

function adler32(bytes) {
  let a = 1;
  let b = 0;
  for (let i = 0; i < bytes.length; i += 1) {
    a = (a + bytes[i]) % 65521;
    b = (b + a) % 65521;
  }
  return ((b << 16) | a) >>> 0;
}
