// The rest of a step after the action: time passes, the market moves, and what came of it is added up.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "prospector/state.hpp"

namespace gridmill::prospector {
namespace {

void node_hazards(const Program& p, State& s) {
  const double hazard = s.hazard[s.node];
  if (hazard <= 0) return;
  s.hull -= s.dt * hazard * p.config.hazard_damage_per_tick * s.rng.uniform(0.8, 1.2);
  s.heat += s.dt * hazard * p.config.hazard_heat_per_tick;
  s.alert += s.dt * hazard * p.config.hazard_alert_per_tick;
}

// One commodity with the C library, where the kernel was not sure.
float exact_price(const Program& p, const MarketJob& job, int c) {
  Pcg32 draw{jump(2 * static_cast<unsigned>(c))(job.rng)};
  const double turn = kTwoPi * (job.t / static_cast<double>(job.period[c])) + static_cast<double>(job.phase[c]);
  const double cycle = static_cast<double>(job.amp[c]) * std::sin(turn);
  const double noise = draw.normal(0.0, p.noise[c] * job.root_dt);
  const double price = p.base[c] + cycle - job.inventory_pressure * static_cast<double>(job.stock[c]) -
                       job.sales_pressure * static_cast<double>(job.sales[c]) + noise;
  return static_cast<float>(clamped(price, p.low[c], p.high[c]));
}

void clamp_state(const Program& p, State& s) {
  s.fuel = clamped(s.fuel, 0, 1000);
  s.hull = clamped(s.hull, 0, 100);
  s.heat = clamped(s.heat, 0, 100);
  s.tool = clamped(s.tool, 0, 100);
  s.alert = clamped(s.alert, 0, 100);
  s.time_remaining = clamped(s.time_remaining, 0, p.config.time_max);
  for (float& amount : s.cargo) amount = amount < 0.0f ? 0.0f : amount > 200.0f ? 200.0f : amount;
  s.cargo_total = sum_of(s.cargo);
  if (s.cargo_total > 200.0) {
    const auto kept = static_cast<float>(200.0 / s.cargo_total);
    for (float& amount : s.cargo) amount *= kept;
    s.cargo_total = sum_of(s.cargo);
  }
}

double square(double x) { return x * x; }
double excess_heat(const Config& c, const State& s) { return not_negative(s.heat - c.heat_safe_frac * 100.0) / 100.0; }

double reward_of(const Program& p, const State& s, bool destroyed, bool stranded) {
  const Config& c = p.config;
  const Before& b = s.before;
  const bool scanned = s.action >= 8 && s.action <= 10;
  double terminal = 0;
  if (stranded) terminal -= c.stranded_pen;
  if (destroyed) terminal -= c.destroyed_pen;
  if (!s.lost && (s.terminated || s.truncated)) terminal = c.terminal_bonus * (s.credits / c.credit_scale);
  double sum = (s.credits - b.credits) / c.credit_scale;
  sum += c.alpha_extract * (not_negative(s.cargo_value - b.value) / c.credit_scale);
  sum += -c.beta_fuel * not_negative(b.fuel - s.fuel) / 100.0;
  sum += -c.gamma_time * s.dt;
  sum += -c.delta_wear * not_negative(b.tool - s.tool) / 10.0;
  sum += -c.epsilon_heat * square(excess_heat(c, s));
  sum += -c.zeta_damage * not_negative(b.hull - s.hull) / 10.0;
  sum += scanned ? -c.scan_cost : 0.0;
  sum += s.invalid ? -c.invalid_pen : 0.0;
  sum += -c.kappa_pirate * (not_negative(s.value_lost - b.lost) / c.credit_scale);
  sum +=
      -c.spend_again * (not_negative(b.credits - s.credits) / c.credit_scale);  // 0 in the frozen game: no bit changes
  return sum + terminal;
}

}  // namespace

// What reward_of() weighs, without its weights and signs; in the order of kStepParts.
double step_part(const Program& p, const State& s, std::size_t part) {
  const Config& c = p.config;
  const Before& b = s.before;
  switch (part) {
    case 0:
      return (s.credits - b.credits) / c.credit_scale;
    case 1:
      return not_negative(b.credits - s.credits) / c.credit_scale;
    case 2:
      return not_negative(s.cargo_value - b.value) / c.credit_scale;
    case 3:
      return not_negative(s.value_lost - b.lost) / c.credit_scale;
    case 4:
      return not_negative(b.fuel - s.fuel) / 100.0;
    case 5:
      return not_negative(b.tool - s.tool) / 10.0;
    case 6:
      return not_negative(b.hull - s.hull) / 10.0;
    case 7:
      return square(excess_heat(c, s));
    case 8:
      return s.dt;
    case 9:
      return s.action >= kWideScan && s.action <= kDeepScan;
    case 10:
      return s.invalid != 0;
    case 11:
      return s.fuel <= 0 && !s.at_station();
    case 12:
      return s.hull <= 0;
    default:
      return (s.terminated || s.truncated) && !s.lost ? s.credits / c.credit_scale : 0.0;
  }
}

void drift(const Program& p, State& s) {
  const std::int32_t dt = s.dt;
  s.time_remaining -= dt;
  s.heat = not_negative(s.heat - p.config.heat_dissipation_per_tick * dt);
  s.escape_buff = std::max(0, s.escape_buff - dt);
  for (std::uint16_t& ticks : s.stabilize_buff) ticks = static_cast<std::uint16_t>(ticks > dt ? ticks - dt : 0);
  if (s.heat > 100.0) {
    s.hull -= p.config.overheat_damage * (s.heat - 100.0);
    s.heat = 100;
    s.overheat_ticks += dt;
  }
  if (s.at_station()) return;
  node_hazards(p, s);
  pirate_check(p, s, s.pirates[s.node]);
}

void update_market(const Program& p, State& s) {
  static constexpr Jump kDrawn = jump(2 * kGoods);
  std::memcpy(s.prev_price, s.price, sizeof s.price);
  const MarketJob job{s.rng.state,
                      static_cast<double>(s.ticks + s.dt),
                      p.root_dt[s.dt],
                      p.config.inventory_pressure,
                      p.config.sales_pressure,
                      p.base,
                      p.low,
                      p.high,
                      p.noise,
                      s.amp,
                      s.period,
                      s.phase,
                      s.stock,
                      s.sales};
  std::uint32_t unsure = p.kernels->market(job, s.price) & ((1u << kGoods) - 1);
  for (; unsure != 0; unsure &= unsure - 1) {
    const int c = __builtin_ctz(unsure);
    s.price[c] = exact_price(p, job, c);
  }
  s.rng.state = kDrawn(s.rng.state);
  for (float& sold : s.sales) sold *= p.sales_kept[s.dt];
  for (float& stock : s.stock) stock = stock * p.stock_kept > 0.0f ? stock * p.stock_kept : 0.0f;
}

// tick_limit: an episode that was told to be shorter is truncated there; -1: none.
void settle(const Program& p, State& s, std::int64_t tick_limit) {
  clamp_state(p, s);
  s.util_sum += clamped(s.cargo_total / 200.0, 0, 1) * s.dt;
  s.util_count += s.dt;
  s.ticks += s.dt;
  const bool destroyed = s.hull <= 0, stranded = s.fuel <= 0 && !s.at_station();
  s.lost = destroyed || stranded;
  s.terminated = s.terminated || s.lost;
  s.truncated = !s.terminated && (s.time_remaining <= 0 || (tick_limit >= 0 && s.ticks >= tick_limit));
  s.cargo_value = value_of(s);
  s.reward = reward_of(p, s, destroyed, stranded);
  s.reward_sum += s.reward;
  if (s.credits != s.before.credits)
    s.credits_shown = static_cast<float>(clamped(std::log1p(not_negative(s.credits)) / p.log_credits_cap, 0, 1));
}

}  // namespace gridmill::prospector
