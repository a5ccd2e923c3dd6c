// The engine in a page: gridmill's native core, compiled to WebAssembly (native/wasm/), behind plain objects.
//
//   const engine = await loadEngine(bytes);                    // bytes of engine.wasm, or its WebAssembly.Module
//   const world = engine.open({kind, tree, seed: "7"});        // tree: GameConfig.core_tree(), as an object or JSON text
//   world.step(new Int32Array(world.info.numAgents));
//   world.hash();                                              // as Python's f"{int(env.state_hash()[0]):016x}"
//
// The same code runs in browsers and in node from 20 on, and needs nothing. Everything that is refused is an EngineError
// whose message is one line. Arrays are copies: what a caller holds does not change behind its back.

import { Calls, EngineError, oneLine } from "./calls.js";
import { Policy } from "./policy.js";
import { Host, NOT_SUPPORTED } from "./wasi.js";
import { World } from "./world.js";

export async function loadEngine(source) {
  let module;
  try {
    module = await source;
    if (!(module instanceof WebAssembly.Module)) module = await WebAssembly.compile(module);
  } catch (reason) {
    throw new EngineError(`expected the bytes of engine.wasm, got something else: ${oneLine(reason)}`);
  }
  const host = new Host();
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    (imports[from] ??= {})[name] = host[name] ? host[name].bind(host) : () => NOT_SUPPORTED;
  }
  let instance;
  try {
    instance = await WebAssembly.instantiate(module, imports);
    host.memory = instance.exports.memory;
    instance.exports._initialize?.();
  } catch (reason) {
    throw new EngineError(`the engine does not start: ${oneLine(reason)}`);
  }
  if (!instance.exports.gridmill_open) throw new EngineError("expected the bytes of engine.wasm, got another module");
  return new Engine(new Calls(instance.exports));
}

class Engine {
  constructor(calls) {
    this._calls = calls;
    calls.number("version");
    this.version = calls.text();  // of the package, and the commit the module was built from
  }

  // One world at tick 0 of its first episode. `name` is what saved states call the game ("NAME FINGERPRINT", as Env.save
  // writes it): needed to restore a state that was saved elsewhere.
  open({ kind, tree, seed = "0", masks = true, name = "" }) {
    const how = JSON.stringify({ kind: String(kind), name: String(name), seed: String(seed), masks: Boolean(masks) });
    const text = typeof tree === "string" ? tree : JSON.stringify(tree ?? null);
    const number = this._calls.with([how, text], (...given) => this._calls.number("open", ...given));
    return new World(this._calls, number, String(seed));
  }

  // A trained policy: config and spec as a checkpoint or a replay has them, tensors by name ({shape, data: Float32Array}),
  // masks as it was trained.
  policy({ config, spec, tensors, masks = true }) {
    const list = Object.entries(tensors ?? {});
    const count = list.reduce((sum, [, { data }]) => sum + data.length, 0);
    const numbers = new Float32Array(count);
    let at = 0;
    for (const [, { data }] of list) {
      numbers.set(data, at);
      at += data.length;
    }
    const shapes = list.map(([name, { shape }]) => [name, Array.from(shape)]);
    // A network of somebody's own is not one that the engine knows, and it says so; that there is none is left out.
    const known = { ...config, network: config?.network || undefined };
    const head = JSON.stringify({ config: known, spec, masks: Boolean(masks), tensors: shapes });
    const given = [head, new Uint8Array(numbers.buffer)];
    return new Policy(this._calls, this._calls.with(given, (...args) => this._calls.number("policy", ...args)));
  }
}
