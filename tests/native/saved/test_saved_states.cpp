// F8: saved worlds of every game, changed at random behind a hash that fits. Each is refused with a reason, or plays on
// without a fault; run under ASan and UBSan, that means without a wrong read or write. And states that were not changed
// are never refused. Long: `native_tests long_saved`; SAVED_GAME, SAVED_COUNT, SAVED_TICKS, SAVED_SHARE and SAVED_SEED
// choose a part of it: of what is accepted one in SAVED_SHARE is played for SAVED_TICKS, the others for a tenth of
// them.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <unordered_map>

#include "check.hpp"
#include "corridor/corridor.hpp"
#include "golden/json.hpp"
#include "grid/batch.hpp"
#include "prospector/batch.hpp"

using namespace gridmill;

namespace {

using Random = std::mt19937_64;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::size_t below(Random& random, std::size_t bound) { return random() % bound; }

// ---- mutations

constexpr std::uint64_t kExtremes[] = {0,
                                       1,
                                       2,
                                       63,
                                       64,
                                       127,
                                       255,
                                       256,
                                       32'767,
                                       32'768,
                                       65'535,
                                       0x7FFF'FFFF,
                                       1 << 20,
                                       0x8000'0000,
                                       0xFFFF'FFFF,
                                       0x7F80'0000,
                                       0x7FC0'0000,
                                       0xFF80'0000,
                                       0x7FF0'0000'0000'0000,
                                       0x7FF8'0000'0000'0000,
                                       0x7FE0'0000'0000'0000,
                                       ~0ull};

// Where in a saved state the world's own bytes lie, and what scripts remember; the rest is mostly observations.
struct Parts {
  std::size_t block, rows, scripts;
};

class Mutation {
 public:
  Mutation(std::string bytes, const Parts& parts, Random& random)
      : bytes_(std::move(bytes)), parts_(parts), random_(random) {
    bytes_.resize(bytes_.size() - 8);
  }

  std::string made() {
    for (std::size_t left = 1 + below(random_, 3); left > 0; --left) once();
    const std::uint64_t hash = hash_bytes(bytes_.data(), bytes_.size());
    bytes_.append(reinterpret_cast<const char*>(&hash), sizeof hash);
    return bytes_;
  }

 private:
  void once() {
    const std::size_t kind = below(random_, 40);
    if (kind == 0) return bytes_.resize(8 + below(random_, bytes_.size() - 7));
    if (kind == 1) return bytes_.resize(bytes_.size() + 1 + below(random_, 64), static_cast<char>(random_()));
    if (bytes_.size() < parts_.block + 16) return;
    const std::size_t width = std::size_t{1} << below(random_, 4), at = place(width);
    if (kind < 10) write(at, 1, random_());
    else if (kind < 14) write(at, 1, read(at, 1) ^ 1u << below(random_, 8));
    else if (kind < 24) write(at, width, read(at, width) + below(random_, 9) - 4);
    else if (kind < 34) write(at, width, kExtremes[below(random_, std::size(kExtremes))]);
    else swap(at, place(width), width);
  }

  // Mostly in the world itself, sometimes in what scripts remember, now and then anywhere.
  std::size_t place(std::size_t width) {
    const std::size_t which = below(random_, 16);
    std::size_t first = 0, last = bytes_.size();
    if (which < 12) first = parts_.block, last = parts_.rows;
    else if (which < 15 && parts_.scripts < bytes_.size()) first = parts_.scripts;
    last = std::min(last, bytes_.size());
    if (first + width > last) return 0;
    // Of the many numbers of a block those at its beginning matter most.
    const std::size_t room = which < 3 ? std::min<std::size_t>(last - first, 256) : last - first;
    return first + below(random_, (room - width) / width + 1) * width;
  }
  std::uint64_t read(std::size_t at, std::size_t width) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at, width);
    return value;
  }
  void write(std::size_t at, std::size_t width, std::uint64_t value) { std::memcpy(bytes_.data() + at, &value, width); }
  void swap(std::size_t a, std::size_t b, std::size_t width) {
    const std::uint64_t x = read(a, width), y = read(b, width);
    write(a, width, y);
    write(b, width, x);
  }

  std::string bytes_;
  Parts parts_;
  Random& random_;
};

// ---- a game that is played and saved

struct Counts {
  int refused = 0, accepted = 0;
  long long ticks = 0;  // played from accepted ones
};

constexpr int kSaved[] = {0, 3, 40, 160, 500, 250};  // ticks before each state that is saved and changed
constexpr int kWays = 4;                             // to act
constexpr std::uint32_t kLook = 16;                  // ticks between two looks whether a state is known

