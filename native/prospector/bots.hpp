// Scripted players that see only the observation: the three public ones, and the shuttle, which comes home. A bot is a
// struct with reset() and act(obs, memory); the memory is of fixed size, one per row.
#pragma once

#include <cstdint>
#include <string_view>

namespace gridmill::prospector {

struct BotMemory {
  std::int32_t trips = 0, mined = 0;  // only the shuttle remembers anything
  std::int32_t slot = 0;              // the edge it took last
  std::uint32_t barren = 0;           // edges whose asteroids are used up, a bit each
};

struct Bot {
  std::string_view name;
  int (*act)(const float* obs, BotMemory& memory);
  void reset(BotMemory& memory) const { memory = {}; }
};

constexpr int kBots = 4;
extern const Bot kAllBots[kBots];

}  // namespace gridmill::prospector
