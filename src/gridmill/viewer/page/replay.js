// Reading replays, format 2 and 1 (docs/replays.md). A file comes from anywhere: every size is checked before memory is
// taken, and what is wrong is said in one line with its place. Nothing here believes a file; the engine plays it again.

import {FileError, inflate, utf8} from "./bytes.js";
import {Branch} from "./branch.js";

const MAGIC = "gridmill-replay 2\n";
const MOST = {file: 64 << 20, head: 2 << 20, depth: 64, parts: 100_000, branches: 1024, agents: 65535, ticks: 10_000_000, unpacked: 256 << 20, ratio: 200, shown: 1000};
const HEX = /^[0-9a-f]{16}$/;

/** A file's bytes as a recording: {name, kind, tree, game, seed, agents, actionNames, policy, branches, head, blocks}. */
export async function readReplay(bytes, name) {
  if (bytes.length > MOST.file) fail(`expected at most ${MOST.file} bytes, got ${bytes.length}`);
  const magic = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
  if (magic === MAGIC) return readSecond(bytes, name);
  if (bytes[0] === 0x7b) return readFirst(bytes, name);
  if (magic.startsWith("gridmill-replay ")) fail(`expected format 1 or 2, got ${magic.slice(16).trim().slice(0, 20)}: this page is older than the file`);
  return fail("expected a file that gridmill wrote");
}

