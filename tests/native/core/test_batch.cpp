// Batch with two tiny games: same results for any threads and lanes, faults, order of calls, save and
// restore.
#include "check.hpp"
#include "core/tiny_games.hpp"

using namespace gridmill;
using namespace tiny;

namespace {

BatchOptions options(std::uint32_t worlds, int threads = 1, int lanes = 1) {
  BatchOptions o;
  o.num_worlds = worlds;
  o.threads = threads;
  o.lanes = lanes;
  o.seed = 5;
  return o;
}

template <class G>
std::uint64_t play(int threads, int lanes, int steps, bool profiling = false) {
  BatchOptions o = options(24, threads, lanes);
  o.profiling = profiling;
  Batch<G> batch({settings(3, 7)}, {"a"}, o);
  batch.reset(std::nullopt);
  std::uint64_t hash = 0;
  auto buffers = batch.buffers();
  for (int t = 0; t < steps; ++t) {
    for (std::size_t row = 0; row < buffers->rows; ++row)
      buffers->actions[row] = static_cast<std::int32_t>((row * 7 + t) % 3);
    if (t % 2 == 0) {
      batch.step();
    } else {
      for (int lane = lanes - 1; lane >= 0; --lane) batch.send(lane);
      for (int lane = 0; lane < lanes; ++lane) batch.recv(lane);
    }
    hash = hash_bytes(buffers->obs, buffers->rows * 2 * sizeof(typename G::Obs), hash);
    hash = hash_bytes(buffers->rewards, buffers->rows * 4, hash);
    for (const auto h : batch.state_hash()) hash = hash_bytes(&h, 8, hash);
  }
  std::vector<EpisodeHead> heads;
  std::vector<double> stats;
  batch.take_episodes(heads, stats);
  for (const auto& head : heads) hash = hash_bytes(&head.world, 16, hash);
  return hash_bytes(stats.data(), stats.size() * 8, hash);
}

template <class G>
void check_determinism() {
  const std::uint64_t expected = play<G>(1, 1, 40);
  for (const int threads : {1, 2, 4, 8})
    for (const int lanes : {1, 2, 4, 8}) CHECK_EQ(play<G>(threads, lanes, 40), expected);
  CHECK_EQ(play<G>(4, 2, 40, true), expected);
}

}  // namespace

TEST(batch_same_bytes_for_any_threads_and_lanes_with_byte_observations) { check_determinism<Walk>(); }
TEST(batch_same_bytes_for_any_threads_and_lanes_with_float_observations) { check_determinism<Count>(); }

TEST(batch_auto_reset_keeps_the_last_observation_and_shows_the_first) {
  Batch<Walk> batch({settings(2, 3)}, {"a"}, options(2));
  batch.reset(std::nullopt);
  auto b = batch.buffers();
  for (int t = 0; t < 3; ++t) batch.step();
  CHECK(b->truncations[0] && !b->terminals[0]);
  CHECK_EQ(int{b->final_obs[1]}, 3);
  CHECK_EQ(int{b->obs[1]}, 0);
  batch.step();
  CHECK(!b->truncations[0]);
  std::vector<EpisodeHead> heads;
  std::vector<double> stats;
  batch.take_episodes(heads, stats);
  CHECK_EQ(heads.size(), std::size_t{4});
  CHECK_EQ(heads[3].world, 1u);
  CHECK_EQ(heads[0].length, 3u);
}

TEST(batch_faults_name_world_tick_and_seed_and_stop_until_reset) {
  for (const int threads : {1, 4})
    for (int point = 1; point <= 20; ++point) {
      Batch<Walk> batch({settings(1, 50, point % 8, point)}, {"a"}, options(8, threads, 2));
      batch.reset(std::nullopt);
      for (int t = 1; t < point; ++t) batch.step();
      const std::string text = check::message_of<WorldFault>([&] { batch.step(); });
      CHECK_EQ(text, "world " + std::to_string(point % 8) + ", episode 0, tick " + std::to_string(point) +
                         ", seed 5: told to fail");
      CHECK(check::message_of<UsageError>([&] { batch.step(); }).find("call reset() first") != std::string::npos);
      batch.reset(std::nullopt);  // the next episode, which fails at the same tick
      for (int t = 1; t < point; ++t) batch.step();
      batch.close();
    }
}

