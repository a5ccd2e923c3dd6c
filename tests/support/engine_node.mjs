// Does in node what tests/support/engine_node.py asks: jobs as JSON on stdin, their answers as JSON on stdout. A job that
// is refused answers {refused: message}; anything else that goes wrong ends the process.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const request = JSON.parse(readFileSync(0, "utf8"));
const { loadEngine } = await import(pathToFileURL(request.script));
const { EngineError } = await import(new URL("calls.js", pathToFileURL(request.script)));
const engine = await loadEngine(readFileSync(request.module));

const bytesOf = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const actionsAt = (step, rows, numActions) =>  // as scripted_actions in tests/support/random_games.py
  Int32Array.from({ length: rows }, (_, row) => {
    const mixed = BigInt.asUintN(64, (BigInt(row) * 104729n + BigInt(step * 7919 + 1)) * 0x9e3779b97f4a7c15n);
    return Number((mixed >> 33n) % BigInt(numActions));
  });

function digest(world, sha) {
  const agents = world.info.numAgents;
  for (const row of ["obs", "finalObs", "masks"]) for (let a = 0; a < agents; ++a) sha.update(world[row](a));
  for (const name of ["rewards", "terminals", "truncations"]) sha.update(world[name]);
}

const jobs = {
  version: () => engine.version,

  // Steps with given actions; the state's hash every so often, a digest of everything that the arrays show.
  play({ open, steps, every = 100, from = 0, state, keep = false }) {
    const world = engine.open(open);
    if (state) world.restore(bytesOf(state));
    const { numAgents, numActions } = world.info;
    const sha = createHash("sha256");
    const hashes = [world.hash()];
    const ends = [];
    digest(world, sha);
    for (let step = from; step < from + steps; ++step) {
      world.step(actionsAt(step, numAgents, numActions));
      digest(world, sha);
      if (world.ended) ends.push([step, world.lastHash()]);
      if ((step + 1) % every === 0) hashes.push(world.hash());
    }
    const answer = { hashes, ends, last: world.lastHash(), seen: sha.digest("hex"), tick: world.tick };
    if (keep) answer.state = Buffer.from(world.save()).toString("base64");
    world.close();
    return answer;
  },

  // Everything that a world says of itself after some steps.
  look({ open, steps = 0 }) {
    const world = engine.open(open);
    const { numAgents, numActions } = world.info;
    let ended = null;
    for (let step = 0; step < steps; ++step) {
      world.step(actionsAt(step, numAgents, numActions));
      if (world.ended) ended = plain(world.endedStats());
    }
    const answer = { info: world.info, inspect: world.inspect(), stats: plain(world.stats()), ended };
    answer.scripts = world.scripts;
    return answer;
  },

  // All agents by one script: what they did.
  script({ open, name, steps }) {
    const world = engine.open(open);
    const script = world.script(name);
    const done = [];
    for (let step = 0; step < steps; ++step) {
      const actions = Int32Array.from({ length: world.info.numAgents }, (_, agent) => script.act(agent));
      if (script.act(0) !== actions[0]) throw new Error("asked again, it answers something else");
      done.push(Array.from(actions));
      world.step(actions);
    }
    return done;
  },

  // All agents by one policy: logits and values of every so many steps, and what they chose; `taken` is done instead.
  policy({ open, head, weights, steps, greedy = false, seed = "0", every = 50, taken = null }) {
    const world = engine.open(open);
    const tensors = {};
    const data = bytesOf(weights);
    let at = 0;
    for (const [name, shape] of head.tensors) {
      const size = shape.reduce((product, side) => product * side, 1);
      tensors[name] = { shape, data: new Float32Array(data.buffer, at, size) };
      at += 4 * size;
    }
    const policy = engine.policy({ config: head.config, spec: head.spec, masks: head.masks, tensors });
    policy.begin(world);
    const answer = { actions: [], logits: [], values: [] };
    for (let step = 0; step < steps; ++step) {
      const actions = Int32Array.from({ length: world.info.numAgents }, (_, agent) => {
        const thought = policy.think(agent);
        if (step % every === 0) {
          answer.logits.push(Buffer.from(thought.logits.buffer).toString("base64"));
          answer.values.push(thought.value);
        }
        return policy.act(agent, { greedy, seed, step });
      });
      answer.actions.push(Array.from(actions));
      world.step(taken ? Int32Array.from(taken[step]) : actions);
    }
    policy.close();
    return answer;
  },

  // Things that must be refused and leave the engine whole.
  misuse({ open }) {
    const world = engine.open(open);
    const said = {};
    const attempt = (name, call) => {
      try {
        call();
        said[name] = null;
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        said[name] = error.message;
      }
    };
    attempt("few actions", () => world.step(new Int32Array(world.info.numAgents + 1)));
    attempt("no actions", () => world.step());
    attempt("agent", () => world.obs(world.info.numAgents));
    attempt("script", () => world.script("nobody"));
    attempt("policy before begin", () => engine.policy({ config: {}, spec: {}, tensors: {} }));
    const before = world.hash();
    world.close();
    attempt("closed", () => world.step(new Int32Array(1)));
    const again = engine.open(open);
    said.same = again.hash() === before;
    return said;
  },
};

function plain(stats) {
  return stats && Object.fromEntries(Object.entries(stats).map(([name, row]) => [name, Array.from(row)]));
}

const answers = request.jobs.map((job) => {
  try {
    return jobs[job.do](job);
  } catch (error) {
    if (error instanceof EngineError) return { refused: error.message };
    throw error;
  }
});
process.stdout.write(JSON.stringify(answers));
