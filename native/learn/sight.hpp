// Sums over the agents that an agent sees, read from its own tokens.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridmill::learn {

struct SightJob {
  const std::uint8_t* obs;  // [steps, rows, tokens, 3], ended by location 255
  std::size_t steps, rows, tokens;
  std::uint8_t feature;    // whose value is the index of an agent
  std::size_t num_agents;  // of a world; rows of a world lie side by side
};

// out [steps, rows] becomes the sum of `numbers` of all agents in sight but the one who looks.
inline void sum_in_sight(const SightJob& job, const float* numbers, float* out) {
  for (std::size_t at = 0; at < job.steps * job.rows; ++at) {
    const std::size_t own = at % job.rows % job.num_agents, first = at - own;
    const std::uint8_t* token = job.obs + at * job.tokens * 3;
    float sum = 0;
    for (std::size_t i = 0; i < job.tokens && token[0] != 255; ++i, token += 3)
      if (token[1] == job.feature && token[2] != own && token[2] < job.num_agents) sum += numbers[first + token[2]];
    out[at] = sum;
  }
}

}  // namespace gridmill::learn
