// Scripts that see only the observation: the three public bots, and the shuttle, which comes home.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/script.hpp"

namespace gridmill::prospector {

struct BotMemory {
  std::int32_t trips, mined;  // only the shuttle remembers anything
  std::int32_t slot;          // the edge it took last
  std::uint32_t barren;       // edges whose asteroids are used up, a bit each
};

std::vector<std::string> bot_names();
std::unique_ptr<Script<float>> make_bot(const std::string& name);  // nullptr: there is none of this name

}  // namespace gridmill::prospector