template <class G>
class Subject {
 public:
  Subject(const Value& config, const std::string& script, bool plays) : random_(number_from("SAVED_SEED", 99)) {
    BatchOptions options;
    options.num_worlds = 1;
    options.seed = 7;
    options.masks = true;
    options.desync_episodes = plays;
    if (!script.empty()) {
      options.scripts.teacher = script;
      const typename G::Vocabulary vocabulary = G::vocabulary({config});
      const std::size_t agents = G::shape(G::compile(vocabulary, config)).num_agents;
      for (std::size_t agent = 0; agent < agents && plays; ++agent)
        options.scripts.players.push_back(agent % 2 == 0 ? script : "");
    }
    batch_ = std::make_unique<Batch<G>>(std::vector<Value>{config}, std::vector<std::string>{"game"}, options);
    batch_->reset(std::nullopt);
  }

  void play(int ticks) {
    for (int tick = 0; tick < ticks; ++tick) once(random_());
  }

  // A tick whose actions hang on the state alone, and on which of some ways to act is taken.
  void play_by_the_clock(std::uint64_t way) {
    const auto& header = *reinterpret_cast<const WorldHeader*>(batch_->worlds().block(0));
    const std::uint64_t now[] = {way, header.key.episode, header.tick};
    once(hash_bytes(now, sizeof now));
  }

  std::string save() { return batch_->save({0}); }
  void restore(const std::string& bytes) { batch_->restore(bytes, {0}); }

  // What is saved after some ticks, changed `count` times; of what is accepted one in `share` is played for all
  // `ticks`.
  Counts fuzz(int count, int ticks, int share) {
    Counts counts;
    std::vector<std::pair<std::string, Parts>> saved;
    for (const int more : kSaved) {
      play(more);
      saved.emplace_back(save(), parts());
    }
    for (int i = 0; i < count; ++i) {
      const auto& [bytes, where] = saved[below(random_, saved.size())];
      const std::string changed = Mutation(bytes, where, random_).made();
      try {
        restore(changed);
      } catch (const std::invalid_argument& error) {
        const std::string said = error.what();
        if (!said.starts_with("restore: ") && !said.starts_with("the saved state is too short: ")) throw;
        ++counts.refused;
        continue;
      }
      const bool whole = counts.accepted++ % share == 0;
      counts.ticks += play_on(whole ? ticks : ticks / 10, static_cast<std::uint64_t>(i % kWays));
      restore(save());  // what was accepted stays acceptable, wherever it has come to
    }
    restore(saved.back().first);
    CHECK(save() == saved.back().first);
    return counts;
  }

 private:
  // Play for so many ticks; returns how many of them had to be played. Where a state comes that was played on before
  // for as long, in the same way, what follows is known: every state goes on by itself, whatever came before it. Most
  // changes are such: in what the next tick writes anew, or forgotten with the end of the episode.
  int play_on(int ticks, std::uint64_t way) {
    std::vector<std::pair<std::uint64_t, int>> seen;
    int tick = 0;
    for (; tick < ticks; ++tick) {
      if (reinterpret_cast<const WorldHeader*>(batch_->worlds().block(0))->tick % kLook == 0) {
        const std::string now = save();
        const std::uint64_t state = hash_bytes(now.data(), now.size(), way);
        const auto known = safe_.find(state);
        if (known != safe_.end() && known->second >= ticks - tick) break;
        seen.emplace_back(state, tick);
      }
      play_by_the_clock(way);
    }
    for (const auto& [state, at] : seen) {
      int& longest = safe_[state];
      longest = std::max(longest, ticks - at);
    }
    return tick;
  }

  void once(std::uint64_t drawn) {
    const auto b = batch_->buffers();
    Random random(drawn);
    for (std::size_t row = 0; row < b->rows; ++row)
      b->actions[row] = b->decided != nullptr && random() % 4 != 0
                            ? b->decided[row]
                            : static_cast<std::int32_t>(below(random, b->num_actions + 1));
    batch_->step();
  }

  Parts parts() {
    const std::string bytes = save();
    const auto& worlds = batch_->worlds();
    const std::string block(reinterpret_cast<const char*>(worlds.block(0)), worlds.saved_bytes(0));
    const std::size_t at = bytes.find(block), rows = at + block.size();
    const auto b = batch_->buffers();
    const std::size_t each = 2 * b->obs_size * sizeof(typename G::Obs) + 4 + 4 + 1 + 1 + b->num_actions + 2;
    return {at, rows, rows + b->rows * each};
  }

