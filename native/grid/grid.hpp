// Grid: the grid engine as a Game (core/game.hpp). One struct of static functions; the state lives in the
// block.
#pragma once

#include <array>

#include "core/game.hpp"
#include "core/tokens.hpp"
#include "grid/maps/maps.hpp"
#include "grid/program.hpp"
#include "grid/rules/rules.hpp"
#include "grid/schema.hpp"
#include "grid/scripts/scripts.hpp"
#include "grid/world.hpp"

namespace gridmill::grid {

struct Mismatch {
  std::uint32_t world = 0, tick = 0, agent = 0, episode = 0;
  std::int32_t program = 0;
  std::vector<std::uint8_t> fast, reference;
};

// Shadow validation, kept per worker and added up when asked for.
struct Validation {
  std::uint64_t comparisons = 0, mismatches = 0;
  std::int64_t fast_ns = 0, reference_ns = 0;
  std::optional<Mismatch> first;
};

using ObserveFunction = void (*)(const ObserveJob&);

struct Worker {
  explicit Worker(ObserveOptions options);
  void fit(const Program& program);

  ObserveOptions options;
  ObserveFunction fast;  // the best this CPU has
  MapScratch map;
  RuleScratch rules;
  std::vector<std::uint16_t> order;  // this tick's shuffle
  std::vector<std::uint8_t> extra;   // global tokens beyond the three that are always there
  std::vector<std::uint8_t> extra_counts;
  std::vector<double> raw_rewards;
  std::vector<std::uint64_t> touched;     // bits: agents whose inventory changed in this tick, or may have
  std::vector<double> shared_terms;       // [collective][term], at last of none
  std::vector<std::uint8_t> known_terms;  // which of them were evaluated
  std::vector<std::uint8_t> shadow;       // rows of the other path
  std::vector<std::uint16_t> shadow_used;
  Validation validation;
};

struct Grid {
  using Obs = std::uint8_t;
  using View = World;
  using Program = grid::Program;
  using Vocabulary = grid::Vocabulary;
  using Worker = grid::Worker;
  using T = Tick<Grid>;
  static constexpr Obs empty_obs = kNoToken;

  static Value schema() { return game_schema(); }
  static Vocabulary vocabulary(const std::vector<Value>& games);
  static Program compile(const Vocabulary& vocabulary, const Value& game) { return grid::compile(vocabulary, game); }
  static Shape shape(const Program& p);
  static StatTable stats(const Vocabulary& vocabulary) { return vocabulary.stats(); }
  static std::string vocabulary_text(const Vocabulary& vocabulary) { return vocabulary.text(); }
  static std::size_t state_bytes(const Program& p) { return p.layout.bytes; }
  static std::size_t saved_bytes(const Program& p) { return p.layout.saved; }
  static std::uint32_t max_steps(const Program& p) { return static_cast<std::uint32_t>(p.config.max_steps); }
  static void check_state(const Program& p, const WorldHeader& header, std::byte* state, const Rows<Obs>& rows);
  // Holds for any game; a later tick, worked out from the rules in Python, comes as BatchOptions::min_first_episode.
  static std::uint32_t min_first_episode(const Program&) { return 1; }
  static std::vector<std::string> script_names(const Vocabulary& vocabulary, const Program& p) {
    return grid::script_names(vocabulary, p);
  }
  static std::unique_ptr<GridScript> make_script(const std::string& name, const Vocabulary& vocabulary,
                                                 const Program& p) {
    return grid::make_script(name, vocabulary, p);
  }
  static void reset(T& tick);

  // A tick read aloud.
  static void clear_outputs(T& tick);
  static void run_clock(T& tick);
  static void act_in_shuffled_order(T& tick);  // actions.cpp
  static void advance(T& tick);
  static void spread(T& tick);
  static void count_collectives(T& tick);
  static void observe(T& tick);
  static void pay(T& tick);  // rewards.cpp
  static void mark_ends(T& tick);
  static constexpr std::array<Phase<T, Program>, 9> phases{{
      {"reset", clear_outputs},
      {"events", run_clock},
      {"actions", act_in_shuffled_order},
      {"on_tick", advance,
       [](const Program& p) { return p.machines.any || p.rules.any_in_tick || p.actions.can_freeze; }},
      {"aoe", spread, [](const Program& p) { return !p.areas.list.empty(); }},
      {"collectives", count_collectives, [](const Program& p) { return !p.collectives.teams.empty(); }},
      {"observations", observe},
      {"rewards", pay, [](const Program& p) { return !p.rewards.terms.empty(); }},
      {"truncation", mark_ends},
  }};
  static void record(const T& tick, double* out);
  static void show_dense(const T& tick);  // observe/views.cpp

  // signal.cpp: what can be learned from is any statistic by its name, and any game value.
  struct SignalValues {
    std::vector<CompiledValue> list;
    double work = 0;           // to read all of them for all agents
    bool in_inventory = true;  // every one is, or counts, what an agent holds
  };
  static void add_signal(const Program& p, const Value& value, const std::string& path, SignalValues& values);
  static bool signal_unchanged(const T& tick, std::uint32_t agent, const SignalValues& values) {
    return values.in_inventory && !(tick.worker.touched[agent >> 6] >> (agent & 63) & 1);
  }
  static void read_signal(const T& tick, std::uint32_t agent, const SignalValues& values, double* out);
};

// object_tokens.cpp: what an object shows, in the cache of tokens
void refresh_object(const Program& program, World& world, std::uint32_t object, std::uint32_t tick);
void refresh_terrain(const Program& program, World& world);
// observe.cpp: the observation phase
void observe_world(Grid::T& tick, World& world);
// observe_reference.cpp: slow and obvious; writes whole rows
void observe_reference(const Program& program, const World& world, const WorldHeader& header, std::uint8_t* obs,
                       std::uint32_t* needed_per_agent);
// rewards.cpp
void start_terms(const Program& program, World& world, Worker& worker);
// actions.cpp
void write_masks(const Program& program, World& world, const WorldHeader& header, TrialInventories& trials,
                 std::uint8_t* masks);

}  // namespace gridmill::grid