TEST(batch_refuses_calls_in_the_wrong_order) {
  Batch<Walk> batch({settings(1, 5)}, {"a"}, options(4, 2, 2));
  CHECK_EQ(check::message_of<UsageError>([&] { batch.step(); }), std::string("call reset() before the first step"));
  batch.reset(std::nullopt);
  CHECK(check::message_of<UsageError>([&] { batch.recv(0); }).find("nothing was sent") != std::string::npos);
  batch.send(1);
  CHECK(check::message_of<UsageError>([&] { batch.send(1); }).find("already in flight") != std::string::npos);
  CHECK(check::message_of<UsageError>([&] { batch.step(); }).find("lane 1 is in flight") != std::string::npos);
  CHECK(check::message_of<UsageError>([&] { batch.save({0}); }).find("lane 1 is in flight") != std::string::npos);
  batch.recv(1);
  batch.close();
  batch.close();
  CHECK_EQ(check::message_of<UsageError>([&] { batch.step(); }), std::string("this env is closed"));
}

TEST(batch_buffers_outlive_it) {
  std::shared_ptr<Buffers<std::uint8_t>> kept;
  {
    Batch<Walk> batch({settings(1, 5)}, {"a"}, options(4, 2));
    batch.reset(std::nullopt);
    batch.step();
    kept = batch.buffers();
  }
  CHECK_EQ(int{kept->obs[1]}, 1);
}

TEST(batch_save_and_restore_continue_to_the_bit_and_fork) {
  Batch<Count> one({settings(2, 9)}, {"a"}, options(3)), other({settings(2, 9)}, {"a"}, options(4, 2));
  one.reset(std::nullopt);
  for (int t = 0; t < 5; ++t) one.step();
  const std::string bytes = one.save({1});
  other.restore(bytes, {0, 1, 2, 3});
  for (int t = 0; t < 20; ++t) {
    one.step();
    other.step();
  }
  for (const auto hash : other.state_hash()) CHECK_EQ(hash, one.state_hash()[1]);
  std::string damaged = bytes;
  damaged[bytes.size() / 2] ^= 1;
  CHECK(check::message_of<std::invalid_argument>([&] { other.restore(damaged, {0}); }).find("damaged") !=
        std::string::npos);
  for (std::size_t cut = 0; cut < bytes.size(); cut += 7)
    check::message_of<std::invalid_argument>([&] { other.restore(bytes.substr(0, cut), {0}); });
  Batch<Count> lacking({settings(2, 9)}, {"b"}, options(1));
  CHECK(check::message_of<std::invalid_argument>([&] {
          lacking.restore(bytes, {0});
        }).find("does not have the game a") != std::string::npos);
}

TEST(batch_assigns_games_at_the_next_reset_only) {
  Batch<Walk> batch({settings(1, 4)}, {"a"}, options(2));
  batch.reset(std::nullopt);
  const int game = batch.add_game(settings(1, 6), "b");
  batch.assign({1}, {game});
  for (int t = 0; t < 3; ++t) batch.step();
  CHECK_EQ(batch.game_of_world()[1], 0);
  batch.step();
  CHECK_EQ(batch.game_of_world()[1], game);
  CHECK_EQ(batch.game_of_world()[0], 0);
  CHECK(check::message_of<std::invalid_argument>([&] { batch.add_game(settings(2, 6), "c"); }).find("the same shape") !=
        std::string::npos);
}

TEST(batch_replaces_a_game_that_nobody_plays) {
  Batch<Walk> batch({settings(1, 4)}, {"a"}, options(2));
  const int game = batch.add_game(settings(1, 6), "b");
  batch.assign({1}, {game});
  const auto refusal = [&](std::int64_t number) {
    return check::message_of<std::invalid_argument>([&] { batch.replace_game(number, settings(1, 2), "c"); });
  };
  CHECK(refusal(game).find("game 1 is played by world 1 next; assign() another game to it first") != std::string::npos);
  batch.reset(std::nullopt);
  CHECK(refusal(game).find("game 1 is played by world 1; assign()") != std::string::npos);
  CHECK(refusal(0).find("game 0 is played by world 0; assign()") != std::string::npos);
  CHECK(refusal(2).find("replace_game: game 2 is not in [0, 2)") != std::string::npos);
  CHECK(refusal(-1).find("replace_game: game -1 is not in [0, 2)") != std::string::npos);
  batch.assign({1}, {0});
  for (int t = 0; t < 6; ++t) batch.step();
  const std::string before = batch.save({0, 1});
  batch.replace_game(game, settings(1, 2), "c");
  CHECK(check::message_of<std::invalid_argument>([&] {
          batch.replace_game(game, settings(2, 6), "d");
        }).find("the same shape") != std::string::npos);
  batch.restore(before, {0, 1});
  batch.assign({0, 1}, {game, game});
  for (int t = 0; t < 8; ++t) batch.step();
  std::vector<EpisodeHead> heads;
  std::vector<double> stats;
  batch.take_episodes(heads, stats);
  CHECK_EQ(heads.back().program, game);
  CHECK_EQ(heads.back().length, 2u);
}

