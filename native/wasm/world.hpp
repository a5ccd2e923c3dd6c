// One world of any game, as the C interface (interface.cpp) offers it: a batch of one with the kind of its game
// forgotten. What a kind shows of itself beyond that is in show.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/game.hpp"
#include "wasm/observer.hpp"

namespace gridmill::wasm {

// The arrays of a world, in the order in which page/world.js asks for them.
enum class Array : std::int32_t { obs, final_obs, actions, rewards, terminals, truncations, masks };

struct Bytes {
  const void* data = nullptr;
  std::size_t size = 0;
};

// What a world is opened with; `name` is what its saved states call the game.
struct Opening {
  std::string kind, name;
  std::uint64_t seed = 0;
  bool masks = true;
};

class World {
 public:
  virtual ~World() = default;
  // No two worlds ever have the same.
  std::uint64_t id() const { return id_; }

  virtual Value info() const = 0;  // what does not change
  virtual Value inspect() = 0;     // what is there now, for drawing
  // The objects of a game with a map, as numbers: see show.hpp. Empty for others.
  virtual std::vector<std::int32_t> objects() = 0;
  virtual std::vector<std::uint32_t> cells() = 0;  // of its agents: row * width + column

  virtual void reset() = 0;
  virtual void step() = 0;        // with what is in the array of actions
  virtual void hold_ended() = 0;  // from now on an episode that ends stays to be looked at
  virtual std::string save() = 0;
  virtual void restore(const std::string& data) = 0;

  virtual std::uint64_t hash() = 0;
  virtual WorldHeader header() = 0;
  virtual bool ended() const = 0;                 // the last step ended the episode
  virtual std::vector<double> stats() = 0;        // [agent][statistic], of this episode so far
  virtual std::vector<double> ended_stats() = 0;  // the same of the last episode that ended; empty: none has
  virtual Bytes array(Array which) const = 0;

  virtual std::vector<std::string> script_names() const = 0;
  virtual std::int32_t add_script(const std::string& name) = 0;
  virtual std::int32_t ask_script(std::int32_t script, std::uint32_t agent) = 0;
  virtual void forget_script(std::int32_t script) = 0;

  virtual Seen seen() const = 0;  // what a policy must know
  virtual Moment moment() const = 0;

 private:
  static std::uint64_t next_id() {
    static std::uint64_t last = 0;
    return ++last;
  }
  std::uint64_t id_ = next_id();
};

std::unique_ptr<World> open_world(const Opening& opening, const Value& tree);

}  // namespace gridmill::wasm
