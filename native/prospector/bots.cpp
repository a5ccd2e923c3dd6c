// What each bot does, as a list of rules in order; the first that applies decides. Thresholds are on observations.
#include "prospector/bots.hpp"

#include <cmath>
#include <string_view>
#include <utility>

#include "core/snapshot.hpp"
#include "prospector/config.hpp"

namespace gridmill::prospector {
namespace {

constexpr int kQuarter = 0, kHalf = 1, kAll = 2;  // shares to sell

// An observation by name.
struct Seen {
  const float* o;
  double fuel() const { return o[0]; }
  double hull() const { return o[1]; }
  double heat() const { return o[2]; }
  double tool() const { return o[3]; }
  double load() const { return o[4]; }
  double alert() const { return o[5]; }
  double time() const { return o[6]; }
  double credits() const { return std::expm1(static_cast<double>(o[7]) * std::log1p(1e7)); }
  double cargo(int c) const { return o[8 + c]; }
  double kits() const { return o[14]; }
  double stabilizers() const { return o[15]; }
  bool at_station() const { return o[17] > 0.5f; }
  const float* edge(int slot) const { return o + 24 + 7 * slot; }
  bool leads(int slot) const { return edge(slot)[0] > 0.5f; }
  bool leads_to(int slot, int type) const { return leads(slot) && edge(slot)[1 + type] > 0.5f; }
  const float* asteroid(int slot) const { return o + 68 + 11 * slot; }
  bool is_there(int slot) const { return asteroid(slot)[0] > 0.5f; }
  double share(int slot, int c) const { return asteroid(slot)[1 + c]; }
  double stability(int slot) const { return asteroid(slot)[7]; }
  double left(int slot) const { return 1.0 - static_cast<double>(asteroid(slot)[8]); }
  double confidence(int slot) const { return asteroid(slot)[9]; }
  bool selected(int slot) const { return asteroid(slot)[10] > 0.5f; }
  double price(int c) const { return o[244 + c]; }
  double change(int c) const { return o[250 + c]; }
};

template <class Test>
int first_slot(int count, Test test) {
  for (int i = 0; i < count; ++i)
    if (test(i)) return i;
  return -1;
}
int station_slot(const Seen& s) {
  return first_slot(kSlots, [&](int k) { return s.leads_to(k, 0); });
}
int any_slot(const Seen& s) {
  return first_slot(kSlots, [&](int k) { return s.leads(k); });
}
// Slots are actions; no slot is a hold.
int go(int slot) { return slot >= 0 ? slot : kHold; }
int go_home(const Seen& s) { return go(station_slot(s) >= 0 ? station_slot(s) : any_slot(s)); }
int go_out(const Seen& s) {
  const int cluster = first_slot(kSlots, [&](int k) { return s.leads_to(k, 1); });
  if (cluster >= 0) return cluster;
  const int other = first_slot(kSlots, [&](int k) { return s.leads(k) && !s.leads_to(k, 0); });
  return go(other >= 0 ? other : any_slot(s));
}
int first_cargo(const Seen& s, double more_than, int but = -1) {
  return first_slot(kGoods, [&](int c) { return c != but && s.cargo(c) > more_than; });
}
int sell(int commodity, int share) { return kSell + 3 * commodity + share; }

// The asteroid with the highest score, the first of equals; -1 if there is none.
template <class Score>
int best_asteroid(const Seen& s, Score score) {
  int best = -1;
  double most = 0;
  for (int slot = 0; slot < kAsteroids; ++slot) {
    if (!s.is_there(slot)) continue;
    const double here = score(slot);
    if (best < 0 || here > most) {
      best = slot;
      most = here;
    }
  }
  return best;
}
double worth(const Seen& s, int slot) {
  double sum = 0;
  for (int c = 0; c < kGoods; ++c) sum += s.price(c) * s.share(slot, c);
  return sum;
}
int richest(const Seen& s) {
  return best_asteroid(s, [&](int slot) { return worth(s, slot) * s.stability(slot) * s.left(slot); });
}

int greedy_miner(const float* obs, BotMemory&) {
  const Seen s{obs};
  if (s.at_station()) {
    if (const int c = first_cargo(s, 0.01); c >= 0) return sell(c, kAll);
    if (s.fuel() < 0.40 && s.credits() >= 210) return kLargeFuel;
    return go_out(s);
  }
  if (s.load() > 0.85 || s.heat() > 0.80 || s.hull() < 0.40 || s.fuel() < 0.15) return go_home(s);
  const int best = richest(s);
  if (best < 0) return go_out(s);
  if (!s.selected(best)) return kSelect + best;
  return s.tool() > 0.60 && s.heat() < 0.60 ? kAggressive : kStandard;
}

int cautious_scanner(const float* obs, BotMemory&) {
  const Seen s{obs};
  if (s.at_station()) {
    if (const int c = first_cargo(s, 0.01); c >= 0) return sell(c, kHalf);
    if (s.kits() < 0.30 && s.credits() >= 150) return kBuyKit;
    if (s.fuel() < 0.50 && s.credits() >= 120) return kMediumFuel;
    return go_out(s);
  }
  if (s.load() > 0.70 || s.heat() > 0.75 || s.hull() < 0.55 || s.fuel() < 0.20) return go_home(s);
  int there = 0;
  double confidence = 0;
  for (int slot = 0; slot < kAsteroids; ++slot)
    if (s.is_there(slot)) {
      ++there;
      confidence += s.confidence(slot);
    }
  if (there == 0) return go_out(s);
  if (confidence / there < 0.35) return kWideScan;
  const int best = richest(s);
  if (!s.selected(best)) return kSelect + best;
  if (s.confidence(best) < 0.60) return kDeepScan;
  if (s.stability(best) < 0.40 && s.stabilizers() > 0.10) return kStabilize;
  return s.heat() > 0.70 ? kCooldown : kMine;
}

int market_timer(const float* obs, BotMemory&) {
  constexpr int kTarget = 3;
  const Seen s{obs};
  if (s.at_station()) {
    const bool force = s.load() > 0.70 || s.time() < 0.15, rising = s.change(kTarget) > 0.01 && s.price(kTarget) > 0.50;
    if (s.cargo(kTarget) > 0.01 && (rising || force)) return sell(kTarget, kQuarter);
    if (const int c = first_cargo(s, 0.05, kTarget); force && c >= 0) return sell(c, kQuarter);
    if (s.fuel() < 0.50 && s.credits() >= 120) return kMediumFuel;
    return go_out(s);
  }
  if (s.load() > 0.12) {
    if (s.heat() > 0.65) return kCooldown;
    if (station_slot(s) >= 0) return station_slot(s);
  }
  if (s.change(kTarget) < -0.02 && s.load() > 0.25) return s.heat() > 0.60 ? kCooldown : go_home(s);
  if (s.load() > 0.85 || s.heat() > 0.80) return s.heat() > 0.70 ? kCooldown : go(station_slot(s));
  const int best = best_asteroid(s, [&](int slot) {
    return s.share(slot, kTarget) * (0.5 + 0.5 * s.confidence(slot)) * s.stability(slot) * s.left(slot);
  });
  if (best < 0) return go_out(s);
  if (!s.selected(best)) return kSelect + best;
  return s.heat() < 0.60 ? kStandard : kMine;
}

constexpr int kMostTrips = 30, kMostMined = 12;  // of an episode; ticks of mining on one of them

// Short edges only, gentle mining, home early, everything sold, and an end while the ship is sound.
int shuttle_at_station(const Seen& s, BotMemory& memory) {
  constexpr int kTicks = 4;
  memory.mined = 0;
  if (const int c = first_cargo(s, 0); c >= 0) return sell(c, kAll);
  if (s.alert() > 0.02) return kDock;
  if (s.hull() < 0.60 && s.credits() >= 300) return kOverhaul;
  if (s.fuel() < 0.50 && s.credits() >= 210) return kLargeFuel;
  int best = -1;
  double least = 0;
  for (int slot = 0; slot < kSlots; ++slot) {
    const double time = s.edge(slot)[4];
    if (!s.leads(slot) || (memory.barren >> slot & 1) != 0 || time * 8 > kTicks + 0.01) continue;
    const double cost = time + static_cast<double>(s.edge(slot)[5]) / 2 + (s.leads_to(slot, 2) ? 0.3 : 0);
    if (best < 0 || cost < least) {
      best = slot;
      least = cost;
    }
  }
  if (s.fuel() < 0.25 || s.hull() < 0.60 || memory.trips >= kMostTrips || best < 0) return kCashOut;
  ++memory.trips;
  memory.slot = best;
  return best;
}

int shuttle(const float* obs, BotMemory& memory) {
  const Seen s{obs};
  if (s.at_station()) return shuttle_at_station(s, memory);
  if (memory.mined >= kMostMined || s.hull() < 0.45 || s.fuel() < 0.18 || s.heat() > 0.70) return go_home(s);
  const int best = best_asteroid(s, [&](int slot) { return worth(s, slot) * s.left(slot); });
  if (best < 0 || !(s.left(best) > 0)) {
    memory.barren |= 1u << memory.slot;
    return go_home(s);
  }
  if (!s.selected(best)) return kSelect + best;
  ++memory.mined;
  return kMine;
}

using Rules = int (*)(const float* obs, BotMemory& memory);

class Bot final : public Script<float> {
 public:
  explicit Bot(Rules rules) : rules_(rules) {}
  std::size_t memory_bytes() const override { return sizeof(BotMemory); }
  int act(const float* row, std::byte* memory, std::uint64_t) const override {
    return rules_(row, *reinterpret_cast<BotMemory*>(memory));
  }
  void check_memory(const std::byte* memory) const override {
    const auto& own = *reinterpret_cast<const BotMemory*>(memory);
    expect_state(own.slot >= 0 && own.slot < kSlots, "the edge it took last does not exist");
    expect_state(own.trips >= 0 && own.trips <= kMostTrips && own.mined >= 0 && own.mined <= kMostMined,
                 "it made more trips, or mined longer, than is possible");
  }

 private:
  Rules rules_;
};

constexpr std::pair<std::string_view, Rules> kBots[] = {{"greedy_miner", greedy_miner},
                                                        {"cautious_scanner", cautious_scanner},
                                                        {"market_timer", market_timer},
                                                        {"shuttle", shuttle}};

}  // namespace

std::vector<std::string> bot_names() {
  std::vector<std::string> names;
  for (const auto& [name, rules] : kBots) names.emplace_back(name);
  return names;
}

std::unique_ptr<Script<float>> make_bot(const std::string& name) {
  for (const auto& [known, rules] : kBots)
    if (known == name) return std::make_unique<Bot>(rules);
  return nullptr;
}

}  // namespace gridmill::prospector
