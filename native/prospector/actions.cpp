// What each of the 69 actions does, and the pirates that come with travelling and drifting. An action says whether it
// was valid; an invalid one becomes a hold.
#include <algorithm>
#include <array>
#include <cmath>

#include "prospector/state.hpp"

namespace gridmill::prospector {
namespace {

enum class Kind : std::uint8_t {
  travel,
  hold,
  burn,
  wide_scan,
  focused_scan,
  deep_scan,
  listen,
  select,
  mine,
  stabilize,
  refine,
  cool,
  mend_tool,
  mend_hull,
  jettison,
  dock,
  sell,
  buy_fuel,
  buy_kit,
  buy_stabilizer,
  buy_decoy,
  overhaul,
  cash_out
};

constexpr std::array<Kind, kActions> kKinds = [] {
  std::array<Kind, kActions> kinds{};
  const auto fill = [&kinds](int first, int last, Kind kind) {
    for (int i = first; i <= last; ++i) kinds[static_cast<std::size_t>(i)] = kind;
  };
  fill(0, 5, Kind::travel);
  fill(6, 6, Kind::hold);
  fill(7, 7, Kind::burn);
  fill(8, 8, Kind::wide_scan);
  fill(9, 9, Kind::focused_scan);
  fill(10, 10, Kind::deep_scan);
  fill(11, 11, Kind::listen);
  fill(12, 27, Kind::select);
  fill(28, 30, Kind::mine);
  fill(31, 31, Kind::stabilize);
  fill(32, 32, Kind::refine);
  fill(33, 33, Kind::cool);
  fill(34, 34, Kind::mend_tool);
  fill(35, 35, Kind::mend_hull);
  fill(36, 41, Kind::jettison);
  fill(42, 42, Kind::dock);
  fill(43, 60, Kind::sell);
  fill(61, 63, Kind::buy_fuel);
  fill(64, 64, Kind::buy_kit);
  fill(65, 65, Kind::buy_stabilizer);
  fill(66, 66, Kind::buy_decoy);
  fill(67, 67, Kind::overhaul);
  fill(68, 68, Kind::cash_out);
  return kinds;
}();

struct Mining {
  double yield, heat, wear, alert, spread, fracture;
};
constexpr Mining kMining[3] = {
    {0.80, 2.0, 0.8, 1.2, 0.05, -0.7}, {1.15, 4.0, 1.6, 2.2, 0.10, 0.0}, {1.55, 7.0, 2.8, 4.0, 0.16, 0.8}};

struct Scan {
  double blend, gain, noise;
};
constexpr Scan kWide{0.22, 0.10, 1.35}, kFocused{0.42, 0.20, 1.00}, kDeep{0.80, 0.45, 0.55};
constexpr int kScanNormals = 7;  // per asteroid: six shares and the stability

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

bool hold(const Program& p, State& s) {
  s.alert = not_negative(s.alert - p.config.hold_alert_decay);
  s.heat = not_negative(s.heat - p.config.heat_dissipation_per_tick * 1.0);
  return true;
}

bool travel(const Program& p, State& s, int slot) {
  const Edges& e = s.edges[s.node];
  if (e.to[slot] < 0) return false;
  s.dt = e.time[slot];
  const double mass = 1.0 + 0.5 * (s.cargo_total / 200.0), threat = e.threat[slot];
  s.fuel -= static_cast<double>(e.fuel[slot]) * mass;
  arrive(p, s, e.to[slot]);
  double damage = s.dt * threat * p.config.hazard_damage_per_tick;
  damage *= s.rng.uniform(0.85, 1.15);
  s.hull -= damage;
  s.heat += s.dt * threat * p.config.hazard_heat_per_tick;
  s.alert += s.dt * threat * p.config.hazard_alert_per_tick;
  pirate_check(p, s, threat);
  return true;
}

void normalise(double (&six)[kGoods]) {
  double total = 0;
  for (double& x : six) {
    x = x < kLeast ? kLeast : x;
    total += x;
  }
  for (double& x : six) x = x / total;
}

// New estimates from seven normal draws; false, and nothing changed, if one is too near the border of two floats.
bool update_estimate(Field& f, int slot, const Scan& scan, double error, const double* z) {
  float* shown = f.shown[slot];
  const double confidence = shown[kShownConfidence];
  const double sigma = static_cast<double>(f.noise[slot]) * (1.0 - confidence + 0.1) * scan.noise;
  double truth[kGoods], total = 0, mixed[kGoods];
  for (int c = 0; c < kGoods; ++c) {
    truth[c] = static_cast<double>(f.truth[c][slot]) + (0.0 + sigma * z[c]);
    total += truth[c] < kLeast ? kLeast : truth[c];
  }
  normalise(truth);
  for (int c = 0; c < kGoods; ++c)
    mixed[c] = (1.0 - scan.blend) * static_cast<double>(f.estimate[c][slot]) + scan.blend * truth[c];
  normalise(mixed);
  // An error of a draw reaches a share divided by the first total; the second total is about 1.
  const double margin = error * (sigma * 64 / total + 1);
  float shares[kGoods], stability;
  bool sure = true;
  for (int c = 0; c < kGoods; ++c) sure = rounds_surely(mixed[c], margin, shares[c]) && sure;
  const double seen = clamped(static_cast<double>(f.stability[slot]) + (0.0 + sigma * z[kGoods]), 0, 1);
  const double blended = (1.0 - scan.blend) * static_cast<double>(shown[kShownStability]) + scan.blend * seen;
  sure = rounds_surely(clamped(blended, 0, 1), error, stability) && sure;
  if (!sure) return false;
  for (int c = 0; c < kGoods; ++c) f.estimate[c][slot] = shares[c];
  shown[kShownStability] = stability;
  shown[kShownConfidence] = static_cast<float>(clamped(confidence + scan.gain, 0, 1));
  show_asteroid(f, slot);
  return true;
}

// Scans slots [first, last): all their draws at once.
void scan_slots(const Program& p, State& s, const Scan& scan, int first, int last) {
  constexpr std::size_t kMost = kAsteroids * kScanNormals;
  static_assert(kMost % 8 == 0);
  std::uint32_t one[kMost], two[kMost];
  double z[kMost];
  const auto count = static_cast<std::size_t>(last - first) * kScanNormals;
  for (std::size_t i = 0; i < count; ++i) {
    one[i] = s.rng.next();
    two[i] = s.rng.next();
  }
  for (std::size_t i = count; i % 8 != 0; ++i) one[i] = two[i] = 0;
  p.kernels->normals(one, two, z, (count + 7) / 8 * 8);
  for (int slot = first; slot < last; ++slot) {
    const auto at = static_cast<std::size_t>(slot - first) * kScanNormals;
    if (update_estimate(s.here(), slot, scan, kNormalError, z + at)) continue;
    for (std::size_t i = at; i < at + kScanNormals; ++i) z[i] = standard_normal(one[i], two[i]);
    update_estimate(s.here(), slot, scan, 0, z + at);
  }
}

bool close_scan(const Program& p, State& s, const Scan& scan, int dt, double fuel, double alert) {
  s.dt = dt;
  s.fuel -= fuel;
  s.alert += alert;
  if (!s.can_mine(s.selected)) return false;  // what was spent is gone
  scan_slots(p, s, scan, s.selected, s.selected + 1);
  ++s.scan_count;
  return true;
}

bool listen(const Program& p, State& s) {
  s.dt = 2;
  std::uint32_t one[8] = {}, two[8] = {};
  double z[8];
  const int count = s.num_edges[s.node];
  for (int i = 0; i < count; ++i) {
    one[i] = s.rng.next();
    two[i] = s.rng.next();
  }
  p.kernels->normals(one, two, z, 8);
  for (int slot = 0; slot < count; ++slot) {
    float& shown = s.here().edges[slot][6];
    const double threat = s.edges[s.node].threat[slot], kept = 0.25 * static_cast<double>(shown);
    const auto blend = [&](double normal) { return kept + 0.75 * clamped(threat + (0.0 + 0.08 * normal), 0, 1); };
    float heard;
    if (!rounds_surely(blend(z[slot]), kNormalError, heard))
      heard = static_cast<float>(blend(standard_normal(one[slot], two[slot])));
    shown = heard;
  }
  return true;
}

bool mine(const Program& p, State& s, const Mining& mode) {
  if (!s.can_mine(s.selected)) return false;
  Field& f = s.here();
  const int slot = s.selected;
  float& depletion = f.shown[slot][kShownDepletion];
  const double base = static_cast<double>(f.richness[slot]) * not_negative(1.0 - static_cast<double>(depletion));
  const double tool_frac = clamped(s.tool / 100.0, 0, 1), heat_frac = clamped(s.heat / 100.0, 0, 2);
  const double tool_effect = 0.4 + 0.6 * tool_frac;
  const double heat_effect = heat_frac <= 0.7 ? 1.0 : std::max(0.1, 1.0 - (heat_frac - 0.7) / 0.3);
  const double noise = std::exp(s.rng.normal(0.0, mode.spread));
  const double mined = base * tool_effect * heat_effect * mode.yield * noise;
  double extracted[kGoods], total = 0;
  for (int c = 0; c < kGoods; ++c) extracted[c] = mined * static_cast<double>(f.truth[c][slot]), total += extracted[c];
  const double room = not_negative(200.0 - s.cargo_total);
  if (total > room && total > 0) {
    for (double& x : extracted) x *= room / total;
    total = room;
  }
  for (int c = 0; c < kGoods; ++c) s.cargo[c] += static_cast<float>(extracted[c]);
  s.heat += mode.heat;
  s.tool -= mode.wear;
  s.alert += mode.alert;
  depletion = static_cast<float>(clamped(static_cast<double>(depletion) + p.config.depletion_per_unit * total, 0, 1));
  ++s.mining_ticks;
  const double logit = -3.1 + mode.fracture + 2.5 * (1.0 - static_cast<double>(f.stability[slot])) +
                       2.2 * not_negative(heat_frac - 0.7) + 1.5 * (1.0 - tool_frac) -
                       (s.stabilize_buff[slot] > 0 ? 1.1 : 0.0);
  if (s.rng.uniform() < sigmoid(logit)) {
    s.hull -= 12.0 * s.rng.uniform(0.5, 1.0);
    depletion = 1;
    s.hazard[s.node] = static_cast<float>(clamped(static_cast<double>(s.hazard[s.node]) + 0.1, 0, 1));
  }
  return true;
}

bool stabilize(const Program& p, State& s) {
  if (!s.can_mine(s.selected) || s.stabilizers <= 0) return false;
  s.dt = 2;
  --s.stabilizers;
  s.stabilize_buff[s.selected] = static_cast<std::uint16_t>(p.config.stabilize_buff_ticks);
  return true;
}

bool refine(State& s) {
  s.dt = 2;
  s.fuel -= 4.0;
  s.heat += 6.0;
  s.alert += 3.0;
  const double low = s.cargo[0] + s.cargo[1];
  if (!(low > 0)) return true;
  const double used = 0.15 * low;
  const auto kept = static_cast<float>(1.0 - std::min(1.0, used / low));
  s.cargo[0] *= kept;
  s.cargo[1] *= kept;
  s.cargo[4] += static_cast<float>(0.65 * used);
  return true;
}

bool mend(State& s, double& what, double by) {
  if (s.repair_kits <= 0) return false;
  s.dt = 2;
  --s.repair_kits;
  what = std::min(100.0, what + by);
  return true;
}

bool sell(const Program& p, State& s, int c, double share) {
  if (!s.at_station()) return false;
  const double quantity = static_cast<double>(s.cargo[c]) * share;
  if (!(quantity > 0)) return true;
  const double x = quantity / std::max(1.0, static_cast<double>(s.stock[c]) + quantity);
  const double slip = clamped(p.config.slippage_linear * x + p.config.slippage_root * std::sqrt(x), 0, 0.70);
  s.credits += quantity * (static_cast<double>(s.price[c]) * (1.0 - slip));
  s.cargo[c] = static_cast<float>(not_negative(static_cast<double>(s.cargo[c]) - quantity));
  s.stock[c] += static_cast<float>(quantity);
  s.sales[c] += static_cast<float>(quantity);
  return true;
}

bool pay(State& s, double cost) {
  if (!can_pay(s, cost)) return false;
  s.credits -= cost;
  s.total_spend += cost;
  return true;
}

bool buy(State& s, double cost, std::int32_t& what, std::int32_t cap) {
  if (what >= cap || !pay(s, cost)) return false;
  ++what;
  return true;
}

bool apply(const Program& p, State& s, int action) {
  switch (kKinds[static_cast<std::size_t>(action)]) {
    case Kind::travel:
      return travel(p, s, action);
    case Kind::hold:
      return hold(p, s);
    case Kind::burn:
      s.fuel -= 18.0, s.alert += 10.0;
      s.escape_buff = std::max(s.escape_buff, p.config.escape_buff_ticks);
      return true;
    case Kind::wide_scan:
      s.dt = 3, s.fuel -= 5.0, s.alert += 4.0;
      scan_slots(p, s, kWide, 0, s.num_asteroids[s.node]);
      ++s.scan_count;
      return true;
    case Kind::focused_scan:
      return close_scan(p, s, kFocused, 2, 4.0, 3.0);
    case Kind::deep_scan:
      return close_scan(p, s, kDeep, 4, 8.0, 6.0);
    case Kind::listen:
      return listen(p, s);
    case Kind::select:
      if (!s.can_mine(action - kSelect)) return false;
      s.selected = action - kSelect;
      return true;
    case Kind::mine:
      return mine(p, s, kMining[action - kMine]);
    case Kind::stabilize:
      return stabilize(p, s);
    case Kind::refine:
      return refine(s);
    case Kind::cool:
      s.dt = 2, s.fuel -= 2.0, s.heat = not_negative(s.heat - 20.0), s.alert += 1.0;
      return true;
    case Kind::mend_tool:
      return mend(s, s.tool, 25.0);
    case Kind::mend_hull:
      return mend(s, s.hull, 20.0);
    case Kind::jettison:
      s.cargo[action - kJettison] = 0;
      s.alert = not_negative(s.alert - 8.0);
      return true;
    case Kind::dock:
      if (!s.at_station()) return false;
      s.alert = not_negative(s.alert - 20.0);
      return true;
    case Kind::sell:
      return sell(p, s, (action - kSell) / 3, kSellShares[(action - kSell) % 3]);
    case Kind::buy_fuel:
      if (!pay(s, kFuelOffers[action - kBuyFuel].cost)) return false;
      s.fuel = std::min(1000.0, s.fuel + kFuelOffers[action - kBuyFuel].fuel);
      return true;
    case Kind::buy_kit:
      return buy(s, kKitCost, s.repair_kits, p.config.repair_kits_cap);
    case Kind::buy_stabilizer:
      return buy(s, kStabilizerCost, s.stabilizers, p.config.stabilizers_cap);
    case Kind::buy_decoy:
      return buy(s, kDecoyCost, s.decoys, p.config.decoys_cap);
    case Kind::overhaul:
      if (!pay(s, kOverhaulCost)) return false;
      s.dt = 3;
      s.hull = s.tool = 100;
      return true;
    case Kind::cash_out:
      s.terminated = 1;
      return true;
  }
  return false;
}

}  // namespace

void act(const Program& p, State& s, std::int64_t action) {
  s.before = {s.credits, s.fuel, s.hull, s.tool, s.value_lost, s.cargo_value};
  s.dt = 1;
  s.invalid = s.terminated = 0;
  if (action < 0 || action >= kActions) {
    action = kHold;
    s.invalid = 1;
  }
  s.action = static_cast<std::int32_t>(action);
  if (!apply(p, s, s.action)) s.invalid = 1;
  if (s.invalid) {
    s.dt = 1;
    hold(p, s);
  }
}

void pirate_check(const Program& p, State& s, double intensity) {
  if (s.at_station()) return;
  const Config& c = p.config;
  const double value = value_of(s);
  // log1p(0) is 0, and most ships are empty most of the time.
  const double rich = value > 0 ? std::log1p(value / c.credit_scale) : 0.0;
  const double logit = c.pirate_bias + c.pirate_intensity_weight * intensity +
                       c.pirate_alert_weight * clamped(s.alert / 100.0, 0, 1) + c.pirate_cargo_weight * rich -
                       c.pirate_escape_weight * (s.escape_buff > 0 ? 1.0 : 0.0);
  const double once = sigmoid(logit), drawn = s.rng.uniform();
  // 1 - (1 - once)^dt is never above once * dt, so the power is needed only below that.
  if (drawn > once * s.dt + 1e-12) return;
  const double chance = 1.0 - std::pow(1.0 - once, static_cast<double>(s.dt));
  if (drawn >= chance) return;
  ++s.pirate_encounters;
  double loss = s.rng.uniform(0.08, 0.20);
  if (s.decoys > 0 && s.rng.uniform() < 0.6) {
    --s.decoys;
    loss *= 0.3;
  }
  const auto kept = static_cast<float>(1.0 - loss);
  for (int i = 0; i < kGoods; ++i) s.cargo[i] *= kept;
  s.value_lost += not_negative(value - value_of(s));
  s.hull -= s.rng.uniform(1.0, 4.0);
  s.alert += 8.0;
}

}  // namespace gridmill::prospector
