// What a batch is made with, and what it answers a wrong use of it with.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/game.hpp"

namespace gridmill {

// Scripted agents by name, as the game knows them.
struct ScriptOptions {
  std::string teacher;               // empty: none
  std::vector<std::string> players;  // per agent: who acts in its rows, or empty; no entries: nobody
};

struct BatchOptions {
  std::uint32_t num_worlds = 64;
  std::uint64_t seed = 0;
  int threads = 1;
  int lanes = 1;
  bool masks = false;
  bool desync_episodes = false;
  std::int64_t min_first_episode = -1;  // -1: the game's own
  bool profiling = false;
  ObserveOptions observe{};
  ScriptOptions scripts{};
  Value signal{Value::List{}};  // terms, see core/signal.hpp
  // These worlds may be some of those that several processes step: numbers are drawn by the number among all of them.
  std::uint32_t first_world = 0;
  std::uint32_t all_worlds = 0;  // 0: there are no others
};

// A call in the wrong order or from the wrong place.
struct UsageError : std::logic_error {
  using std::logic_error::logic_error;
};

// An exception inside a world, carried out of the worker.
struct WorldFault : std::runtime_error {
  WorldFault(std::uint32_t world_, std::uint32_t tick_, const Key& key_, const std::string& what_)
      : std::runtime_error("world " + std::to_string(world_) + ", episode " + std::to_string(key_.episode) + ", tick " +
                           std::to_string(tick_) + ", seed " + std::to_string(key_.seed) + ": " + what_),
        world(world_) {}
  std::uint32_t world;
};

}  // namespace gridmill
