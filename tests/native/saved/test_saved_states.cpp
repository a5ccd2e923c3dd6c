// F8: saved worlds of every game, changed at random behind a hash that fits. Each is refused with a reason, or plays on
// without a fault; run under ASan and UBSan, that means without a wrong read or write. And states that were not changed
// are never refused. Long: `native_tests long_saved`; SAVED_GAME, SAVED_COUNT, SAVED_TICKS and
// SAVED_SEED choose a part of it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

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
    if (kind == 0) return bytes_.resize(8 + below(random_, bytes_.size() - 8));
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
};

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
    const auto b = batch_->buffers();
    for (int tick = 0; tick < ticks; ++tick) {
      for (std::size_t row = 0; row < b->rows; ++row)
        b->actions[row] = b->decided != nullptr && random_() % 4 != 0
                              ? b->decided[row]
                              : static_cast<std::int32_t>(below(random_, b->num_actions + 1));
      batch_->step();
    }
  }

  std::string save() { return batch_->save({0}); }
  void restore(const std::string& bytes) { batch_->restore(bytes, {0}); }

  // What is saved after some ticks, changed `count` times.
  Counts fuzz(int count, int ticks) {
    Counts counts;
    std::vector<std::pair<std::string, Parts>> saved;
    for (const int more : {0, 3, 40, 160}) {
      play(more);
      saved.emplace_back(save(), parts());
    }
    for (int i = 0; i < count; ++i) {
      const auto& [bytes, where] = saved[below(random_, saved.size())];
      const std::string changed = Mutation(bytes, where, random_).made();
      try {
        restore(changed);
      } catch (const std::invalid_argument& error) {
        if (std::strncmp(error.what(), "restore: ", 9) != 0 && std::strncmp(error.what(), "saved state ends", 16) != 0)
          throw;
        ++counts.refused;
        continue;
      }
      ++counts.accepted;
      play(ticks);
    }
    restore(saved.back().first);
    CHECK(save() == saved.back().first);
    return counts;
  }

 private:
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
constexpr const char* kGrids[] = {
    "toy", "arena", "arena_basic_easy_shaped", "navigation", "extractor_hub", "cogsguard_arena", "cogsguard"};
template <class Visit>
void each_game(Visit visit) {
  for (const char* name : kGrids) each_cast<grid::Grid>(name, golden_config(name), visit);
  each_cast<corridor::Corridor>("corridor", Value{Value::Dict{{"length", {std::int64_t{60}}}}}, visit);
  each_cast<prospector::Prospector>("prospector", golden_config("prospector"), visit);
}

// So many mutations of each game, shared by its casts.
void fuzz_all(int count, int ticks) {
  each_game([&](const std::string& name, auto& subject, int casts) {
    const auto start = std::chrono::steady_clock::now();
    const Counts counts = subject.fuzz(count / casts, ticks);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%-40s %6d refused, %6d play on, %.1f s\n", name.c_str(), counts.refused, counts.accepted, seconds);
    std::fflush(stdout);
    CHECK(counts.refused > 0);
    CHECK(counts.accepted > 0);
  });
}

}  // namespace

TEST(saved_states_that_were_changed_are_refused_or_play_on) { fuzz_all(2'000, 10); }

TEST(long_saved_states_that_were_changed_are_refused_or_play_on) {
  fuzz_all(static_cast<int>(number_from("SAVED_COUNT", 100'000)), static_cast<int>(number_from("SAVED_TICKS", 1'000)));
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
