// Corridor inside the batch: the way to the far end, the end of time, what agents see, what episodes leave behind.
#include "check.hpp"
#include "corridor/corridor.hpp"

using namespace gridmill;
using corridor::Corridor;

namespace {

void step(Batch<Corridor>& batch, std::int32_t action) {
  *batch.buffers()->actions = action;
  batch.step();
}

Batch<Corridor> make() {
  BatchOptions options;
  options.num_worlds = 1;
  options.masks = true;
  const Value config{Value::Dict{{"length", {std::int64_t{3}}}, {"max_steps", {std::int64_t{4}}}}};
  return Batch<Corridor>({config}, {"corridor"}, options);
}

}  // namespace

TEST(corridor_pays_at_the_far_end) {
  auto batch = make();
  batch.reset(std::nullopt);
  const auto rows = batch.buffers();
  CHECK_EQ(rows->obs[0], 0.0f);
  CHECK_EQ(rows->obs[1], 1.0f);
  CHECK_EQ(rows->obs[2], 1.0f);
  CHECK_EQ(int{rows->masks[corridor::left]}, 0);
  step(batch, corridor::right);
  CHECK_EQ(rows->obs[0], 0.5f);
  CHECK_EQ(rows->obs[2], 0.75f);
  CHECK_EQ(int{rows->masks[corridor::left]}, 1);
  CHECK_EQ(*rows->rewards, 0.0f);
  step(batch, corridor::right);
  CHECK_EQ(*rows->rewards, 1.0f);
  CHECK(*rows->terminals && !*rows->truncations);
  CHECK_EQ(rows->final_obs[0], 1.0f);
  CHECK_EQ(rows->obs[0], 0.0f);
}

TEST(corridor_is_truncated_when_time_is_up) {
  auto batch = make();
  batch.reset(std::nullopt);
  for (const std::int32_t action : {1, 2, 1, 99}) {
    CHECK(!*batch.buffers()->truncations);
    step(batch, action);
  }
  CHECK(*batch.buffers()->truncations && !*batch.buffers()->terminals);
  step(batch, corridor::right);
  step(batch, corridor::right);
  std::vector<EpisodeHead> heads;
  std::vector<double> stats;
  batch.take_episodes(heads, stats);
  CHECK_EQ(heads.size(), std::size_t{2});
  CHECK_EQ(heads[0].length, 4u);
  CHECK_EQ(heads[1].length, 2u);
  CHECK((stats == std::vector<double>{0, 0, 1, 1}));
}
