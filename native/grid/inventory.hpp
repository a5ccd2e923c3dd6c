// Inventories of agents, objects and collectives: every change goes through here, so limits hold, nothing wraps, what
// changed is shown again and counted. A limit is min(max, max(base, sum of bonus x held)); losing a bonus drops the
// excess, the last declared resource of the group first.
#pragma once

#include <algorithm>

#include "grid/world.hpp"

namespace gridmill::grid {

inline const LimitSet& limits_of(const Program& p, const World& w, std::uint32_t holder) {
  if (holder < p.num_agents) return p.limit_sets[0];
  if (holder < p.num_objects) return p.limit_sets[p.types[w.type[holder]].limits];
  return p.limit_sets[p.collectives.teams[holder - p.num_objects].limits];
}

inline std::uint32_t group_limit(const LimitGroup& group, const std::uint16_t* held) {
  if (group.bonus.empty()) return std::min(group.base, group.max);
  std::uint64_t sum = 0;
  for (const auto& [resource, each] : group.bonus) sum += std::uint64_t{each} * held[resource];
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(group.max, std::max<std::uint64_t>(group.base, sum)));
}

// Whether objects of a type can ever come to hold a resource: only then do their tokens have room for it.
inline bool can_hold(const Program& p, const Type& type, std::size_t resource) {
  const CompiledConverter* machine =
      type.converter < 0 ? nullptr : &p.machines.converters[static_cast<std::size_t>(type.converter)];
  return type.inventory[resource] > 0 || type.may_hold[resource] ||
         (machine && (machine->inputs[resource] > 0 || machine->outputs[resource] > 0));
}

// The most somebody may hold of a resource, given the others of its group.
inline std::uint32_t most_of(const LimitSet& limits, const std::uint16_t* held, std::uint32_t resource) {
  const ResourceLimit& own = limits.of[resource];
  if (!own.limited) return 65'535;
  std::uint64_t sum = 0;
  for (std::uint32_t i = own.bonuses.first; i < own.bonuses.last; ++i)
    sum += std::uint64_t{limits.bonuses[i].second} * held[limits.bonuses[i].first];
  const auto limit =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(own.max, std::max<std::uint64_t>(own.base, sum)));
  std::uint32_t others = 0;
  for (std::uint32_t i = own.others.first; i < own.others.last; ++i) others += held[limits.others[i]];
  return limit > others ? limit - others : 0;
}

inline std::uint32_t room_in(const LimitSet& limits, const std::uint16_t* held, std::uint32_t resource) {
  const std::uint32_t most = most_of(limits, held, resource);
  return most > held[resource] ? most - held[resource] : 0;
}

// Whether anything is held whose limit hangs on `resource`; most of the time there is nothing to lose.
inline bool has_dependents(const LimitSet& limits, const std::uint16_t* held, std::uint32_t resource) {
  const Range range = limits.of[resource].dependents;
  const std::uint16_t* const list = limits.dependents.data();
  std::uint32_t any = 0;
  for (std::uint32_t i = range.first; i < range.last; ++i) any |= held[list[i]];
  return any != 0;
}

// Takes from a group what is above its limit, the last declared resource first.
template <class Set>
void drop_excess(const LimitGroup& group, const std::uint16_t* held, const Set& set) {
  std::uint32_t total = 0;
  for (const auto each : group.resources) total += held[each];
  const std::uint32_t limit = total == 0 ? 0 : group_limit(group, held);
  for (auto r = group.resources.rbegin(); r != group.resources.rend() && total > limit; ++r) {
    const std::uint32_t drop = std::min<std::uint32_t>(held[*r], total - limit);
    if (drop == 0) continue;
    total -= drop;
    set(*r, held[*r] - drop);
  }
}

