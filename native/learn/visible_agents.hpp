// Sums over the agents that an agent sees, read from its own tokens.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridmill::learn {

struct VisibleAgents {
  const std::uint8_t* obs;  // [steps, rows, tokens, 3], ended by kNoToken
  std::size_t steps, rows, tokens;
  std::uint8_t feature;       // whose value is the index of an agent
  std::size_t world_rows;     // rows of a world, which lie side by side
  const std::int32_t* place;  // [num_agents]: which of them is an agent's, or -1 if it has none
  std::size_t num_agents;
};

// out [steps, rows] becomes the sum of `numbers` of all agents in sight but the one who looks.
void sum_visible(const VisibleAgents& seen, const float* numbers, float* out);

}  // namespace gridmill::learn
