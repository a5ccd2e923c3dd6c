// A scripted agent: one action from one row of observations and a memory of its own. It serves as teacher (what would
// you do here?) and as player (it acts in its rows); core/scripted_rows.hpp runs it beside the worlds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/random.hpp"

namespace gridmill {

template <class Obs>
class Script {
 public:
  virtual ~Script() = default;
  // Bytes that each row remembers; zeroed when its episode begins. Plain data without pointers, aligned to 8.
  virtual std::size_t memory_bytes() const = 0;
  // `draw`: 64 random bits of this row and tick (a function of seed, world, episode, tick, agent). Const and reentrant:
  // one object serves all rows and all threads; it allocates nothing.
  virtual int act(const Obs* row, std::byte* memory, std::uint64_t draw) const = 0;
  // Throws BadState (core/snapshot.hpp) unless act() can go on from this memory, whatever row comes: it was saved, and
  // somebody may have changed it.
  virtual void check_memory(const std::byte* memory) const = 0;
};

// The random bits of every agent's script in one tick of one world. Games number their streams from 1 on.
constexpr std::uint32_t kScriptStream = 0xFFFF'FFFF;
constexpr Stream script_draws(const Key& key, std::uint32_t tick) { return {key, tick, kScriptStream}; }

}  // namespace gridmill
