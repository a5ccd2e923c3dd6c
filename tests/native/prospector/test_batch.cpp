// Prospector inside the batch: threads and lanes do not matter, streams go on over resets, saved worlds continue.
#include <cstring>

#include "check.hpp"
#include "prospector/batch.hpp"
#include "prospector/prospector.hpp"

using namespace gridmill;
using prospector::Prospector;

namespace {

constexpr std::uint32_t kWorlds = 16;

Batch<Prospector> make(int threads, int lanes, bool profiling = false) {
  BatchOptions options;
  options.num_worlds = kWorlds;
  options.seed = 5;
  options.threads = threads;
  options.lanes = lanes;
  options.masks = true;
  options.desync_episodes = true;
  options.profiling = profiling;
  return Batch<Prospector>({Value{Value::Dict{{"time_max", Value{90.0}}}}}, {"prospector"}, options);
}

void play(Batch<Prospector>& batch, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t step = from; step < to; ++step) {
    const Stream draw({9, 0, 0}, step, 0);
    for (std::uint32_t row = 0; row < kWorlds; ++row)
      batch.buffers()->actions[row] = static_cast<std::int32_t>(draw.below(row, 72)) - 1;
    batch.step();
  }
}

std::vector<std::uint64_t> trace(int threads, int lanes, bool profiling = false) {
  auto batch = make(threads, lanes, profiling);
  batch.reset(std::nullopt);
  play(batch, 0, 300);
  auto hashes = batch.state_hash();
  const auto buffers = batch.buffers();
  hashes.push_back(hash_bytes(buffers->obs, buffers->rows * buffers->obs_size * sizeof(float)));
  hashes.push_back(hash_bytes(buffers->final_obs, buffers->rows * buffers->obs_size * sizeof(float)));
  hashes.push_back(hash_bytes(buffers->masks, buffers->rows * buffers->num_actions));
  std::vector<EpisodeHead> heads;
  std::vector<double> stats;
  batch.take_episodes(heads, stats);
  CHECK(heads.size() > 5 * kWorlds);
  hashes.push_back(hash_bytes(stats.data(), stats.size() * sizeof(double)));
  return hashes;
}

}  // namespace

TEST(prospector_threads_lanes_and_timing_do_not_matter) {
  const auto alone = trace(1, 1);
  CHECK(trace(2, 1) == alone);
  CHECK(trace(4, 2) == alone);
  CHECK(trace(8, 4) == alone);
  CHECK(trace(2, 2, true) == alone);
}

TEST(prospector_saved_worlds_go_on) {
  auto first = make(2, 1), second = make(1, 1);
  first.reset(std::nullopt);
  play(first, 0, 120);
  std::vector<std::int64_t> all;
  for (std::int64_t w = 0; w < kWorlds; ++w) all.push_back(w);
  second.restore(first.save(all), all);
  play(first, 120, 260);
  play(second, 120, 260);
  CHECK(first.state_hash() == second.state_hash());
  first.reset(std::nullopt);  // the streams go on
  second.reset(std::nullopt);
  CHECK(first.state_hash() == second.state_hash());
  first.reset(5);
  CHECK(first.state_hash() != second.state_hash());
}
