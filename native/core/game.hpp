// The Game contract: what a game must offer so that Batch<Game> can hold, step, save and time many worlds of
// it. A world is one block of bytes: a WorldHeader (the batch's) followed by the game's own state, without
// pointers, so that save, restore, fork and hash are the batch's business alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/buffers.hpp"
#include "core/random.hpp"
#include "core/snapshot.hpp"
#include "core/stats.hpp"
#include "core/value.hpp"

namespace gridmill {

// What the batch keeps at the front of every world's block.
struct WorldHeader {
  Key key;                         // seed, world, episode: what all randomness of the episode hangs on
  std::uint32_t tick = 0;          // ticks of this episode
  std::uint32_t max_steps = 0;     // length of this episode (shorter than the game's in a desynchronised first one)
  std::int32_t program = 0;        // the game this episode plays
  std::int32_t next_program = -1;  // taken at the next reset; -1 keeps the current one
  std::uint8_t ended = 0;          // set by the game in the tick that ends the episode
  std::uint8_t desynced = 0;       // this episode was shortened by desync_episodes
  std::uint8_t failed = 0;         // an exception left this world half way through a tick
  std::uint8_t padding[5] = {};
};
static_assert(sizeof(WorldHeader) == 40);

struct Shape {
  std::size_t num_agents = 0;
  std::vector<std::size_t> obs;  // per row, e.g. {200, 3}
  std::size_t num_actions = 0;
  std::string window = "";  // what part of the world a row shows, for games that can choose
  bool operator==(const Shape&) const = default;
  std::size_t obs_size() const {
    std::size_t n = 1;
    for (const auto d : obs) n *= d;
    return n;
  }
};

// Switches a game may care about; read in Python, handed over as plain values.
struct ObserveOptions {
  bool fast = true;       // false: the reference path is primary
  bool validate = false;  // run both paths and compare
};

// Everything one tick of one world touches.
template <class G>
struct Tick {
  const typename G::Program& program;
  WorldHeader& header;
  std::byte* state;  // the game's part of the block
  Rows<typename G::Obs> rows;
  typename G::Worker& worker;
  typename G::View view;             // what the game makes of its state, once a tick
  const std::byte* ahead = nullptr;  // state of the world stepped next if it plays the same game: worth asking for
};

// A part of a tick: its name in the profiler, what it does, and whether a program has any use for it.
template <class Tick, class Program>
struct Phase {
  std::string_view name;
  void (*run)(Tick&);
  bool (*used)(const Program&) = [](const Program&) { return true; };
};

template <class G>
concept Game = requires(Tick<G>& tick, const typename G::Program& program, const typename G::Vocabulary& vocabulary,
                        const std::vector<Value>& games, double* record, std::size_t index, std::byte* state) {
  // Made of a program and a world's state at the beginning of a tick.
  requires std::is_constructible_v<typename G::View, const typename G::Program&, std::byte*>;
  // The element of an observation row, and the value an unused element holds.
  { G::empty_obs } -> std::convertible_to<typename G::Obs>;
  // What a config may hold: the schema that tests compare with the Python model.
  { G::schema() } -> std::same_as<Value>;
  // The vocabulary all games of one batch share (features, actions, stats); built from all of them.
  { G::vocabulary(games) } -> std::same_as<typename G::Vocabulary>;
  // Immutable and complete: every name resolved, everything validated. `vocabulary` outlives it.
  { G::compile(vocabulary, games[index]) } -> std::same_as<typename G::Program>;
  { G::shape(program) } -> std::same_as<Shape>;
  { G::stats(vocabulary) } -> std::same_as<StatTable>;
  // All of it as text: a saved state holds ids, so it fits only a batch with the same vocabulary.
  { G::vocabulary_text(vocabulary) } -> std::same_as<std::string>;
  // Size of the game's part of a world block, and of its front that is saved and hashed. What lies behind that front
  // follows from it: zeros, as a restored world has them, must mean that it is not known yet.
  { G::state_bytes(program) } -> std::same_as<std::size_t>;
  { G::saved_bytes(program) } -> std::same_as<std::size_t>;
  // What must hold of a state, and of its rows, so that no tick of it can leave its memory, overflow or hang: every
  // index, count and offset in it, and whatever the step takes for granted. Throws BadState (core/snapshot.hpp) that
  // says what does not hold. Asked once for each saved world that is put back, about a copy with zeros behind what is
  // saved; the copy may be changed.
  { G::check_state(program, std::as_const(tick.header), state, tick.rows) };
  // Length of an episode in ticks (0: no limit), and the earliest tick a first episode may end.
  { G::max_steps(program) } -> std::same_as<std::uint32_t>;
  { G::min_first_episode(program) } -> std::same_as<std::uint32_t>;
  // A new episode in a zeroed block; then observe() writes the rows' first observation (and masks).
  { G::reset(tick) };
  { G::observe(tick) };
  // One tick is all of these, in this order.
  { G::phases[index] } -> std::same_as<const Phase<Tick<G>, typename G::Program>&>;
  // One row of numbers per agent, in the order of stats(): when an episode has ended, and for a signal after every
  // step.
  { G::record(tick, record) };
  // Per-thread scratch: whatever a game needs that is neither world state nor shared.
  requires std::is_constructible_v<typename G::Worker, ObserveOptions>;
  { tick.worker.fit(program) };  // grow the scratch so that no tick of this program allocates
};

// A game that says `keeps_state = true` finds in reset() what the last episode left (at first zeros) instead of a
// zeroed block, and clears it itself: for a stream of random numbers that goes on, or a block too large to clear whole.
template <class G>
constexpr bool kKeepsState = requires { requires G::keeps_state; };

// A game that has a dense form of its rows writes it where observe() writes them (Rows::dense, unless it is nullptr),
// and says how to write it from rows that were put back: show_dense(tick).

// A game whose random numbers are a stream in its state says how it begins anew from the key's seed: reseed(tick).

// A game may bring scripts (core/script.hpp): `script_names(vocabulary, program)` says which can play a program, and
// `make_script(name, vocabulary, program)` makes one, or nullptr if it is none of them.
template <class G>
constexpr bool kHasScripts = requires(const typename G::Vocabulary& vocabulary, const typename G::Program& program) {
  G::script_names(vocabulary, program);
};

}  // namespace gridmill
