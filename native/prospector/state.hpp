// The state of one ship and its belt: plain numbers in one block, and what a compiled game knows besides. Asteroids and
// edges of a node are worked out when the ship first comes there: the generator jumps over their draws at the start of
// the episode and remembers where they begin. An unseen Field is all zero, so equal histories are equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/value.hpp"
#include "prospector/config.hpp"
#include "prospector/kernels.hpp"
#include "prospector/random.hpp"

namespace gridmill::prospector {

enum NodeType : std::uint8_t { kStation, kCluster, kHazard };

constexpr int kEdgeBlock = 7, kAsteroidBlock = 11;  // numbers of an observation per edge and per asteroid
// Offsets inside an asteroid's block.
constexpr int kShownShares = 1, kShownStability = 7, kShownDepletion = 8, kShownConfidence = 9, kShownSelected = 10;

// A node seen from close. `shown` and `edges` are blocks of the observation; estimated stability, depletion and scan
// confidence live only there.
struct alignas(64) Field {
  float truth[kGoods][kAsteroids], estimate[kGoods][kAsteroids];  // composition
  float richness[kAsteroids], stability[kAsteroids], noise[kAsteroids];
  float shown[kAsteroids][kAsteroidBlock];
  float edges[kSlots][kEdgeBlock];
};

// Filled slots come first; `to` is -1 in the others.
struct Edges {
  std::int8_t to[kSlots];
  std::uint8_t time[kSlots];
  float fuel[kSlots], threat[kSlots];
};

// What the reward compares the end of a step with.
struct Before {
  double credits, fuel, hull, tool, lost, value;
};

struct State {
  // Outlive an episode.
  Pcg32 rng;
  std::int32_t action, dt;  // of the last step
  std::uint8_t invalid;

  std::uint8_t terminated, truncated, lost;
  std::int32_t num_fields;  // how many are filled
  double fuel, hull, heat, tool, alert, time_remaining, credits, total_spend, value_lost, util_sum, util_count;
  double cargo_value, cargo_total;  // at the end of the last step
  double reward, reward_sum;
  Before before;
  std::int32_t node_count, node, selected, escape_buff, repair_kits, stabilizers, decoys;
  std::int32_t ticks, overheat_ticks, pirate_encounters, scan_count, mining_ticks;
  std::uint16_t stabilize_buff[kAsteroids];  // by slot, whatever the node
  float credits_shown;
  float cargo[8], price[8], prev_price[8], amp[8], period[8], phase[8], stock[8], sales[8];  // six, and two unused
  float hazard[kNodes], pirates[kNodes];
  std::uint8_t type[kNodes], num_edges[kNodes], num_asteroids[kNodes], hops[kNodes];
  std::uint8_t place[kNodes];          // 1 + index of a node's Field; 0: not seen yet
  std::uint64_t asteroids_at[kNodes];  // state of the generator before a node's asteroids
  Edges edges[kNodes];
  Field fields[kNodes];  // in the order the ship saw them: a world uses few, and the same memory in each episode

  bool at_station() const { return node == 0; }
  Field& here() { return fields[place[node] - 1]; }
  const Field& here() const { return fields[place[node] - 1]; }
  bool can_mine(int slot) const {
    return slot >= 0 && slot < num_asteroids[node] && here().shown[slot][kShownDepletion] < 1.0f;
  }
};

struct Program {
  explicit Program(const Config& config, const Kernels& kernels = kernels_for(isa()));
  Config config;
  const Kernels* kernels;
  double base[8], low[8], high[8], noise[8];  // six, and two that are 1; noise is market_noise * base
  double edge_fuel_high, log_credits_cap;
  float stock_kept;
  float sales_kept[kMaxDt + 1];  // by the length of a step
  double root_dt[kMaxDt + 1];
};

Program compile(const Value& config);

inline double clamped(double x, double low, double high) {
  const double raised = x < low ? low : x;
  return raised > high ? high : raised;
}
inline double not_negative(double x) { return x < 0 ? 0 : x; }
// float32, left to right.
inline float sum_of(const float* six) { return ((((six[0] + six[1]) + six[2]) + six[3]) + six[4]) + six[5]; }
inline double value_of(const State& s) {
  double total = 0;
  for (int c = 0; c < kGoods; ++c) total += static_cast<double>(s.cargo[c]) * static_cast<double>(s.price[c]);
  return total;
}
// What the station asks for.
struct FuelOffer {
  double cost, fuel;
};
constexpr FuelOffer kFuelOffers[3] = {{60, 120}, {120, 260}, {210, 480}};
constexpr double kKitCost = 150, kStabilizerCost = 175, kDecoyCost = 110, kOverhaulCost = 280;
constexpr double kSellShares[3] = {0.25, 0.50, 1.00};
inline bool can_pay(const State& s, double cost) { return s.at_station() && s.credits >= cost; }

// The float32 a double within `error` of the exact one rounds to, if that is certain.
inline bool rounds_surely(double x, double error, float& out) {
  out = static_cast<float>(x);
  return static_cast<float>(x - error) == static_cast<float>(x + error);
}

// worldgen.cpp
void start_world(const Program& program, State& state);  // a new belt from the stream; all but the stream is cleared
void arrive(const Program& program, State& state, int node);  // the ship is there now
// actions.cpp
void act(const Program& program, State& state, std::int64_t action);
void pirate_check(const Program& program, State& state, double intensity);
// step.cpp: the rest of a step, in this order
void drift(const Program& program, State& state);
void update_market(const Program& program, State& state);
void settle(const Program& program, State& state, std::int64_t tick_limit);
double step_part(const Program& program, const State& state, std::size_t part);  // of kStepParts, of the last step
constexpr const char* kStepParts[] = {"credits", "spent",    "extracted", "stolen",      "fuel",
                                      "wear",    "damage",   "heat",      "ticks",       "scan",
                                      "invalid", "stranded", "destroyed", "brought_home"};
// observe.cpp
void show_asteroid(Field& field, int slot);
void show_edges(const Program& program, const State& state, int node, Field& field);
void observe(const Program& program, const State& state, float* obs);
void write_mask(const Program& program, const State& state, std::uint8_t* mask);

}  // namespace gridmill::prospector
