// Prospector: one ship per world, as a Game (core/game.hpp). A step of the batch is one step call, which may take
// several ticks of the game's own clock.
#pragma once

#include <array>
#include <string_view>

#include "core/game.hpp"
#include "prospector/bots.hpp"
#include "prospector/state.hpp"

namespace gridmill::prospector {

struct Prospector {
  using Obs = float;
  using Program = prospector::Program;
  struct Vocabulary {};
  struct View {
    View(const Program&, std::byte*) {}
  };
  struct Worker {
    explicit Worker(ObserveOptions) {}
    void fit(const Program&) {}
  };
  using T = Tick<Prospector>;
  static constexpr Obs empty_obs = 0;

  static Value schema();
  static Vocabulary vocabulary(const std::vector<Value>&) { return {}; }
  static Program compile(const Vocabulary&, const Value& game) { return prospector::compile(game); }
  static Shape shape(const Program&) { return {1, {kObs}, kActions, ""}; }
  static StatTable stats(const Vocabulary&);
  static std::string vocabulary_text(const Vocabulary&) { return "prospector"; }
  static std::size_t state_bytes(const Program&) { return sizeof(State); }
  static std::size_t saved_bytes(const Program&) { return sizeof(State); }
  static std::uint32_t max_steps(const Program& p);
  static std::uint32_t min_first_episode(const Program&) { return 1; }  // the market alone can pay in the first step
  static constexpr bool keeps_state = true;                             // the stream goes on from episode to episode
  static std::vector<std::string> script_names(const Vocabulary&, const Program&) { return bot_names(); }
  static std::unique_ptr<Script<float>> make_script(const std::string& name, const Vocabulary&, const Program&) {
    return make_bot(name);
  }
  static void reset(T& tick);
  static void reseed(T& tick);
  static void take_action(T& tick);
  static void wear(T& tick);
  static void trade(T& tick);
  static void pay(T& tick);
  static void observe(T& tick);
  static constexpr std::array<Phase<T, Program>, 5> phases{
      {{"actions", take_action}, {"drift", wear}, {"market", trade}, {"rewards", pay}, {"observations", observe}}};
  static void record(const T& tick, double* out);
  // What a reward can be made of, part by part, for a signal (core/signal.hpp).
  static StatTable step_parts();
  static double step_part(const T& tick, std::uint32_t agent, std::size_t part);
  static State& state(const T& tick) { return *reinterpret_cast<State*>(tick.state); }
};

// One ship outside of a batch, one episode at a time: what the single env of Python holds.
void reset_alone(const Program& program, State& state, const std::uint64_t* seed);
void step_alone(const Program& program, State& state, std::int64_t action);

// The numbers of info by name, in order; node_context is 0 at the station and 1 in the field.
StatTable info_names();
void write_info(const State& state, double* out);

}  // namespace gridmill::prospector
