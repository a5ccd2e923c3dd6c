// The C interface of the module: what src/gridmill/viewer/page/calls.js calls. Worlds and policies are numbers, from 1
// on; whatever is longer than a number is left in one buffer (gridmill_result) until the next call. A call that fails
// returns -1 (or 0, where a number is asked for that is never 0) and leaves its one-line message there: nothing throws
// out of here, and bad input is a message.
#include <charconv>
#include <cstdlib>

#include "wasm/json.hpp"
#include "wasm/module.hpp"

namespace {

using namespace gridmill;
using namespace gridmill::wasm;

std::uint64_t seed_of(const std::string& decimal) {
  std::uint64_t seed = 0;
  const char* const end = decimal.data() + decimal.size();
  const auto found = std::from_chars(decimal.data(), end, seed);
  if (decimal.empty() || found.ec != std::errc() || found.ptr != end)
    fail_at("$.seed", "expected an int in [0, 2**64) as decimal text, got '" + decimal.substr(0, 40) + "'");
  return seed;
}

struct OpeningFields {
  std::string kind, name, seed;
  bool masks = true;
  template <class Self>
  static auto fields() {
    return std::tuple{field("kind", &Self::kind, "which engine plays it"),
                      field("name", &Self::name, "name of the game in saved states"),
                      field("seed", &Self::seed, "decimal digits"),
                      field("masks", &Self::masks, "whether to compute masks")};
  }
};

}  // namespace

// ---- memory and results

GRIDMILL_EXPORT(gridmill_alloc) void* gridmill_alloc(std::size_t size) { return std::malloc(size == 0 ? 1 : size); }
GRIDMILL_EXPORT(gridmill_free) void gridmill_free(void* memory) { std::free(memory); }
GRIDMILL_EXPORT(gridmill_result) const char* gridmill_result() { return module().result.data(); }
GRIDMILL_EXPORT(gridmill_result_size) std::size_t gridmill_result_size() { return module().result.size(); }
GRIDMILL_EXPORT(gridmill_version) std::int32_t gridmill_version() {
  module().result = version();
  return 0;
}

// ---- worlds

GRIDMILL_EXPORT(gridmill_open)
std::int32_t gridmill_open(const char* how, std::size_t how_size, const char* tree, std::size_t tree_size) {
  return guarded(0, [&] {
    const auto fields = decode<OpeningFields>(parse_json(text(how, how_size)));
    const Opening opening{fields.kind, fields.name, seed_of(fields.seed), fields.masks};
    return keep(module().worlds, open_world(opening, parse_json(text(tree, tree_size))));
  });
}

GRIDMILL_EXPORT(gridmill_close) void gridmill_close(std::int32_t world) { module().worlds.erase(world); }

GRIDMILL_EXPORT(gridmill_info) std::int32_t gridmill_info(std::int32_t world) {
  return guarded(-1, [&] {
    module().result = to_json(world_at(world).info());
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_inspect) std::int32_t gridmill_inspect(std::int32_t world) {
  return guarded(-1, [&] {
    module().result = to_json(world_at(world).inspect());
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_objects) std::int32_t gridmill_objects(std::int32_t world) {
  return guarded(-1, [&] {
    leave(world_at(world).objects());
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_cells) std::int32_t gridmill_cells(std::int32_t world) {
  return guarded(-1, [&] {
    leave(world_at(world).cells());
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_hold_ended) std::int32_t gridmill_hold_ended(std::int32_t world) {
  return guarded(-1, [&] {
    world_at(world).hold_ended();
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_reset) std::int32_t gridmill_reset(std::int32_t world) {
  return guarded(-1, [&] {
    world_at(world).reset();
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_step) std::int32_t gridmill_step(std::int32_t world) {
  return guarded(-1, [&] {
    world_at(world).step();
    return 0;
  });
}

// Tick, episode, length of the episode, whether the last step ended one: four uint32.
GRIDMILL_EXPORT(gridmill_clock) std::int32_t gridmill_clock(std::int32_t world) {
  return guarded(-1, [&] {
    World& own = world_at(world);
    const WorldHeader header = own.header();
    leave(std::vector<std::uint32_t>{header.tick, header.key.episode, header.max_steps, own.ended() ? 1u : 0u});
    return 0;
  });
}

// Where an array lies, for as long as the world is open; its size is left as one uint32.
GRIDMILL_EXPORT(gridmill_array) const void* gridmill_array(std::int32_t world, std::int32_t which) {
  Bytes bytes;
  const std::int32_t done = guarded(-1, [&] {
    bytes = world_at(world).array(static_cast<Array>(which));
    leave(std::vector<std::uint32_t>{static_cast<std::uint32_t>(bytes.size)});
    return 0;
  });
  return done == 0 ? bytes.data : nullptr;
}

// 8 bytes, the lowest first.
GRIDMILL_EXPORT(gridmill_hash) std::int32_t gridmill_hash(std::int32_t world) {
  return guarded(-1, [&] {
    leave(std::vector<std::uint64_t>{world_at(world).hash()});
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_save) std::int32_t gridmill_save(std::int32_t world) {
  return guarded(-1, [&] {
    module().result = world_at(world).save();
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_restore)
std::int32_t gridmill_restore(std::int32_t world, const char* data, std::size_t size) {
  return guarded(-1, [&] {
    world_at(world).restore({data, size});
    return 0;
  });
}

// float64 [agent][statistic]; `ended`: of the last episode that ended, nothing if none has.
GRIDMILL_EXPORT(gridmill_stats) std::int32_t gridmill_stats(std::int32_t world, std::int32_t ended) {
  return guarded(-1, [&] {
    World& own = world_at(world);
    leave(ended != 0 ? own.ended_stats() : own.stats());
    return 0;
  });
}

// ---- scripts

GRIDMILL_EXPORT(gridmill_script_names) std::int32_t gridmill_script_names(std::int32_t world) {
  return guarded(-1, [&] {
    Value::List names;
    for (const auto& name : world_at(world).script_names()) names.push_back({name});
    module().result = to_json({std::move(names)});
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_script) std::int32_t gridmill_script(std::int32_t world, const char* name, std::size_t size) {
  return guarded(-1, [&] { return world_at(world).add_script({name, size}); });
}

GRIDMILL_EXPORT(gridmill_script_act)
std::int32_t gridmill_script_act(std::int32_t world, std::int32_t script, std::uint32_t agent) {
  return guarded(-1, [&] { return world_at(world).ask_script(script, agent); });
}

GRIDMILL_EXPORT(gridmill_script_reset) std::int32_t gridmill_script_reset(std::int32_t world, std::int32_t script) {
  return guarded(-1, [&] {
    world_at(world).forget_script(script);
    return 0;
  });
}