TEST(batch_assigns_while_other_lanes_are_in_flight) {
  BatchOptions o = options(4);
  o.lanes = 2;
  Batch<Walk> batch({settings(1, 4)}, {"a"}, o);
  const int game = batch.add_game(settings(1, 6), "b");
  batch.reset(std::nullopt);
  batch.send(1);
  batch.assign({0, 1}, {game, game});
  CHECK(check::message_of<UsageError>([&] {
          batch.assign({1, 2}, {0, 0});
        }).find("assign() while lane 1 is in flight") != std::string::npos);
  CHECK(check::message_of<UsageError>([&] {
          batch.replace_game(0, settings(1, 2), "c");
        }).find("replace_game() while lane 1 is in flight") != std::string::npos);
  batch.recv(1);
  for (int t = 0; t < 4; ++t) batch.step();
  CHECK_EQ(batch.game_of_world()[1], game);
  CHECK_EQ(batch.game_of_world()[2], 0);
}

TEST(batch_desynchronises_only_the_first_episode) {
  BatchOptions o = options(4);
  o.desync_episodes = true;
  o.min_first_episode = 2;
  Batch<Walk> batch({settings(1, 10)}, {"a"}, o);
  batch.reset(std::nullopt);
  for (int t = 0; t < 20; ++t) batch.step();
  std::vector<EpisodeHead> heads;
  std::vector<double> stats;
  batch.take_episodes(heads, stats);
  std::uint32_t first[4] = {};
  for (const auto& head : heads) {
    if (head.episode == 0) first[head.world] = head.length;
    else CHECK_EQ(head.length, 10u);
    CHECK_EQ(head.desynced, head.episode == 0 && head.length < 10);
  }
  const std::uint32_t expected[] = {4, 6, 8, 10};
  for (int w = 0; w < 4; ++w) CHECK_EQ(first[w], expected[w]);
}

TEST(batch_fault_in_one_lane_while_another_flies) {  // what the thread sanitizer watches
  for (int round = 0; round < 50; ++round) {
    Batch<Walk> batch({settings(1, 50, 0, 3)}, {"a"}, options(8, 4, 2));
    batch.reset(std::nullopt);
    for (int t = 1; t < 3; ++t) batch.step();
    batch.send(0);
    batch.send(1);
    batch.recv(1);  // the other lane's fault is not its business
    CHECK(check::message_of<WorldFault>([&] { batch.recv(0); }).starts_with("world 0, episode 0, tick 3"));
    CHECK(check::message_of<UsageError>([&] { batch.send(1); }).find("call reset() first") != std::string::npos);
  }
}

TEST(long_batch_hundred_thousand_steps) {
  Batch<Walk> batch({settings(2, 11)}, {"a"}, options(16, 8, 2));
  batch.reset(std::nullopt);
  for (int t = 0; t < 100'000; ++t) batch.step();
  CHECK_EQ(batch.episodes_dropped() > 0, true);
}

TEST(batch_many_threads_many_steps) {  // what the thread sanitizer watches
  Batch<Walk> batch({settings(2, 11)}, {"a"}, options(32, 8, 4));
  batch.reset(std::nullopt);
  for (int t = 0; t < 3000; ++t) {
    batch.send(t % 4);
    batch.send((t + 1) % 4);
    batch.recv(t % 4);
    batch.recv((t + 1) % 4);
  }
  CHECK_EQ(batch.episodes_dropped(), std::uint64_t{0});
}