function fail(what, where = "") {
  throw new FileError(`replay: ${what}${where && ` - at \`${where}\``}`);
}

function headOf(bytes, from) {
  const end = bytes.subarray(0, from + MOST.head).indexOf(10, from);
  if (end < 0) fail(`expected a head of at most ${MOST.head} bytes`);
  let head;
  try {
    head = JSON.parse(utf8(bytes.subarray(from, end)));
  } catch (reason) {
    fail(reason instanceof FileError ? "expected UTF-8 in the head" : "expected JSON in the head");
  }
  if (typeof head !== "object" || head === null || Array.isArray(head)) fail("expected an object in the head");
  expectSmall(head);
  return {head, body: bytes.subarray(end + 1)};
}

/** Level by level: what is too deep is too deep for a function that calls itself, too. */
function expectSmall(head) {
  let level = [head];
  let parts = 0;
  for (let depth = 0; depth < MOST.depth; depth += 1) {
    level = level.flatMap((whole) => Object.values(whole).filter((part) => typeof part === "object" && part !== null));
    parts += level.length;
    if (level.length === 0) return;
    if (parts > MOST.parts) fail(`expected at most ${MOST.parts} parts in a head, got more`);
  }
  fail(`expected a head of at most ${MOST.depth} levels, got more`);
}

function count(value, least, most, where) {
  if (!Number.isSafeInteger(value) || value < least || value > most) fail(`expected a number from ${least} to ${most}, got ${said(value)}`, where);
  return value;
}

function said(value) {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}

function tree(value, where) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) fail(`expected settings, got ${said(value)}`, where);
  return value;
}

function seedOf(value) {
  const text = String(value);
  if (!/^\d{1,20}$/.test(text) || BigInt(text) > 0xffffffffffffffffn) fail(`expected 0 to 2**64 - 1, got ${said(value)}`, "$.seed");
  return text;
}

/** A text to show: of any length in a file, but nobody reads more than this. */
function text(value, fallback = "") {
  return typeof value === "string" ? value.slice(0, MOST.shown) : fallback;
}

// ---- format 2

async function readSecond(bytes, name) {
  const {head, body} = headOf(bytes, MAGIC.length);
  if (head.format !== 2) fail(`expected format 2, got ${said(head.format)}`, "$.format");
  const agents = count(head.agents, 1, MOST.agents, "$.agents");
  const width = count(head.action_bytes, 1, 2, "$.action_bytes");
  if (!Array.isArray(head.action_names) || head.action_names.some((n) => typeof n !== "string")) fail("expected names", "$.action_names");
  if (!Array.isArray(head.branches) || head.branches.length < 1 || head.branches.length > MOST.branches) {
    fail(`expected 1 to ${MOST.branches} branches`, "$.branches");
  }
  const blocks = new Blocks(body, bytes.length);
  const branches = [];
  for (const [i, entry] of head.branches.entries()) branches.push(await readBranch(entry, i, branches, {agents, width, actions: head.action_names.length, blocks}));
  return {
    name, agents, branches, head, blocks,
    kind: text(head.kind, "grid"),
    tree: tree(head.core, "$.core"),
    game: tree(head.game, "$.game"),
    seed: seedOf(head.seed),
    actionNames: head.action_names,
    title: text(head.names?.game) || text(head.game.name, "game"),
    version: text(head.gridmill, "?"),
    commit: text(head.commit),
    policy: policyOf(head.policy, blocks),
  };
}

async function readBranch(entry, i, before, {agents, width, actions, blocks}) {
  const where = `$.branches[${i}]`;
  tree(entry, where);
  const parent = i === 0 ? null : before[count(entry.parent, 0, i - 1, `${where}.parent`)];
  const forkTick = i === 0 ? 0 : count(entry.fork_tick, 0, parent.ticks, `${where}.fork_tick`);
  const ticks = count(entry.ticks, 1, MOST.ticks, `${where}.ticks`);
  const raw = await blocks.read(entry.actions, ticks * agents * width, `${where}.actions`);
  const values = entry.values ? await blocks.read(entry.values, ticks * agents * 4, `${where}.values`) : null;
  const checks = entry.checks ? await blocks.read(entry.checks, ticks * 4, `${where}.checks`) : null;
  const branch = new Branch({
    name: text(entry.name) || (i === 0 ? "recorded" : `fork ${i}`),
    agents, parent, forkTick,
    actions: width === 1 ? raw : new Uint16Array(raw.buffer),
    who: whoOf(entry.who),
    hashes: hashesOf(entry.hashes, forkTick, ticks, `${where}.hashes`),
    keyframes: framesOf(entry.keyframes, forkTick, ticks, `${where}.keyframes`),
    values: values && new Float32Array(values.buffer),
  });
  branch.checks = checks && new Uint32Array(checks.buffer);
  if (entry.probabilities) branch.probabilities = await blocks.read(entry.probabilities, ticks * agents * actions, `${where}.probabilities`);
  branch.result = typeof entry.result === "object" ? entry.result : null;
  branch.tags = Array.isArray(entry.tags) ? entry.tags.slice(0, 8).map((tag) => text(tag, "?")) : [];
  branch.entry = entry;
  return branch;
}

function whoOf(who) {
  const out = Object.create(null);
  if (typeof who !== "object" || who === null) return out;
  for (const [agent, name] of Object.entries(who).slice(0, MOST.agents)) out[agent] = text(name, "?");
  return out;
}

function hashesOf(hashes, forkTick, ticks, where) {
  tree(hashes, where);
  const every = count(hashes.every, 1, MOST.ticks, `${where}.every`);
  const first = Math.ceil(forkTick / every) * every;
  const expected = first < forkTick + ticks ? Math.ceil((forkTick + ticks - first) / every) : 0;
  const {values, last} = hashes;
  if (!Array.isArray(values) || values.length !== expected) fail(`expected ${expected} hashes, got ${said(values?.length)}`, `${where}.values`);
  if (values.some((hash) => !HEX.test(hash))) fail("expected 16 hex digits each", `${where}.values`);
  if (!HEX.test(last)) fail("expected 16 hex digits", `${where}.last`);
  return {every, values, last};
}

function framesOf(frames, forkTick, ticks, where) {
  if (frames === undefined || frames === null) return [];
  if (!Array.isArray(frames) || frames.length > ticks) fail("expected a list of saved states", where);
  let before = forkTick;
  return frames.map((frame, i) => {
    before = count(frame?.tick, before + 1, forkTick + ticks - 1, `${where}[${i}].tick`);
    return {tick: before, state: frame.state};
  });
}

function policyOf(policy, blocks) {
  if (typeof policy !== "object" || policy === null) return null;
  return {
    name: text(policy.name, "policy"), hash: text(policy.hash), masks: policy.masks === true, config: policy.config, spec: policy.spec,
    gamma: typeof policy.gamma === "number" ? policy.gamma : null,
    rewardScale: typeof policy.reward_scale === "number" ? policy.reward_scale : null,
    canPlay: Boolean(policy.weights && policy.config && policy.spec && Array.isArray(policy.tensors)),
    tensors: () => tensorsOf(policy, blocks),
  };
}

/** The weights by name: {name: {shape, data}}. */
async function tensorsOf(policy, blocks) {
  let total = 0;
  const list = policy.tensors.map((entry, i) => {
    const [name, shape] = Array.isArray(entry) ? entry : [];
    if (typeof name !== "string" || !Array.isArray(shape) || shape.length > 8) fail("expected [name, shape]", `$.policy.tensors[${i}]`);
    const size = shape.reduce((product, n) => product * count(n, 0, 1 << 26, `$.policy.tensors[${i}]`), 1);
    total += size;
    return {name, shape, size};
  });
  const raw = await blocks.read(policy.weights, total * 4, "$.policy.weights");
  const all = new Float32Array(raw.buffer);
  const out = Object.create(null);
  let at = 0;
  for (const {name, shape, size} of list) {
    out[name] = {shape, data: all.slice(at, at + size)};
    at += size;
  }
  return out;
}

/** The blocks behind the head, unpacked when they are asked for and never more of them than the limit. */
class Blocks {
  constructor(body, fileSize) {
    this.body = body;
    this.left = Math.min(MOST.unpacked, MOST.ratio * fileSize);
  }

  /** A block of exactly `size` bytes; without a size, of as many as it says. */
  async read(block, size, where) {
    tree(block, where);
    const at = count(block.at, 0, this.body.length, `${where}.at`);
    const stored = count(block.size, 1, this.body.length - at, `${where}.size`);
    const raw = count(block.raw, 0, MOST.file, `${where}.raw`);
    if (size !== null && raw !== size) fail(`expected ${size} bytes, got ${raw}`, `${where}.raw`);
    this.left -= raw;
    if (this.left < 0) fail("its blocks unpack to more than the limit", where);
    return inflate(this.body.subarray(at, at + stored), raw, "deflate", where);
  }
}

// ---- format 1

async function readFirst(bytes, name) {
  const {head, body} = headOf(bytes, 0);
  if (head.format !== 1) fail(`expected format 1 or 2, got ${said(head.format)}`, "$.format");
  const agents = count(head.agents, 1, MOST.agents, "$.agents");
  const ticks = count(head.ticks, 1, MOST.ticks, "$.ticks");
  const every = count(head.every, 1, MOST.ticks, "$.every");
  const raw = await inflate(body, ticks * agents * 2, "deflate", "$");
  const values = Array.isArray(head.hashes) ? head.hashes.map(String) : fail("expected hashes", "$.hashes");
  const game = tree(head.game, "$.game");
  const branch = new Branch({name: "recorded", agents, actions: new Uint16Array(raw.buffer), hashes: {every, values, last: null}});
  return {
    name, agents, head, blocks: null, kind: text(head.kind, "grid"), game, tree: coreOf(game), seed: seedOf(head.seed), branches: [branch],
    actionNames: [], title: text(game.name, "game"), version: text(head.gridmill, "?"), commit: "",
    policy: {name: text(head.policy, ""), hash: "", canPlay: false},
  };
}

/** What the engine is told of a game: all but how it is scored. */
function coreOf(game) {
  const hidden = game.kind === "grid" || game.map ? ["kind", "score", "beside"] : ["kind", "score", "beside", "name", "num_agents"];
  return Object.fromEntries(Object.entries(game).filter(([name]) => !hidden.includes(name)));
}

/** A game that nobody has played yet, as the command line describes it. */
export function newRecording(start, name) {
  tree(start, "$");
  const agents = count(start.agents, 1, MOST.agents, "$.agents");
  return {
    name, agents, head: start, blocks: null, kind: text(start.kind, "grid"), tree: tree(start.core, "$.core"), game: tree(start.game, "$.game"),
    seed: seedOf(start.seed), actionNames: start.action_names ?? [], title: text(start.names?.game, "game"), version: text(start.gridmill, "?"),
    commit: text(start.commit), policy: policyOf(start.policy, null), branches: [new Branch({name: "played", agents, who: {}})], fresh: true,
  };
}