  std::unique_ptr<Batch<G>> batch_;
  Random random_;
  std::unordered_map<std::uint64_t, int> safe_;  // states, and for how many ticks they have been played on
};

// ---- the games

Value golden_config(const std::string& name) {
  return *golden::read_file(std::filesystem::path(GRIDMILL_GOLDEN) / (name + ".json")).find("config");
}

template <class G>
std::vector<std::string> scripts_of(const Value& config) {
  const typename G::Vocabulary vocabulary = G::vocabulary({config});
  std::vector<std::string> names = script_names<G>(vocabulary, G::compile(vocabulary, config));
  names.insert(names.begin(), "");
  return names;
}

// Every game without scripts, and with each of those that can play it, as teacher and as player: visit(name, subject,
// how many casts the game has).
template <class G, class Visit>
void each_cast(const std::string& name, const Value& config, Visit visit) {
  const char* const only = std::getenv("SAVED_GAME");
  if (only != nullptr && name != only) return;
  const auto scripts = scripts_of<G>(config);
  for (const std::string& script : scripts) {
    Subject<G> subject(config, script, !script.empty());
    visit(name + (script.empty() ? "" : " with " + script), subject, static_cast<int>(scripts.size()));
  }
}
constexpr const char* kGrids[] = {"toy",        "arena",         "arena_basic",     "arena_basic_easy_shaped",
                                  "navigation", "extractor_hub", "cogsguard_arena", "cogsguard"};
template <class Visit>
void each_game(Visit visit) {
  for (const char* name : kGrids) each_cast<grid::Grid>(name, golden_config(name), visit);
  each_cast<corridor::Corridor>("corridor", Value{Value::Dict{{"length", {std::int64_t{60}}}}}, visit);
  each_cast<prospector::Prospector>("prospector", golden_config("prospector"), visit);
}

// So many mutations of each game, shared by its casts.
void fuzz_all(int count, int ticks, int share) {
  each_game([&](const std::string& name, auto& subject, int casts) {
    const std::clock_t start = std::clock();
    const Counts counts = subject.fuzz(count / casts, ticks, share);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%-40s %6d refused, %6d play on, %lld ticks, %.1f CPU s\n", name.c_str(), counts.refused,
                counts.accepted, counts.ticks, seconds);
    std::fflush(stdout);
    CHECK(counts.refused > 0);
    CHECK(counts.accepted > 0);
  });
}

}  // namespace

TEST(saved_states_that_were_changed_are_refused_or_play_on) { fuzz_all(2'000, 10, 1); }

TEST(long_saved_states_that_were_changed_are_refused_or_play_on) {
  const auto number = [](const char* variable, int otherwise) {
    return static_cast<int>(number_from(variable, static_cast<std::uint64_t>(otherwise)));
  };
  fuzz_all(number("SAVED_COUNT", 100'000), number("SAVED_TICKS", 1'000), number("SAVED_SHARE", 8));
}

TEST(saved_states_that_were_not_changed_are_never_refused) {
  each_game([](const std::string& name, auto& subject, int) {
    for (int i = 0; i < 6; ++i) {
      const std::string saved = subject.save();
      try {
        subject.restore(saved);
      } catch (const std::exception& error) {
        check::fail(__FILE__, __LINE__, name + ": " + error.what());
      }
      CHECK(subject.save() == saved);
      subject.play(25);
    }
  });
}

// Rewards are differences: what a state says was there before must not make one infinite.
TEST(saved_values_of_reward_terms_pay_finite_rewards) {
  BatchOptions options;
  options.num_worlds = 1;
  Batch<grid::Grid> batch({golden_config("arena")}, {"game"}, options);
  batch.reset(std::nullopt);
  const grid::World world(batch.worlds().program(0), batch.worlds().state(0));
  world.touched[0] |= 1;  // so that agent 0 is paid
  for (const double before : {-1e151, 1e151, -1e149, 1e149}) {
    world.term_state[0] = before;
    const std::string saved = batch.save({0});
    const bool refused = std::abs(before) > 1e150;
    try {
      batch.restore(saved, {0});
      CHECK(!refused);
    } catch (const std::invalid_argument& error) {
      CHECK(refused);
      CHECK(std::string(error.what()).find("values of reward terms: expected numbers within +-1e+150") !=
            std::string::npos);
      continue;
    }
    batch.step();
    CHECK(std::abs(batch.buffers()->rewards[0]) == std::numeric_limits<float>::max());
    batch.restore(batch.save({0}), {0});
    world.touched[0] |= 1;
  }
}
