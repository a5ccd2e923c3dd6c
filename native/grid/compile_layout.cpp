// Where a world's state lies in memory, and which of its lines are asked for ahead.
#include <algorithm>
#include <set>

#include "grid/compile.hpp"

namespace gridmill::grid {

StateLayout compile_layout(const Program& p) {
  const Vocabulary& vocabulary = *p.vocabulary;
  StateSizes n;
  n.num_agents = p.num_agents;
  n.num_objects = p.num_objects;
  n.num_resources = p.num_resources;
  n.num_teams = p.collectives.teams.size();
  n.num_codes = p.codes.count;
  n.num_names = vocabulary.names.size();
  n.num_action_counters = p.actions.num_counters;
  n.num_terms = p.rewards.terms.size();
  n.num_extra_stats = n.num_agents * vocabulary.agent_stats.size() + n.num_teams * vocabulary.team_stats.size() +
                      vocabulary.game_stats.size();
  n.height = p.height;
  n.width = p.width;
  n.num_cells = std::size_t{p.height + 2} * p.stride;
  n.plane_rows = p.height + 2 * static_cast<std::uint32_t>(p.window.radius_rows);
  n.num_strips = ((p.width + 2 * static_cast<std::uint32_t>(p.window.radius_columns) - 1) >> 5) + 1;
  n.visited_tiles = (p.width + 7) / 8;
  n.visited_words = n.visited_tiles * ((p.height + 7) / 8);
  n.token_cache_bytes = ((n.num_agents + 1) << p.token_cache.agent_shift) +
                        (std::size_t{p.codes.count - p.num_agents} << p.token_cache.shift);
  n.num_areas = p.areas.list.size();
  n.areas_of_type = p.areas.most_of_type;
  n.reach_words = p.areas.reach_words;
  n.narrow_grid = p.codes.count < 255;
  n.narrow_action_counters = p.config.max_steps <= 65'535;
  n.can_freeze = p.actions.can_freeze;
  n.shows_facing = p.actions.shows_facing;
  n.has_clocks = p.machines.any;
  n.has_tag_bits = !p.tags.changeable.empty();
  n.can_spawn = p.rules.can_spawn;
  n.remembers_areas = p.areas.remembers;
  n.has_plain = p.codes.plain != 0;
  return StateLayout(n);
}

namespace {

// Amounts of agents that change in every tick.
std::vector<std::uint16_t> busy_resources(const Program& p) {
  std::vector<std::uint16_t> busy = p.areas.resources;
  const Range rules = p.types[p.agent_type].on_tick;
  for (std::uint32_t rule = rules.first; rule < rules.last; ++rule)
    for (std::uint32_t i = p.rules.list[rule].effects.first; i < p.rules.list[rule].effects.last; ++i) {
      const Op& op = p.rules.effects[i];
      if (op.alone == nullptr) continue;
      if (op.range.empty()) busy.push_back(op.id);  // what it adds to
      for (std::uint32_t a = op.range.first; a < op.range.last; ++a) busy.push_back(p.rules.amounts[a].resource);
    }
  return busy;
}

}  // namespace

// What ahead.hpp asks for without looking at the world.
Prefetch compile_prefetch(const Program& p) {
  Prefetch prefetch;
  const StateLayout& l = p.layout;
  const std::size_t n = p.num_agents, small_bytes = std::max<std::size_t>(16 * 1024, 640 * n);
  std::set<std::uint32_t> lines;
  const auto add = [&](std::size_t from, std::size_t bytes) {
    for (std::size_t at = from / 64 * 64; at < from + bytes; at += 64) lines.insert(static_cast<std::uint32_t>(at));
  };
  prefetch.small = l.hot <= small_bytes;
  if (prefetch.small) add(0, l.hot);
  add(l.dirty.offset, l.token_counts.offset + p.codes.count - l.dirty.offset);
  add(l.action_counters.offset, n * p.actions.num_counters * (l.narrow_action_counters ? 2 : 4));
  add(l.agent_counters.offset, n * kHotAgentCounters * 8);
  add(l.touched.offset, (n + 63) / 64 * 8);
  if (p.actions.can_freeze) add(l.frozen.offset, n * 2);
  if (p.machines.any) add(l.running.offset, (p.num_objects + 63) / 64 * 8);
  if (!p.rewards.terms.empty()) {
    add(l.reward_sum.offset, n * 8);
    add(l.term_state.offset, n * p.rewards.terms.size() * 16);
  }
  if (p.config.observation.local_position) {
    add(l.spawn_row.offset, n * 2);
    add(l.spawn_column.offset, n * 2);
  }
  if (!p.collectives.teams.empty()) {
    add(l.collective.offset, n);
    add(l.team_counts.offset, l.team_resource_counters.offset - l.team_counts.offset);
  }
  if (!p.areas.list.empty()) {
    add(l.num_sources.offset, 64);  // and the first of the sources
    add(l.reach.offset, sizeof(AreaReach));
    add(l.first_source.offset, p.areas.list.size() * 4 + 4);
    add(l.concerned.offset, l.bytes - l.concerned.offset);
    add(l.cell.offset, n * 4);  // where agents stand is looked at when the areas' turn has come
    add(l.row.offset, n * 2);
    add(l.column.offset, n * 2);
  }
  const std::vector<std::uint16_t> busy = busy_resources(p);
  if (!busy.empty() || !p.actions.move_cost.empty()) {
    add(l.inventory.offset, n * p.num_resources * 2);
    add(l.changes.offset, n * 8);
  }
  if (!busy.empty()) add(l.digit_places.offset, n * p.num_resources * 2);
  for (std::size_t agent = 0; agent < n; ++agent)
    for (const std::uint16_t r : busy)
      add(l.resource_counters.offset + (agent * p.num_resources + r) * kResourceCounters * 8, kResourceCounters * 8);
  prefetch.lines.assign(lines.begin(), lines.end());
  return prefetch;
}

}  // namespace gridmill::grid
