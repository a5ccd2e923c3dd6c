// Inventories of agents: every change goes through here, so limits hold, nothing wraps, what changed is shown again and
// counted. A limit is min(max, max(base, sum of bonus x held)); losing a bonus drops the excess, the last declared
// resource of the group first.
#pragma once

#include <algorithm>

#include "grid/world.hpp"

namespace gridmill::grid {

inline std::uint32_t group_limit(const LimitGroup& group, const std::uint16_t* held) {
  if (group.bonus.empty()) return std::min(group.base, group.max);
  std::uint64_t sum = 0;
  for (const auto& [resource, each] : group.bonus) sum += std::uint64_t{each} * held[resource];
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(group.max, std::max<std::uint64_t>(group.base, sum)));
}

// The most an agent may hold of a resource, given the others of its group.
inline std::uint32_t most_of(const Program& p, const std::uint16_t* held, std::uint32_t resource) {
  if (p.limit_of[resource] < 0) return 65'535;
  const LimitGroup& group = p.limits[static_cast<std::size_t>(p.limit_of[resource])];
  std::uint32_t others = 0;
  for (const auto r : group.resources)
    if (r != resource) others += held[r];
  const std::uint32_t limit = group_limit(group, held);
  return limit > others ? limit - others : 0;
}

inline std::uint32_t room_for(const Program& p, const World& w, std::uint32_t agent, std::uint32_t resource) {
  const std::uint16_t* held = w.held(agent);
  const std::uint32_t most = most_of(p, held, resource);
  return most > held[resource] ? most - held[resource] : 0;
}

inline void set_amount(World& w, std::uint32_t agent, std::uint32_t resource, std::uint32_t amount) {
  std::uint16_t& held = w.held(agent)[resource];
  if (amount > held) w.flow(agent, resource, Flow::gained) += amount - held;
  else w.flow(agent, resource, Flow::lost) += held - amount;
  if (amount != held) w.mark_dirty(agent), w.touched[agent >> 6] |= std::uint64_t{1} << (agent & 63);
  held = static_cast<std::uint16_t>(amount);
}

// Limits that depend on `resource`, which has just fallen: what no longer fits is lost.
inline void recheck_limits(const Program& p, World& w, std::uint32_t agent, std::uint32_t resource) {
  for (const auto index : p.bonus_for[resource]) {
    const LimitGroup& group = p.limits[index];
    const std::uint32_t limit = group_limit(group, w.held(agent));
    std::uint32_t total = 0;
    for (const auto r : group.resources) total += w.held(agent)[r];
    for (auto r = group.resources.rbegin(); r != group.resources.rend() && total > limit; ++r) {
      const std::uint32_t drop = std::min<std::uint32_t>(w.held(agent)[*r], total - limit);
      if (drop == 0) continue;
      set_amount(w, agent, *r, w.held(agent)[*r] - drop);
      total -= drop;
      recheck_limits(p, w, agent, *r);
    }
  }
}

// Adds (or takes) as much as fits; returns the real change. An amount above its limit falls to it at its next change.
inline std::int32_t change_amount(const Program& p, World& w, std::uint32_t agent, std::uint32_t resource,
                                  std::int32_t by) {
  const std::int32_t before = w.held(agent)[resource];
  const auto most = static_cast<std::int32_t>(most_of(p, w.held(agent), resource));
  const std::int32_t after = std::clamp(before + by, 0, most);
  set_amount(w, agent, resource, static_cast<std::uint32_t>(after));
  if (after < before) recheck_limits(p, w, agent, resource);
  return after - before;
}

using Costs = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

inline bool can_pay(const World& w, std::uint32_t agent, const Costs& costs) {
  return std::all_of(costs.begin(), costs.end(), [&](const auto& c) { return w.held(agent)[c.first] >= c.second; });
}
inline void pay_costs(const Program& p, World& w, std::uint32_t agent, const Costs& costs) {
  for (const auto& [resource, amount] : costs) change_amount(p, w, agent, resource, -static_cast<std::int32_t>(amount));
}

}  // namespace gridmill::grid
