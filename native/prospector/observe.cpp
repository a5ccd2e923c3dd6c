// The 260 numbers of an observation and the action mask. Blocks of asteroids and edges are kept ready in the Field and
// copied.
#include <algorithm>
#include <cstring>

#include "prospector/state.hpp"

namespace gridmill::prospector {
namespace {

constexpr int kEdgesAt = 24, kAsteroidsAt = 68, kPricesAt = 244, kChangesAt = 250, kStocksAt = 256;
constexpr int kShownStocks[4] = {0, 2, 3, 4};  // nickel and volatiles stay hidden

float share(double x) { return static_cast<float>(clamped(x, 0, 1)); }

}  // namespace

// The shares of an estimate add up to 1 again after rounding to float32.
void show_asteroid(Field& f, int slot) {
  double part[kGoods], total = 0;
  for (int c = 0; c < kGoods; ++c) {
    const double estimate = f.estimate[c][slot];
    part[c] = estimate < kLeast ? kLeast : estimate;
    total += part[c];
  }
  for (int c = 0; c < kGoods; ++c) f.shown[slot][kShownShares + c] = static_cast<float>(part[c] / total);
}

void show_edges(const Program& p, const State& s, int node, Field& field) {
  const Edges& e = s.edges[node];
  for (int slot = 0; slot < s.num_edges[node]; ++slot) {
    float* out = field.edges[slot];
    out[0] = 1;
    out[1 + s.type[e.to[slot]]] = 1;
    out[4] = share(static_cast<double>(e.time[slot]) / p.config.travel_time_max);
    out[5] = share(static_cast<double>(e.fuel[slot]) / p.config.travel_fuel_cost_max);
    out[6] = 0.5f;  // no threat has been listened to yet
  }
}

void observe(const Program& p, const State& s, float* obs) {
  const Config& c = p.config;
  const Field& field = s.here();
  obs[0] = share(s.fuel / 1000.0);
  obs[1] = share(s.hull / 100.0);
  obs[2] = share(s.heat / 100.0);
  obs[3] = share(s.tool / 100.0);
  obs[4] = share(s.cargo_total / 200.0);
  obs[5] = share(s.alert / 100.0);
  obs[6] = share(s.time_remaining / c.time_max);
  obs[7] = s.credits_shown;
  for (int i = 0; i < kGoods; ++i) {
    const float part = s.cargo[i] / 200.0f;
    obs[8 + i] = part < 0.0f ? 0.0f : part > 1.0f ? 1.0f : part;
  }
  obs[14] = share(static_cast<double>(s.repair_kits) / c.repair_kits_cap);
  obs[15] = share(static_cast<double>(s.stabilizers) / c.stabilizers_cap);
  obs[16] = share(static_cast<double>(s.decoys) / c.decoys_cap);
  obs[17] = s.at_station() ? 1.0f : 0.0f;
  obs[18] = s.can_mine(s.selected) ? 1.0f : 0.0f;
  obs[19] = obs[20] = obs[21] = 0;
  obs[19 + s.type[s.node]] = 1;
  obs[22] = static_cast<float>(s.node / 31.0);
  obs[23] = static_cast<float>(s.hops[s.node] / 31.0);
  std::memcpy(obs + kEdgesAt, field.edges, sizeof field.edges);
  obs[66] = obs[67] = 0;
  std::memcpy(obs + kAsteroidsAt, field.shown, sizeof field.shown);
  if (s.selected >= 0) obs[kAsteroidsAt + kAsteroidBlock * s.selected + kShownSelected] = 1;
  for (int i = 0; i < kGoods; ++i) obs[kPricesAt + i] = share(static_cast<double>(s.price[i]) / p.base[i]);
  for (int i = 0; i < kGoods; ++i) {
    const double change = static_cast<double>(s.price[i]) - static_cast<double>(s.prev_price[i]);
    obs[kChangesAt + i] = static_cast<float>(clamped(change / c.price_scale, -1, 1));
  }
  for (int i = 0; i < 4; ++i)
    obs[kStocksAt + i] = share(static_cast<double>(s.stock[kShownStocks[i]]) / c.inventory_scale);
}

void write_mask(const Program& p, const State& s, std::uint8_t* mask) {
  const bool station = s.at_station(), target = s.can_mine(s.selected), kit = s.repair_kits > 0;
  std::memset(mask, 0, kActions);
  for (int slot = 0; slot < s.num_edges[s.node]; ++slot) mask[slot] = 1;
  mask[6] = mask[7] = mask[8] = mask[11] = mask[32] = mask[33] = mask[68] = 1;
  mask[9] = mask[10] = mask[28] = mask[29] = mask[30] = target;
  for (int slot = 0; slot < s.num_asteroids[s.node]; ++slot) mask[12 + slot] = s.can_mine(slot);
  mask[31] = target && s.stabilizers > 0;
  mask[34] = mask[35] = kit;
  std::fill_n(mask + 36, kGoods, std::uint8_t{1});
  std::fill_n(mask + 42, 1 + 3 * kGoods, static_cast<std::uint8_t>(station));
  for (int i = 0; i < 3; ++i) mask[61 + i] = can_pay(s, kFuelOffers[i].cost);
  mask[64] = can_pay(s, kKitCost) && s.repair_kits < p.config.repair_kits_cap;
  mask[65] = can_pay(s, kStabilizerCost) && s.stabilizers < p.config.stabilizers_cap;
  mask[66] = can_pay(s, kDecoyCost) && s.decoys < p.config.decoys_cap;
  mask[67] = can_pay(s, kOverhaulCost);
}

}  // namespace gridmill::prospector
