// Scripts in a batch: the same decisions for any threads and lanes, memory that is saved with the worlds, a teacher
// that can be switched, and nothing of it where there are no scripts.
#include "check.hpp"
#include "core/tiny_games.hpp"

using namespace gridmill;
using namespace tiny;

namespace {

constexpr std::uint32_t kWorlds = 12;
constexpr std::size_t kAgents = 3;

BatchOptions options(const std::string& teacher, std::vector<std::string> players, int threads = 1, int lanes = 1) {
  BatchOptions o;
  o.num_worlds = kWorlds;
  o.seed = 5;
  o.threads = threads;
  o.lanes = lanes;
  o.scripts = {teacher, std::move(players)};
  return o;
}

template <class G = Scripted>
std::unique_ptr<Batch<G>> make(const BatchOptions& o, std::int64_t length = 7) {
  return std::make_unique<Batch<G>>(std::vector<Value>{settings(kAgents, length)}, std::vector<std::string>{"a"}, o);
}

// Steps with actions of its own, and a hash of all that can be seen.
template <class G>
std::uint64_t run(Batch<G>& batch, int from, int steps, bool with_decisions = true) {
  std::uint64_t hash = 0;
  const auto buffers = batch.buffers();
  for (int t = from; t < from + steps; ++t) {
    for (std::size_t row = 0; row < buffers->rows; ++row)
      buffers->actions[row] = static_cast<std::int32_t>((row * 7 + static_cast<std::size_t>(t)) % 3);
    if (t % 2 == 0) {
      batch.step();
    } else {
      for (int lane = batch.options().lanes - 1; lane >= 0; --lane) batch.send(lane);
      for (int lane = 0; lane < batch.options().lanes; ++lane) batch.recv(lane);
    }
    hash = hash_bytes(buffers->obs, buffers->rows * 2, hash);
    hash = hash_bytes(buffers->rewards, buffers->rows * 4, hash);
    hash = hash_bytes(buffers->actions, buffers->rows * 4, hash);
    if (with_decisions && buffers->decided) hash = hash_bytes(buffers->decided, buffers->rows * 4, hash);
    for (const auto h : batch.state_hash()) hash = hash_bytes(&h, 8, hash);
  }
  return hash;
}

// Whether the exception that `work` throws says this.
bool says(const std::function<void()>& work, const std::string& text) {
  return check::message_of<std::exception>(work).find(text) != std::string::npos;
}

}  // namespace

TEST(scripts_decide_the_same_for_any_threads_and_lanes) {
  const auto play = [](int threads, int lanes, bool profiling) {
    BatchOptions o = options("once", {"", "twice", ""}, threads, lanes);
    o.profiling = profiling;
    auto batch = make(o);
    batch->reset(std::nullopt);
    return run(*batch, 0, 30) + batch->teacher_calls();
  };
  const auto expected = play(1, 1, false);
  for (const auto& [threads, lanes] : {std::pair{2, 1}, {1, 3}, {4, 2}, {3, 6}}) {
    CHECK(play(threads, lanes, false) == expected);
    CHECK(play(threads, lanes, true) == expected);
  }
}

TEST(a_teacher_changes_no_world_and_players_only_their_rows) {
  auto plain = make<Scripted>(options("", {})), taught = make(options("once", {})),
       played = make(options("", {"", "twice", ""}));
  for (auto* batch : {&plain, &taught, &played}) (*batch)->reset(std::nullopt);
  CHECK(plain->buffers()->decided == nullptr);
  CHECK(run(*plain, 0, 25, false) == run(*taught, 0, 25, false));
  CHECK(taught->teacher_calls() == 26 * kWorlds * kAgents);
  CHECK(played->teacher_calls() == 0);
  for (int t = 0; t < 20; ++t) {
    const auto buffers = played->buffers();
    std::fill_n(buffers->actions, buffers->rows, -5);
    const std::vector<std::int32_t> decided(buffers->decided, buffers->decided + buffers->rows);
    played->step();
    for (std::size_t row = 0; row < buffers->rows; ++row)
      CHECK(buffers->actions[row] == (row % kAgents == 1 ? decided[row] : -5));
  }
}

TEST(what_scripts_remember_is_saved_and_restored) {
  const BatchOptions o = options("once", {"twice", "", ""});
  for (const int ticks : {0, 3, 7, 11}) {
    auto batch = make(o), other = make(options("once", {"twice", "", ""}, 2, 2));
    batch->reset(std::nullopt);
    run(*batch, 0, ticks);
    std::vector<std::int64_t> all(kWorlds);
    for (std::uint32_t w = 0; w < kWorlds; ++w) all[w] = w;
    const std::string saved = batch->save(all);
    other->restore(saved, all);
    CHECK(other->save(all) == saved);
    CHECK(run(*batch, ticks, 20) == run(*other, ticks, 20));
    batch->restore(saved, all);
    CHECK(batch->save(all) == saved);
  }
}

