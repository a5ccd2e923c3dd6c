// Corridor: the smallest whole game, and the example for the next one. An agent in a row of cells goes to the far end;
// there the episode ends with a reward of 1, or it is truncated after max_steps ticks.
#pragma once

#include <array>

#include "core/batch.hpp"

namespace gridmill::corridor {

struct Config {
  std::int32_t length = 8;
  std::int64_t max_steps = 50;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("length", &Self::length, between(2, 1'000'000), "number of cells, including the first and the last"),
        field("max_steps", &Self::max_steps, between(1, 1'000'000'000), "maximum ticks of an episode")};
  }
};

struct State {
  std::int32_t cell, reached;
};

enum Action : std::int32_t { stay, left, right };
constexpr std::size_t kActions = 3;
constexpr std::size_t kObs =
    3;  // how far it has come, what is left of the way, what is left of the time: each in [0, 1]

struct Corridor {
  using Obs = float;
  using Program = Config;
  struct Vocabulary {};
  struct View {
    View(const Program&, std::byte*) {}
  };
  struct Worker {
    explicit Worker(ObserveOptions) {}
    void fit(const Program&) {}
  };
  using T = Tick<Corridor>;
  static constexpr Obs empty_obs = 0;

  static Value schema() { return schema_of(Config{}); }
  static Vocabulary vocabulary(const std::vector<Value>&) { return {}; }
  static Program compile(const Vocabulary&, const Value& game) { return decode<Config>(game); }
  static Shape shape(const Program&) { return {1, {kObs}, kActions, ""}; }
  static StatTable stats(const Vocabulary&) { return {{"reward", false}, {"reached", true}}; }
  static std::string vocabulary_text(const Vocabulary&) { return "corridor"; }
  static std::size_t state_bytes(const Program&) { return sizeof(State); }
  static std::size_t saved_bytes(const Program&) { return sizeof(State); }
  static void check_state(const Program& p, const WorldHeader& header, std::byte* state, const Rows<Obs>& rows);
  static std::uint32_t max_steps(const Program& p) { return static_cast<std::uint32_t>(p.max_steps); }
  static std::uint32_t min_first_episode(const Program& p) { return static_cast<std::uint32_t>(p.length - 1); }
  static void reset(T&) {}  // a zeroed block is the start: the first cell
  static void act(T& tick);
  static void observe(T& tick);
  static constexpr std::array<Phase<T, Program>, 2> phases{{{"actions", act}, {"observations", observe}}};
  static void record(const T& tick, double* out);
  static State& state(const T& tick) { return *reinterpret_cast<State*>(tick.state); }
};

}  // namespace gridmill::corridor

GRIDMILL_DECLARE_BATCH(corridor::Corridor)
