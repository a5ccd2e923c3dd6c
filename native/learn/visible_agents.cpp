#include "learn/visible_agents.hpp"

#include "core/tokens.hpp"

namespace gridmill::learn {

void sum_visible(const VisibleAgents& seen, const float* numbers, float* out) {
  for (std::size_t at = 0; at < seen.steps * seen.rows; ++at) {
    const auto own = static_cast<std::int32_t>(at % seen.rows % seen.world_rows);
    const float* world = numbers + at - own;
    const std::uint8_t* token = seen.obs + at * seen.tokens * kTokenBytes;
    float sum = 0;
    for (std::size_t i = 0; i < seen.tokens && token[0] != kNoToken; ++i, token += kTokenBytes) {
      if (token[1] != seen.feature || token[2] >= seen.num_agents) continue;
      const std::int32_t other = seen.place[token[2]];
      if (other >= 0 && other != own) sum += world[other];
    }
    out[at] = sum;
  }
}

}  // namespace gridmill::learn
