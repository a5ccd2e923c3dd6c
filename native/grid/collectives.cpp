// Membership and its counts: who belongs to which collective, and what its statistics say.
#include "grid/rules/rules.hpp"

namespace gridmill::grid {

void set_collective(const Program& p, World& w, std::uint32_t object, std::uint8_t team) {
  if (p.collectives.teams.empty() || w.collective()[object] == team) return;
  const std::size_t name = p.types[w.type[object]].counted_as;
  if (const std::uint8_t old = w.collective()[object]; old != kNeutral) {
    --w.team_count(old, name, TeamCount::now);
    ++w.team_count(old, name, TeamCount::lost);
  }
  w.collective()[object] = team;
  w.mark_dirty(object);
  w.forget_sources();
  if (team == kNeutral) return;
  ++w.team_count(team, name, TeamCount::now);
  ++w.team_count(team, name, TeamCount::gained);
}

// What place_object() does not know of: tags that change, and membership, which initial members gain as well.
void begin_object(const Program& p, World& w, std::uint32_t object) {
  const Type& type = p.types[w.type[object]];
  if (!p.tags.changeable.empty()) w.tag_bits()[object] = type.tag_bits;
  if (p.collectives.teams.empty()) return;
  const auto& of_groups = p.collectives.of_agents;
  const bool grouped = object < p.num_agents && !of_groups.empty();
  w.collective()[object] = kNeutral;
  set_collective(p, w, object, grouped ? of_groups[w.group[object] % of_groups.size()] : type.collective);
}

void begin_objects(const Program& p, World& w) {
  if (p.rules.can_spawn) std::fill_n(w.freed_at(), p.num_objects, ~std::uint32_t{0});
  if (p.tags.changeable.empty() && p.collectives.teams.empty()) return;
  for (std::uint32_t object = 0; object < p.num_objects; ++object)
    if (w.on_map(object)) begin_object(p, w, object);
  for (std::size_t team = 0; team < p.collectives.teams.size(); ++team)
    for (std::uint32_t r = 0; r < p.num_resources; ++r) {
      w.held(p.num_objects + static_cast<std::uint32_t>(team))[r] = p.collectives.teams[team].inventory[r];
      w.team_resource_counter(team, r, TeamResourceCounter::deposited) = p.collectives.teams[team].inventory[r];
    }
}

void count_held(const Program& p, World& w) {
  const std::size_t all = p.collectives.teams.size() * p.vocabulary->names.size() * kTeamCounts;
  std::uint64_t* held = &w.team_count(0, 0, TeamCount::held);
  const std::uint64_t* now = &w.team_count(0, 0, TeamCount::now);
  for (std::size_t i = 0; i < all; i += kTeamCounts) held[i] += now[i];
}

// In the order of Vocabulary::stats_of_team().
double team_stat(const Program& p, const World& w, std::size_t team, std::size_t index) {
  const std::size_t counts = p.vocabulary->names.size() * kTeamCounts;
  if (index < counts)
    return static_cast<double>(w.team_count(team, index / kTeamCounts, static_cast<TeamCount>(index % kTeamCounts)));
  index -= counts;
  const std::size_t per_resource = kTeamResourceCounters + 1, resources = p.vocabulary->resources.size() * per_resource;
  if (index >= resources) return w.team_stats(team)[index - resources];
  const std::int32_t r = p.resource_by_batch_id[index / per_resource];
  if (r < 0) return 0;
  const std::size_t which = index % per_resource;
  if (which == kTeamResourceCounters) return w.held(p.num_objects + static_cast<std::uint32_t>(team))[r];
  return static_cast<double>(
      w.team_resource_counter(team, static_cast<std::size_t>(r), static_cast<TeamResourceCounter>(which)));
}

}  // namespace gridmill::grid
