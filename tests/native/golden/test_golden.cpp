// D4 without Python: the hashes of the golden files (tests/golden/*.json), which Python wrote, from the native core
// alone. What is hashed is what tests/reliability/test_golden_*.py hash; so another CPU or compiler gives the episodes
// that Python saw, or fails here. Long: they run when asked for, `native_tests long_golden`.
#include <cstdio>
#include <filesystem>
#include <map>

#include "check.hpp"
#include "golden/json.hpp"
#include "golden/sha256.hpp"
#include "grid/batch.hpp"
#include "prospector/batch.hpp"

using namespace gridmill;
using namespace golden;

namespace {

constexpr std::uint32_t kWorlds = 2;

const Value& at(const Value& value, const char* name) {
  const Value* found = value.find(name);
  if (found == nullptr) throw std::invalid_argument(std::string("no `") + name + "` in a golden file");
  return *found;
}
const std::string& text_of(const Value& value) { return std::get<std::string>(value.data); }

// As scripted_actions() of tests/support/random_games.py.
std::int32_t scripted_action(std::uint64_t step, std::uint64_t row, std::uint64_t num_actions) {
  const std::uint64_t mixed = (row * 104'729 + step * 7'919 + 1) * 0x9E3779B97F4A7C15;
  return static_cast<std::int32_t>((mixed >> 33) % num_actions);
}

template <class G>
void add_arrays(Sha256& sha, const Batch<G>& batch) {
  const auto b = batch.buffers();
  const std::size_t row_bytes = b->obs_size * sizeof *b->obs;
  sha.add(b->obs, b->rows * row_bytes);
  sha.add(b->rewards, b->rows * sizeof *b->rewards);
  sha.add(b->terminals, b->rows);
  sha.add(b->truncations, b->rows);
  for (std::size_t row = 0; row < b->rows; ++row)
    if (b->terminals[row] || b->truncations[row]) sha.add(b->final_obs + row * b->obs_size, row_bytes);
  sha.add(b->masks, b->rows * b->num_actions);
}

// Columns by name, each with the type it has in Python.
template <class G>
void add_episodes(Sha256& sha, Batch<G>& batch) {
  std::vector<EpisodeHead> heads;
  std::vector<double> stats;
  batch.take_episodes(heads, stats);
  std::map<std::string, std::pair<std::string, std::string>> columns;  // name -> type, bytes
  const auto put = [&](const std::string& name, const char* type, auto number_of) {
    std::string bytes;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      const auto number = number_of(i);
      bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    columns[name] = {type, bytes};
  };
  put("world", "int64", [&](std::size_t i) { return std::int64_t{heads[i].world}; });
  put("agent", "int64", [&](std::size_t i) { return std::int64_t{heads[i].agent}; });
  put("game", "int64", [&](std::size_t i) { return std::int64_t{heads[i].program}; });
  put("episode", "int64", [&](std::size_t i) { return std::int64_t{heads[i].episode}; });
  put("length", "int64", [&](std::size_t i) { return std::int64_t{heads[i].length}; });
  put("short_first", "bool", [&](std::size_t i) { return heads[i].desynced; });  // the name it has in the hashes
  const StatTable& table = batch.worlds().stats;
  for (std::size_t s = 0; s < table.size(); ++s) {
    const auto stat = [&, s](std::size_t i) { return stats[i * table.size() + s]; };
    if (table[s].integer)
      put(table[s].name, "int64", [&](std::size_t i) { return static_cast<std::int64_t>(stat(i)); });
    else put(table[s].name, "float64", stat);
  }
  for (const auto& [name, column] : columns) {
    sha.add(name + " " + column.first + " (" + std::to_string(heads.size()) + ",)");
    sha.add(column.second);
  }
}

template <class G>
std::string names_of_stats(const Batch<G>& batch) {
  return listed(batch.worlds().stats, [](const Stat& stat) { return quoted(stat.name); });
}

// Two worlds from a seed for so many steps; `between` adds what a game has beside arrays and episodes.
template <class G, class Between, class Names>
std::string played(const Value& config, std::uint64_t seed, std::int64_t steps, Between between, Names names) {
  BatchOptions options;
  options.num_worlds = kWorlds;
  options.seed = seed;
  options.masks = true;
  Batch<G> batch({config}, {"golden"}, options);
  batch.reset(std::nullopt);
  Sha256 sha;
  add_arrays(sha, batch);
  const auto b = batch.buffers();
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::size_t row = 0; row < b->rows; ++row)
      b->actions[row] = scripted_action(static_cast<std::uint64_t>(step), row, b->num_actions);
    batch.step();
    add_arrays(sha, batch);
  }
  between(sha, batch);
  add_episodes(sha, batch);
  sha.add(names(batch));
  return sha.hex();
}

std::string grid_hash(const Value& file, std::uint64_t seed) {
  const Value& config = at(file, "config");
  const auto names = [](const Batch<grid::Grid>& batch) {
    const auto& vocabulary = batch.worlds().vocabulary;
    std::size_t id = 0;
    const std::string features = listed(vocabulary.features, [&](const grid::Feature& feature) {
      return written({std::to_string(id++), quoted(feature.name), repr(feature.normalizer)});
    });
    return written(
        {listed(vocabulary.action_names(), quoted), listed(vocabulary.tags, quoted), features, names_of_stats(batch)});
  };
  const std::int64_t max_steps = std::get<std::int64_t>(at(config, "max_steps").data);
  return played<grid::Grid>(config, seed, max_steps + 1, [](Sha256&, auto&) {}, names);
}

std::string prospector_hash(const Value& file, std::uint64_t seed) {
  using prospector::Prospector;
  const auto random_states = [](Sha256& sha, Batch<Prospector>& batch) {
    for (std::int64_t world = 0; world < kWorlds; ++world) {
      const std::uint64_t state = batch.look(world, [](auto& tick) { return Prospector::state(tick).rng.state; });
      sha.add(&state, sizeof state);
    }
  };
  const auto names = [&](const Batch<Prospector>& batch) {
    const auto& actions = std::get<Value::List>(at(file, "actions").data);
    return written({listed(actions, [](const Value& name) { return quoted(text_of(name)); }), names_of_stats(batch)});
  };
  return played<Prospector>(at(file, "config"), seed, 1'000, random_states, names);
}

// Throws unless every seed of a golden file gives the hash that is written there.
int compare(const std::filesystem::path& path) {
  const Value file = read_file(path);
  const auto hash = path.stem() == "prospector" ? prospector_hash : grid_hash;
  int compared = 0;
  for (const auto& [seed, expected] : std::get<Value::Dict>(at(file, "episodes").data)) {
    const std::string of = path.stem().string() + ", seed " + seed + ": ";
    CHECK_EQ(of + hash(file, std::stoull(seed)), of + text_of(expected));
    ++compared;
  }
  return compared;
}

}  // namespace

TEST(golden_sha256_is_sha256) {
  Sha256 sha;
  sha.add("abc");
  CHECK_EQ(sha.hex(), std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

TEST(long_golden_hashes_are_those_of_python) {
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GRIDMILL_GOLDEN))
    if (entry.path().extension() == ".json") compared += compare(entry.path());
  CHECK(compared >= 2);
  std::printf("%d golden hashes compared\n", compared);
}