// Limits that depend on `resource`, which has just fallen: what no longer fits is lost. That may be a bonus itself;
// what is left in the end is the same in whatever order groups are looked at, because limits only fall.
template <class Set>
void recheck_limits(const LimitSet& limits, const std::uint16_t* held, std::uint32_t resource, const Set& set) {
  GroupMask due = limits.bonus_for[resource];
  const auto set_and_note = [&](std::uint32_t r, std::uint32_t amount) {
    set(r, amount);
    for (std::size_t word = 0; word < due.size(); ++word) due[word] |= limits.bonus_for[r][word];
  };
  while ((due[0] | due[1]) != 0) {
    const std::size_t word = due[0] == 0;
    const auto bit = static_cast<std::size_t>(__builtin_ctzll(due[word]));
    due[word] &= due[word] - 1;
    drop_excess(limits.groups[64 * word + bit], held, set_and_note);
  }
}

// Adds (or takes) as much as fits, writing through set(resource, amount); returns the real change. An amount above its
// limit falls to it at its next change.
template <class Set>
std::int32_t change_held(const LimitSet& limits, const std::uint16_t* held, std::uint32_t resource, std::int32_t by,
                         const Set& set) {
  const std::int32_t before = held[resource];
  if (before == 0 && by <= 0) return 0;  // often, so limits are not asked
  std::int32_t after = std::max(before + by, 0);
  // What is within the limit whatever else is held needs no sum of bonuses.
  if (after > limits.of[resource].least)
    after = std::min(after, static_cast<std::int32_t>(most_of(limits, held, resource)));
  if (after == before) return 0;
  set(resource, static_cast<std::uint32_t>(after));
  if (after < before && has_dependents(limits, held, resource)) recheck_limits(limits, held, resource, set);
  return after - before;
}

inline void set_agents_amount(World& w, std::uint32_t agent, std::uint32_t resource, std::uint32_t amount) {
  std::uint16_t& held = w.held(agent)[resource];
  const std::int32_t by = static_cast<std::int32_t>(amount) - held;
  const auto which = by > 0 ? ResourceCounter::gained : ResourceCounter::lost;
  w.resource_counter(agent, resource, which) += static_cast<std::uint32_t>(std::abs(by));
  w.touched[agent >> 6] |= std::uint64_t{1} << (agent & 63);
  w.mark_amount(agent, resource);
  held = static_cast<std::uint16_t>(amount);
}

inline void set_amount(const Program& p, World& w, std::uint32_t holder, std::uint32_t resource, std::uint32_t amount) {
  if (holder < p.num_agents) return set_agents_amount(w, holder, resource, amount);
  std::uint16_t& held = w.held(holder)[resource];
  if (holder < p.num_objects) {
    w.mark_dirty(holder);
  } else if (amount > held) {
    w.team_resource_counter(holder - p.num_objects, resource, TeamResourceCounter::deposited) += amount - held;
  } else {
    w.team_resource_counter(holder - p.num_objects, resource, TeamResourceCounter::withdrawn) += held - amount;
  }
  held = static_cast<std::uint16_t>(amount);
}

// The same for one who is known to be an agent: most changes of a tick.
inline std::int32_t change_agents_amount(const Program& p, World& w, std::uint32_t agent, std::uint32_t resource,
                                         std::int32_t by) {
  return change_held(p.limit_sets[0], w.held(agent), resource, by,
                     [&](std::uint32_t r, std::uint32_t amount) { set_agents_amount(w, agent, r, amount); });
}

inline std::int32_t change_amount(const Program& p, World& w, std::uint32_t holder, std::uint32_t resource,
                                  std::int32_t by) {
  return change_held(limits_of(p, w, holder), w.held(holder), resource, by,
                     [&](std::uint32_t r, std::uint32_t amount) { set_amount(p, w, holder, r, amount); });
}

using Costs = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

inline bool can_pay(const std::uint16_t* held, const Costs& costs) {
  return std::all_of(costs.begin(), costs.end(), [&](const auto& c) { return held[c.first] >= c.second; });
}
inline void pay_costs(const Program& p, World& w, std::uint32_t agent, const Costs& costs) {
  for (const auto& [resource, amount] : costs)
    change_agents_amount(p, w, agent, resource, -static_cast<std::int32_t>(amount));
}

}  // namespace gridmill::grid
