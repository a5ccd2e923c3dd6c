// The phases of a tick that have no file of their own, the start of an episode and its record. Grid::phases is their
// order; a world that ended is reset and observed again by Batch.
#include <algorithm>
#include <cmath>

#include "core/isa.hpp"
#include "grid/directions.hpp"
#include "grid/grid.hpp"
#include "grid/machines.hpp"

namespace gridmill::grid {

void Grid::clear_outputs(T& tick) {
  const std::size_t agents = tick.program.num_agents;
  std::fill_n(tick.rows.rewards, agents, 0.0f);
  std::fill_n(tick.rows.terminals, agents, false);
  std::fill_n(tick.rows.truncations, agents, false);
}

void Grid::advance(T& tick) {
  const Program& p = tick.program;
  World& w = tick.view;
  if (p.machines.any) advance_machines(p, w, tick.header.tick);
  if (p.rules.any_in_tick) run_tick_rules(p, w, tick.header, tick.worker.rules);
  if (!p.actions.can_freeze) return;
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    if (w.frozen[agent] == 0) continue;
    --w.frozen[agent];
    ++w.agent_counter(AgentCounter::frozen)[agent];
    w.mark_dirty(agent);
  }
}

void Grid::run_clock(T& tick) {
  ++tick.header.tick;
  if (tick.program.events.list.empty()) return;
  World& w = tick.view;
  run_events(tick.program, w, tick.header, tick.worker.rules);
}

void Grid::spread(T& tick) {
  if (tick.program.areas.list.empty()) return;
  World& w = tick.view;
  apply_areas(tick.program, w, tick.header, tick.worker.rules, tick.ahead);
}

void Grid::count_collectives(T& tick) {
  if (tick.program.collectives.teams.empty()) return;
  World& w = tick.view;
  count_held(tick.program, w);
}

void Grid::mark_ends(T& tick) {
  if (tick.header.tick < tick.header.max_steps) return;
  bool* flags = tick.program.truncates ? tick.rows.truncations : tick.rows.terminals;
  std::fill_n(flags, tick.program.num_agents, true);
  tick.header.ended = 1;
}

void Grid::observe(T& tick) { observe_world(tick, tick.view); }

void Grid::reset(T& tick) {
  const Program& p = tick.program;
  World& w = tick.view;
  draw_map(p, w, tick.header.key, tick.worker.map);
  refresh_terrain(p, w);
  begin_objects(p, w);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    w.facing[agent] = kSouth;
    w.reward_token[agent] = 128;
    w.agent_counter(AgentCounter::visited)[agent] += w.visit(agent, w.row[agent], w.column[agent]);
  }
  for (std::uint32_t object = p.num_agents; object < p.num_objects; ++object)
    if (w.on_map(object) && p.types[w.type[object]].converter >= 0) try_start(p, w, object, 0);
  start_terms(p, w, tick.worker);
}

Vocabulary Grid::vocabulary(const std::vector<Value>& games) {
  std::vector<GameConfig> configs;
  for (const auto& game : games) configs.push_back(decode_game(game));
  return make_vocabulary(configs);
}

Shape Grid::shape(const Program& p) {
  const Observation& o = p.config.observation;
  return {p.num_agents,
          {static_cast<std::size_t>(o.num_tokens), 3},
          p.vocabulary->actions.size(),
          std::to_string(o.height) + "x" + std::to_string(o.width) + " " + o.window};
}

// In the order of Vocabulary::stats(): reward, two per action, invalid, the counters of agents and resources, amounts,
// what rules add to; then what all agents of the world share: every collective's statistics, and the game's.
void Grid::record(const T& tick, double* out) {
  const Program& p = tick.program;
  const World& w = tick.view;
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    *out++ = w.reward_sum[agent];
    for (std::uint32_t i = 0; i < p.actions.num_counters; ++i) *out++ = w.action_counter(agent, i);
    for (std::size_t i = 0; i < kAgentCounters; ++i)
      *out++ = static_cast<double>(w.agent_counters[i * p.num_agents + agent]);
    for (const auto r : p.resource_by_batch_id)
      for (std::size_t f = 0; f < kResourceCounters; ++f)
        *out++ = r < 0 ? 0
                       : static_cast<double>(
                             w.resource_counter(agent, static_cast<std::uint32_t>(r), static_cast<ResourceCounter>(f)));
    for (const auto r : p.resource_by_batch_id) *out++ = r < 0 ? 0 : w.held(agent)[r];
    out = std::copy_n(w.agent_stats(agent), p.vocabulary->agent_stats.size(), out);
    const std::size_t per_team = p.vocabulary->num_team_stats();
    for (const auto team : p.collectives.by_batch_id)
      for (std::size_t i = 0; i < per_team; ++i)
        *out++ = team < 0 ? 0 : team_stat(p, w, static_cast<std::size_t>(team), i);
    out = std::copy_n(w.game_stats(), p.vocabulary->game_stats.size(), out);
  }
}

namespace {

ObserveFunction best_observe() {
  if constexpr (kSeveralIsas) {
    if (isa() >= Isa::avx512) return observe_avx512;
    if (isa() >= Isa::avx2) return observe_avx2;
  }
  return observe_portable;
}

}  // namespace

Worker::Worker(ObserveOptions o) : options(o), fast(best_observe()) {}

void Worker::fit(const Program& p) {
  map.fit(p);
  rules.fit(p);
  const std::size_t agents = p.num_agents;
  order.resize(std::max(order.size(), agents));
  extra_counts.resize(std::max(extra_counts.size(), agents));
  raw_rewards.resize(std::max(raw_rewards.size(), agents));
  touched.resize(std::max(touched.size(), (agents + 63) / 64));
  const std::size_t terms = (p.collectives.teams.size() + 1) * p.rewards.terms.size();
  shared_terms.resize(std::max(shared_terms.size(), terms));
  known_terms.resize(std::max(known_terms.size(), terms));
  extra.resize(std::max(extra.size(), agents * (3 * (2 + 2 * p.features.shown.size()) + 16)));
  if (!options.validate) return;
  const auto tokens = static_cast<std::size_t>(p.config.observation.num_tokens);
  shadow.resize(std::max(shadow.size(), agents * tokens * 3));
  shadow_used.resize(std::max(shadow_used.size(), agents));
}

}  // namespace gridmill::grid
