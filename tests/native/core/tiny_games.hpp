// Tiny games with different observation types: the smallest things Batch must hold. Walk moves agents on a line and
// observes bytes; Count adds numbers and observes floats; Scripted is Walk with scripts. All can be told to throw.
#pragma once

#include <array>
#include <cstring>
#include <stdexcept>

#include "core/batch.hpp"

namespace tiny {

using namespace gridmill;

struct Settings {
  std::int64_t agents = 2, length = 10, throw_world = -1, throw_tick = -1;
  template <class Self>
  static auto fields() {
    return std::tuple{field("agents", &Self::agents, between(1, 100), "agents"),
                      field("length", &Self::length, at_least(1), "ticks of an episode"),
                      field("throw_world", &Self::throw_world, "world that fails"),
                      field("throw_tick", &Self::throw_tick, "tick it fails at")};
  }
};

inline Value settings(std::int64_t agents, std::int64_t length, std::int64_t world = -1, std::int64_t tick = -1) {
  return {Value::Dict{{"agents", {agents}}, {"length", {length}}, {"throw_world", {world}}, {"throw_tick", {tick}}}};
}

template <class Element, class Self>
struct Tiny {
  using Obs = Element;
  using Program = Settings;
  struct Vocabulary {};
  struct View {
    View(const Program&, std::byte*) {}
  };
  struct Worker {
    explicit Worker(ObserveOptions) {}
    void fit(const Program&) {}
  };
  struct State {
    std::int64_t place[100];
  };
  using T = Tick<Self>;
  static constexpr Element empty_obs = 0;

  static Value schema() { return schema_of(Settings{}); }
  static Vocabulary vocabulary(const std::vector<Value>&) { return {}; }
  static Program compile(const Vocabulary&, const Value& game) { return decode<Settings>(game); }
  static Shape shape(const Program& p) { return {static_cast<std::size_t>(p.agents), {2}, 3, ""}; }
  static StatTable stats(const Vocabulary&) { return {{"reward", false}, {"place", true}}; }
  static std::string vocabulary_text(const Vocabulary&) { return ""; }
  static std::size_t state_bytes(const Program&) { return sizeof(State); }
  static std::size_t saved_bytes(const Program&) { return sizeof(State); }
  static void check_state(const Program&, const WorldHeader&, std::byte* bytes, const Rows<Element>&) {
    expect_state(reinterpret_cast<const State*>(bytes)->place[0] >= 0, "its first agent left the line");
  }
  static std::uint32_t max_steps(const Program& p) { return static_cast<std::uint32_t>(p.length); }
  static std::uint32_t min_first_episode(const Program&) { return 1; }
  static State& state(T& tick) { return *reinterpret_cast<State*>(tick.state); }
  static void reset(T& tick) {
    for (std::int64_t a = 0; a < tick.program.agents; ++a)
      state(tick).place[a] = Stream(tick.header.key, 0, 7).below(static_cast<std::uint64_t>(a), 1000);
  }
  static void observe(T& tick) {
    for (std::int64_t a = 0; a < tick.program.agents; ++a) {
      tick.rows.obs[2 * a] = static_cast<Element>(state(tick).place[a]);
      tick.rows.obs[2 * a + 1] = static_cast<Element>(tick.header.tick);
    }
  }
  static void act(T& tick) {
    ++tick.header.tick;
    const auto& p = tick.program;
    if (p.throw_world == tick.header.key.world && p.throw_tick == tick.header.tick)
      throw std::runtime_error("told to fail");
    for (std::int64_t a = 0; a < p.agents; ++a) {
      const std::uint32_t luck = Stream(tick.header.key, tick.header.tick, 9).below(static_cast<std::uint64_t>(a), 3);
      state(tick).place[a] += tick.rows.actions[a] + static_cast<std::int64_t>(luck);
      tick.rows.rewards[a] = static_cast<float>(luck);
      tick.rows.truncations[a] = tick.header.tick >= tick.header.max_steps;
      tick.rows.terminals[a] = false;
    }
    tick.header.ended = tick.header.tick >= tick.header.max_steps;
  }
  static constexpr std::array<Phase<T, Program>, 2> phases{{{"act", act}, {"see", observe}}};
  static void record(T& tick, double* out) {
    for (std::int64_t a = 0; a < tick.program.agents; ++a) {
      *out++ = 0;
      *out++ = static_cast<double>(state(tick).place[a]);
    }
  }
};

struct Walk : Tiny<std::uint8_t, Walk> {};
struct Count : Tiny<float, Count> {};

// Decides by its row, its draw, how often it was asked in this episode, and what it saw first.
class Counting final : public Script<std::uint8_t> {
 public:
  struct Memory {
    std::int64_t asked, first;
  };
  Counting(std::size_t bytes, int step) : bytes_(bytes), step_(step) {}
  std::size_t memory_bytes() const override { return bytes_; }
  int act(const std::uint8_t* row, std::byte* memory, std::uint64_t draw) const override {
    Memory& own = *reinterpret_cast<Memory*>(memory);
    if (own.asked == 0) own.first = row[0];
    own.asked += step_;
    return static_cast<int>((static_cast<std::uint64_t>(row[0] + own.first + own.asked) + draw % 7) % 3);
  }
  void check_memory(const std::byte* memory) const override {
    expect_state(reinterpret_cast<const Memory*>(memory)->asked >= 0, "it was asked less than never");
  }

 private:
  std::size_t bytes_;
  int step_;
};

// Walk with scripts: `once` counts by one, `twice` by two; longer episodes come with more memory.
struct Scripted : Tiny<std::uint8_t, Scripted> {
  static std::vector<std::string> script_names(const Vocabulary&, const Program&) { return {"once", "twice"}; }
  static std::unique_ptr<Script<std::uint8_t>> make_script(const std::string& name, const Vocabulary&,
                                                           const Program& p) {
    const std::size_t bytes = sizeof(Counting::Memory) + (p.length > 7 ? 24 : 0);
    if (name == "once") return std::make_unique<Counting>(bytes, 1);
    if (name == "twice") return std::make_unique<Counting>(bytes + 3, 2);  // rows stay aligned all the same
    return nullptr;
  }
};
static_assert(Game<Walk> && Game<Count> && Game<Scripted>);

}  // namespace tiny
