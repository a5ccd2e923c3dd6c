// What a hit does, wherever it comes from: armor, freeze, loot.
#pragma once

#include "grid/inventory.hpp"

namespace gridmill::grid {

inline void land_hit(const Program& p, World& w, std::uint32_t agent, std::uint32_t target) {
  ++w.agent_counter(AgentCounter::received)[target];
  if (p.actions.armor >= 0 && w.held(target)[p.actions.armor] > 0) {
    change_amount(p, w, target, static_cast<std::uint32_t>(p.actions.armor), -1);
    ++w.agent_counter(AgentCounter::blocked)[agent];
    return;
  }
  ++w.agent_counter(AgentCounter::hit)[agent];
  w.frozen[target] = p.actions.freeze_duration;
  w.mark_dirty(target);
  for (std::uint32_t r = 0; r < p.num_resources; ++r) {
    const std::uint32_t loot = std::min<std::uint32_t>(w.held(target)[r], room_in(p.limit_sets[0], w.held(agent), r));
    if (loot == 0) continue;
    change_amount(p, w, target, r, -static_cast<std::int32_t>(loot));
    change_amount(p, w, agent, r, static_cast<std::int32_t>(loot));
  }
}

}  // namespace gridmill::grid
