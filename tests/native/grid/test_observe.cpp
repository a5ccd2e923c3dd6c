// The fast observation paths against the reference on random worlds, and proof that a broken fast path is
// caught.
#include <algorithm>

#include "check.hpp"
#include "core/isa.hpp"
#include "grid/batch.hpp"
#include "grid/grid.hpp"
#include "grid/trees.hpp"

using namespace gridmill;
using namespace gridmill::grid;
using namespace trees;

namespace {

Value texts(std::vector<std::string> names) {
  Value::List list;
  for (auto& name : names) list.push_back({name});
  return {list};
}

// A world drawn from a seed: size, window, tokens, vibes, resources, objects with and without state.
Value random_game(std::uint64_t seed) {
  const Stream draw({seed, 0, 0}, 0, 77);
  std::uint64_t at = 0;
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(draw.below(at++, n)); };
  const bool disc = below(2) == 0;
  const std::int64_t height = 2 * below(8) + 1, width = disc ? height : 2 * below(8) + 1;
  const std::int64_t side = 8 + below(70), agents = 1 + below(12);
  Value objects =
      dict({{"wall", dict({})},
            {"block", dict({{"tags", texts({"soft", "heavy"})}})},
            {"chest",
             dict({{"inventory", dict({{"ore", number(below(70'000) % 65'536)}, {"gem", number(1 + below(255))}})}})},
            {"totem", dict({{"vibe", text("glad")}})}});
  Value counts = dict({{"wall", number(below(static_cast<std::uint32_t>(side)))},
                       {"block", number(below(6))},
                       {"chest", number(below(5))},
                       {"totem", number(below(4))}});
  return dict({{"name", text("random")},
               {"num_agents", number(agents)},
               {"max_steps", number(1 + below(40))},
               {"moves", number(below(2) ? 8 : 4)},
               {"resources", texts({"ore", "gem", "dust"})},
               {"vibes", texts({"calm", "glad", "cross"})},
               {"agent", dict({{"inventory", dict({{"gem", number(below(300))}})}, {"tags", texts({"hero"})}})},
               {"objects", objects},
               {"map", dict({{"kind", text("scatter")},
                             {"height", number(side)},
                             {"width", number(8 + below(40))},
                             {"objects", counts},
                             {"groups", number(1 + below(3))}})},
               {"observation", dict({{"window", text(disc ? "disc" : "square")},
                                     {"height", number(height)},
                                     {"width", number(width)},
                                     {"num_tokens", number(below(3) == 0 ? 1 + below(30) : 200)},
                                     {"local_position", {below(2) == 0}}})},
               {"rewards",
                {Value::List{dict({{"weight", {0.3}},
                                   {"value", dict({{"kind", text("stat")}, {"name", text("cell.visited")}})}})}}}});
}

// A world full of walls, at least 20 for everything else there is, so that they are written in runs. Widths lie around
// those of strips, windows are of every size, and budgets often end within a run.
Value walled_game(std::uint64_t seed) {
  const Stream draw({seed, 0, 0}, 0, 78);
  std::uint64_t at = 0;
  const auto below = [&](std::size_t n) {
    return static_cast<std::int64_t>(draw.below(at++, static_cast<std::uint32_t>(n)));
  };
  const std::int64_t widths[] = {12, 17, 31, 32, 33, 40, 63, 64, 65, 97};
  const bool disc = below(3) == 0;
  const std::int64_t height = 2 * below(8) + 1, width = disc ? height : 2 * below(8) + 1;
  const auto rows = static_cast<std::size_t>(12 + below(20)), columns = static_cast<std::size_t>(widths[below(10)]);
  std::vector<std::string> lines(rows, std::string(columns, '#'));
  const auto put = [&](char what) {
    lines[static_cast<std::size_t>(below(rows))][static_cast<std::size_t>(below(columns))] = what;
  };
  for (std::size_t ways = static_cast<std::size_t>(below(rows * columns / 2)); ways > 0; --ways) put('.');
  for (std::int64_t things = below(rows * columns / 50); things > 0; --things) put(below(2) == 0 ? '@' : 'C');
  lines[1][1] = '@';
  std::string picture;
  for (const auto& line : lines) picture += line + "\n";
  const auto agents = std::count(picture.begin(), picture.end(), '@');
  return dict({{"name", text("walled")},
               {"num_agents", number(agents)},
               {"max_steps", number(1 + below(40))},
               {"resources", texts({"ore", "gem"})},
               {"vibes", texts({"calm", "glad"})},
               {"agent", dict({{"inventory", dict({{"gem", number(below(300))}})}})},
               {"objects", dict({{"wall", dict({})},
                                 {"chest", dict({{"inventory", dict({{"ore", number(1 + below(60'000))}})}})}})},
               {"map", dict({{"kind", text("ascii")}, {"text", {picture}}, {"legend", dict({{"C", text("chest")}})}})},
               {"observation", dict({{"window", text(disc ? "disc" : "square")},
                                     {"height", number(height)},
                                     {"width", number(width)},
                                     {"num_tokens", number(below(2) == 0 ? 1 + below(100) : 300)},
                                     {"overflow", text("drop")}})}});
}

using MakeGame = Value (*)(std::uint64_t seed);

// Plays a random game under shadow validation with the given fast path; returns (comparisons, mismatches).
std::pair<std::uint64_t, std::uint64_t> shadow(std::uint64_t seed, ObserveFunction fast, bool fast_primary, int ticks,
                                               MakeGame make_game = random_game) {
  BatchOptions o;
  o.num_worlds = 3;
  o.seed = seed;
  o.threads = 2;
  o.masks = true;
  o.observe = {fast_primary, true};
  Batch<Grid> batch({make_game(seed)}, {"r"}, o);
  batch.each_worker([&](Worker& worker) { worker.fast = fast; });
  batch.reset(std::nullopt);
  auto b = batch.buffers();
  for (int t = 0; t < ticks; ++t) {
    for (std::size_t row = 0; row < b->rows; ++row)
      b->actions[row] = static_cast<std::int32_t>(Stream({seed, 1, 0}, static_cast<std::uint32_t>(t), 5)
                                                      .below(row, static_cast<std::uint32_t>(b->num_actions) + 2)) -
                        1;
    if (t == ticks / 2) batch.restore(batch.save({0, 1, 2}), {0, 1, 2});  // has forgotten where walls are
    batch.step();
  }
  std::pair<std::uint64_t, std::uint64_t> sums{0, 0};
  batch.each_worker([&](const Worker& worker) {
    sums.first += worker.validation.comparisons;
    sums.second += worker.validation.mismatches;
  });
  return sums;
}

// Broken on purpose: one bit of the last token's value.
void observe_broken(const ObserveJob& job) {
  observe_portable(job);
  for (std::uint32_t agent = 0; agent < job.num_agents; ++agent)
    job.obs[(std::size_t{agent} * job.num_tokens + job.used[agent] - 1) * 3 + 2] ^= 1;
}

}  // namespace

TEST(observe_portable_equals_reference) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto [comparisons, mismatches] = shadow(seed, observe_portable, seed % 3 != 0, 12);
    CHECK(comparisons > 0);
    CHECK_EQ(mismatches, std::uint64_t{0});
  }
}

TEST(observe_avx2_equals_reference) {
  if (isa_of_cpu() < Isa::avx2) return;
  for (std::uint64_t seed = 0; seed < 150; ++seed)
    CHECK_EQ(shadow(seed, observe_avx2, seed % 3 != 0, 12).second, std::uint64_t{0});
}

TEST(observe_avx512_equals_reference) {
  if (isa_of_cpu() < Isa::avx512) return;
  for (std::uint64_t seed = 0; seed < 150; ++seed)
    CHECK_EQ(shadow(seed, observe_avx512, seed % 3 != 0, 12).second, std::uint64_t{0});
}

TEST(observe_walls_in_runs_equal_reference) {
  const ObserveFunction paths[] = {observe_portable, observe_avx2, observe_avx512};
  const Isa needed[] = {Isa::portable, Isa::avx2, Isa::avx512};
  for (std::size_t path = 0; path < 3; ++path) {
    if (isa_of_cpu() < needed[path]) continue;
    for (std::uint64_t seed = 0; seed < 60; ++seed)
      CHECK_EQ(shadow(seed, paths[path], seed % 3 != 0, 8, walled_game).second, std::uint64_t{0});
  }
}

TEST(observe_walled_games_have_runs) {  // or the test above would be about something else
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Value game = walled_game(seed);
    const Vocabulary vocabulary = Grid::vocabulary({game});
    CHECK(Grid::compile(vocabulary, game).codes.plain != 0);
  }
}

TEST(observe_broken_path_is_caught) {
  std::uint64_t caught = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) caught += shadow(seed, observe_broken, true, 3).second > 0;
  CHECK_EQ(caught, std::uint64_t{20});
  for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(shadow(seed, observe_broken, true, 3, walled_game).second > 0);
}

TEST(window_disc_sizes) {
  const int expected[][2] = {{5, 21}, {7, 37}, {9, 57}, {11, 89}, {13, 121}, {15, 157}};
  for (const auto& [side, cells] : expected) {
    Value game =
        dict({{"name", text("w")},
              {"objects", dict({{"wall", dict({})}})},
              {"map", dict({{"kind", text("scatter")}})},
              {"observation", dict({{"window", text("disc")}, {"height", number(side)}, {"width", number(side)}})}});
    const Vocabulary vocabulary = Grid::vocabulary({game});
    CHECK_EQ(static_cast<int>(Grid::compile(vocabulary, game).window.num_ranks), cells);
  }
}

TEST(grid_many_threads_many_steps) {  // what the thread sanitizer watches
  BatchOptions o;
  o.num_worlds = 16;
  o.threads = 8;
  o.lanes = 2;
  o.masks = true;
  o.profiling = true;
  Batch<Grid> batch({random_game(3)}, {"r"}, o);
  batch.reset(std::nullopt);
  for (int t = 0; t < 400; ++t) {
    batch.send(0);
    batch.send(1);
    batch.recv(1);
    batch.recv(0);
  }
  CHECK(batch.times().total()[2] > 0);
}
