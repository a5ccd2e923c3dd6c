#include "learn/visible_agents.hpp"

#include "core/tokens.hpp"

namespace gridmill::learn {

void sum_visible(const VisibleAgents& seen, const float* numbers, float* out) {
  for (std::size_t at = 0; at < seen.steps * seen.rows; ++at) {
    const std::size_t own = at % seen.rows % seen.num_agents;
    const std::size_t first = at - own;
    const std::uint8_t* token = seen.obs + at * seen.tokens * kTokenBytes;
    float sum = 0;
    for (std::size_t i = 0; i < seen.tokens && token[0] != kNoToken; ++i, token += kTokenBytes)
      if (token[1] == seen.feature && token[2] != own && token[2] < seen.num_agents) sum += numbers[first + token[2]];
    out[at] = sum;
  }
}

}  // namespace gridmill::learn