TEST(a_fork_copies_what_scripts_remember) {
  auto batch = make(options("once", {}));
  batch->reset(std::nullopt);
  run(*batch, 0, 4);
  batch->restore(batch->save({3}), {0, 1, 2});
  const auto buffers = batch->buffers();
  for (int t = 0; t < 10; ++t) {
    std::fill_n(buffers->actions, buffers->rows, 1);
    for (std::size_t agent = 0; agent < kAgents; ++agent)
      for (std::size_t world = 0; world < 3; ++world)
        CHECK(buffers->decided[world * kAgents + agent] == buffers->decided[3 * kAgents + agent]);
    batch->step();
  }
}

TEST(states_without_scripts_keep_their_form_and_fit_batches_with_scripts) {
  auto plain = make(options("", {})), walk = make<Scripted>(options("", {})), taught = make(options("once", {}));
  std::vector<std::int64_t> all(kWorlds);
  for (std::uint32_t w = 0; w < kWorlds; ++w) all[w] = w;
  plain->reset(std::nullopt);
  taught->reset(std::nullopt);
  run(*plain, 0, 4);
  run(*taught, 0, 4);
  const std::string saved = plain->save(all), with_scripts = taught->save(all);
  CHECK(saved.substr(0, 8) == "GMILLS01");
  CHECK(with_scripts.substr(0, 8) == "GMILLS02");
  walk->restore(with_scripts, all);
  CHECK(walk->save(all) == saved);
  // Who was not there when it was saved begins here: as if asked for the first time.
  const std::uint64_t calls = taught->teacher_calls();
  taught->restore(saved, all);
  CHECK(taught->teacher_calls() == calls + kWorlds * kAgents);
  const auto buffers = taught->buffers();
  const std::vector<std::int32_t> after(buffers->decided, buffers->decided + buffers->rows);
  taught->restore(with_scripts, all);
  taught->teach(false);
  taught->teach(true);
  CHECK(std::equal(after.begin(), after.end(), buffers->decided));
  std::string cut = with_scripts;
  cut[cut.size() / 2] ^= 1;
  CHECK(says([&] { taught->restore(cut, all); }, "damaged"));
}

TEST(a_teacher_that_is_off_is_not_asked) {
  auto batch = make(options("once", {"", "", "twice"}));
  batch->teach(false);
  batch->reset(std::nullopt);
  const auto buffers = batch->buffers();
  run(*batch, 0, 9);
  CHECK(batch->teacher_calls() == 0);
  for (std::size_t row = 0; row < buffers->rows; ++row) CHECK(row % kAgents == 2 || buffers->decided[row] == 0);
  batch->teach(true);
  CHECK(batch->teacher_calls() == kWorlds * 2);
  batch->teach(true);
  CHECK(batch->teacher_calls() == kWorlds * 2);
  batch->step();
  CHECK(batch->teacher_calls() == kWorlds * 4);
  batch->send(0);
  CHECK(says([&] { batch->teach(false); }, "while lane 0 is in flight"));
  batch->recv(0);
  CHECK(says([&] { make(options("", {"once", "", ""}))->teach(true); }, "made without a teacher"));
}

TEST(every_game_of_a_batch_has_scripts_of_its_own) {
  Batch<Scripted> batch({settings(kAgents, 7), settings(kAgents, 5)}, {"a", "b"}, options("twice", {"once", "", ""}));
  batch.reset(std::nullopt);
  Batch<Scripted> twin({settings(kAgents, 7), settings(kAgents, 5)}, {"a", "b"},
                       options("twice", {"once", "", ""}, 2, 3));
  twin.reset(std::nullopt);
  CHECK(run(batch, 0, 4) == run(twin, 0, 4));
  // The new game's scripts remember more; what the others remember moves along.
  CHECK(batch.add_game(settings(kAgents, 9), "c") == 2);
  CHECK(run(batch, 4, 2) == run(twin, 4, 2));
  CHECK(twin.add_game(settings(kAgents, 9), "c") == 2);
  for (auto* one : {&batch, &twin}) one->assign({0, 5}, {2, 2});
  CHECK(run(batch, 6, 30) == run(twin, 6, 30));
}

TEST(an_unknown_script_is_refused_with_the_names_there_are) {
  CHECK(says([&] { make(options("onse", {})); },
             "no script `onse`; did you mean `once`? - this game's scripts: once, twice"));
  CHECK(says([&] { make<Walk>(options("once", {})); }, "no script `once` - this game's scripts: none"));
  CHECK(says([&] { make(options("", {"once"})); }, "players: expected a name for each of 3 agents, got 1"));
}

TEST(a_fault_leaves_the_other_worlds_scripts_alone) {
  Batch<Scripted> batch({settings(kAgents, 7, 4, 3)}, {"a"}, options("once", {"twice", "", ""}, 2, 2));
  batch.reset(std::nullopt);
  batch.step();
  batch.step();
  CHECK(says([&] { batch.step(); }, "world 4, episode 0, tick 3"));
  batch.reset(9);
  run(batch, 0, 2);
}
