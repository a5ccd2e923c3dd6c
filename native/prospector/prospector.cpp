// Prospector's seam with the batch: compile, reset, the phases of a step, and what an episode leaves behind.
#include "prospector/prospector.hpp"

#include <algorithm>
#include <cmath>

namespace gridmill::prospector {

Program::Program(const Config& c, const Kernels& k) : config(c), kernels(&k) {
  const Commodities& g = c.commodities;
  const Commodity goods[kGoods] = {g.iron, g.nickel, g.water_ice, g.pge, g.rare_isotopes, g.volatiles};
  for (int i = 0; i < 8; ++i) {
    const bool used = i < kGoods;
    base[i] = used ? goods[i].base : 1;
    low[i] = used ? goods[i].low : 1;
    high[i] = used ? goods[i].high : 1;
    noise[i] = used ? c.market_noise * goods[i].base : 0;
  }
  edge_fuel_high = c.travel_fuel_cost_max * 0.7;
  log_credits_cap = std::log1p(c.credits_cap);
  stock_kept = static_cast<float>(c.inventory_decay);
  for (int dt = 0; dt <= kMaxDt; ++dt) {
    sales_kept[dt] = static_cast<float>(std::exp(-dt / c.sales_decay_ticks));
    root_dt[dt] = std::sqrt(static_cast<double>(std::max(dt, 1)));
  }
}

Program compile(const Value& tree) {
  const Config config = decode<Config>(tree);
  const auto ordered = [](const char* name, const Commodity& c) {
    if (c.low > c.high)
      fail_at(std::string("$.commodities.") + name + ".low",
              "expected low <= high, got " + Value{c.low}.describe() + " > " + Value{c.high}.describe());
  };
  std::apply([&](const auto&... f) { (ordered(f.name.data(), config.commodities.*(f.member)), ...); },
             Commodities::fields<Commodities>());
  return Program(config);
}

Value Prospector::schema() { return schema_of(Config{}); }

std::uint32_t Prospector::max_steps(const Program& p) {
  return static_cast<std::uint32_t>(std::ceil(p.config.time_max));  // a step takes at least one tick
}

StatTable info_names() {
  return {{"action", true},
          {"dt", true},
          {"invalid_action", true},
          {"credits", false},
          {"net_profit", false},
          {"profit_per_tick", false},
          {"survival", false},
          {"overheat_ticks", false},
          {"pirate_encounters", false},
          {"value_lost_to_pirates", false},
          {"fuel_used", false},
          {"hull_damage", false},
          {"tool_wear", false},
          {"scan_count", false},
          {"mining_ticks", false},
          {"cargo_utilization_avg", false},
          {"terminated", true},
          {"truncated", true},
          {"node_context", true},
          {"time_remaining", false}};
}

void write_info(const State& s, double* out) {
  const double net_profit = s.credits - s.total_spend;
  const double values[] = {static_cast<double>(s.action),
                           static_cast<double>(s.dt),
                           static_cast<double>(s.invalid),
                           s.credits,
                           net_profit,
                           net_profit / std::max(1, s.ticks),
                           s.lost ? 0.0 : 1.0,
                           static_cast<double>(s.overheat_ticks),
                           static_cast<double>(s.pirate_encounters),
                           s.value_lost,
                           not_negative(1000.0 - s.fuel),
                           not_negative(100.0 - s.hull),
                           not_negative(100.0 - s.tool),
                           static_cast<double>(s.scan_count),
                           static_cast<double>(s.mining_ticks),
                           s.util_count > 0 ? clamped(s.util_sum / s.util_count, 0, 1) : 0.0,
                           static_cast<double>(s.terminated),
                           static_cast<double>(s.truncated),
                           s.at_station() ? 0.0 : 1.0,
                           s.time_remaining};
  std::copy(std::begin(values), std::end(values), out);
}

StatTable Prospector::stats(const Vocabulary&) {
  StatTable table{{"reward", false}, {"ticks", true}};
  for (const auto& stat : info_names()) table.push_back(stat);
  return table;
}

void Prospector::record(const T& tick, double* out) {
  const State& s = state(tick);
  *out++ = s.reward_sum;
  *out++ = s.ticks;
  write_info(s, out);
}

StatTable Prospector::step_parts() {
  StatTable table;
  for (const char* name : kStepParts) table.push_back({std::string("step.") + name, false});
  return table;
}

double Prospector::step_part(const T& tick, std::uint32_t, std::size_t part) {
  return prospector::step_part(tick.program, state(tick), part);
}

void Prospector::reset(T& tick) {
  State& s = state(tick);
  if (tick.header.key.episode == 0) s.rng.seed(tick.header.key.seed + tick.header.key.world);
  if (!*tick.rows.terminals && !*tick.rows.truncations) {
    s.action = -1;
    s.dt = 0;
    s.invalid = 0;
  }  // nothing was done yet
  start_world(tick.program, s);
}

void Prospector::reseed(T& tick) { state(tick).rng.seed(tick.header.key.seed); }

void Prospector::observe(T& tick) {
  prospector::observe(tick.program, state(tick), tick.rows.obs);
  if (tick.rows.masks != nullptr) write_mask(tick.program, state(tick), tick.rows.masks);
}

namespace {

// Thousands of worlds outgrow the caches, so lines are asked for before they are needed: this world's view and row at
// the start of its step, the next world's ship while this one's market moves.
void fetch(const void* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(from) + at, 1);
}

}  // namespace

void Prospector::take_action(T& tick) {
  State& s = state(tick);
  fetch(s.here().shown, sizeof(Field) - offsetof(Field, shown));
  ++tick.header.tick;
  act(tick.program, s, *tick.rows.actions);
}

void Prospector::wear(T& tick) {
  fetch(tick.rows.obs, kObs * sizeof(float));
  drift(tick.program, state(tick));
}

void Prospector::trade(T& tick) {
  if (tick.ahead != nullptr) fetch(tick.ahead, offsetof(State, asteroids_at));
  update_market(tick.program, state(tick));
}

void Prospector::pay(T& tick) {
  State& s = state(tick);
  settle(tick.program, s, tick.header.desynced ? std::int64_t{tick.header.max_steps} : -1);
  *tick.rows.rewards = static_cast<float>(s.reward);
  *tick.rows.terminals = s.terminated != 0;
  *tick.rows.truncations = s.truncated != 0;
  tick.header.ended = s.terminated | s.truncated;
}

void reset_alone(const Program& p, State& s, const std::uint64_t* seed) {
  if (seed != nullptr) s.rng.seed(*seed);
  s.action = -1;
  s.dt = 0;
  s.invalid = 0;
  start_world(p, s);
}

void step_alone(const Program& p, State& s, std::int64_t action) {
  act(p, s, action);
  drift(p, s);
  update_market(p, s);
  settle(p, s, -1);
}

}  // namespace gridmill::prospector
