// What must hold of a ship and its belt so that every step of it is safe: asked once, of bytes that come from outside.
// Indices and counts are those of this belt, numbers are finite and no larger than the game can make them.
#include <algorithm>
#include <cmath>
#include <string>

#include "prospector/prospector.hpp"

namespace gridmill::prospector {
namespace {

constexpr double kLargest = 1e18;  // more than any sum of credits, rewards or ticks comes to
constexpr double kSlack = 1e-3;    // of bounds that float32 may round beyond

[[noreturn]] void reject(const std::string& what, std::int64_t got) {
  throw BadState(what + ", got " + std::to_string(got));
}
void expect_from(std::int64_t got, std::int64_t low, std::int64_t high, const char* what) {
  if (got < low || got > high)
    reject(std::string(what) + ": expected " + std::to_string(low) + " to " + std::to_string(high), got);
}
void expect_one(double got, double low, double high, const char* what) { expect_within(&got, 1, low, high, what); }

void check_graph(const Program& p, const State& s) {
  expect_from(s.node_count, 1, kNodes, "nodes");
  expect_from(s.node, 0, s.node_count - 1, "the ship's node");
  for (int n = 0; n < kNodes; ++n) {
    const std::int64_t least = n == 0 ? kStation : kCluster;
    expect_from(s.type[n], least, n == 0 ? kStation : kHazard, "type of a node");
    expect_from(s.num_edges[n], 0, n < s.node_count ? kSlots : 0, "edges of a node");
    expect_from(s.num_asteroids[n], 0, n > 0 && n < s.node_count ? kAsteroids : 0, "asteroids of a node");
    expect_from(s.hops[n], 0, kNodes - 1, "hops to a node");
    const Edges& e = s.edges[n];
    for (int slot = 0; slot < kSlots; ++slot) {
      const bool there = slot < s.num_edges[n];
      expect_from(e.to[slot], there ? 0 : -1, there ? s.node_count - 1 : -1, "end of an edge");
      expect_from(e.time[slot], 1, p.config.travel_time_max, "ticks of an edge");
    }
    expect_within(e.fuel, kSlots, 0, p.config.travel_fuel_cost_max + 20, "fuel of an edge");
    expect_within(e.threat, kSlots, 0, 1, "threat of an edge");
  }
  expect_within(s.hazard, kNodes, 0, 1, "hazard of a node");
  expect_within(s.pirates, kNodes, 0, 1, "pirates of a node");
}

// Every node that was seen has one of the filled fields, each field one node; the others are empty, as a node that is
// seen for the first time expects it.
void check_fields(const State& s) {
  expect_from(s.num_fields, 1, s.node_count, "fields");
  std::uint64_t taken = 0;
  for (int n = 0; n < kNodes; ++n) {
    expect_from(s.place[n], 0, n < s.node_count ? s.num_fields : 0, "field of a node");
    if (s.place[n] == 0) continue;
    expect_state((taken >> s.place[n] & 1) == 0, "two nodes share a field");
    taken |= std::uint64_t{1} << s.place[n];
  }
  expect_state(taken == (std::uint64_t{2} << s.num_fields) - 2, "a field belongs to no node");
  expect_state(s.place[s.node] != 0, "the ship is at a node that it has never seen");
  for (int i = 0; i < s.num_fields; ++i) {
    const Field& f = s.fields[i];
    constexpr std::size_t kShares = std::size_t{kGoods} * kAsteroids;
    expect_within(f.truth[0], kShares, 0, 1 + kSlack, "share of an asteroid");
    expect_within(f.estimate[0], kShares, 0, 1 + kSlack, "estimated share of an asteroid");
    expect_within(f.richness, kAsteroids, 0, 4 + kSlack, "richness of an asteroid");
    expect_within(f.stability, kAsteroids, 0, 1 + kSlack, "stability of an asteroid");
    expect_within(f.noise, kAsteroids, 0, 1, "noise of an asteroid");
    expect_within(f.shown[0], std::size_t{kAsteroids} * kAsteroidBlock, 0, 1 + kSlack, "shown asteroid");
    expect_within(f.edges[0], std::size_t{kSlots} * kEdgeBlock, 0, 1, "shown edge");
  }
  const auto* rest = reinterpret_cast<const unsigned char*>(s.fields + s.num_fields);
  expect_state(std::all_of(rest, reinterpret_cast<const unsigned char*>(s.fields + kNodes),
                           [](unsigned char byte) { return byte == 0; }),
               "a field that was never seen is not empty");
}

// Its clock is counted twice, up and down.
void check_clock(const Program& p, const State& s) {
  const auto longest = static_cast<std::int64_t>(std::ceil(p.config.time_max));
  expect_from(s.ticks, 0, longest, "ticks");
  expect_one(s.time_remaining, 0, p.config.time_max, "time remaining");
  expect_state(std::abs(p.config.time_max - s.ticks - s.time_remaining) < 0.5,
               "time remaining does not match its ticks");
  expect_from(s.dt, 0, kMaxDt, "ticks of the last step");
  expect_from(s.action, -1, kActions - 1, "the last action");
  expect_state(s.invalid <= 1, "invalid is neither 0 nor 1");
  expect_state(s.terminated == 0 && s.truncated == 0 && s.lost == 0, "its episode has ended");
  expect_from(s.overheat_ticks, 0, s.ticks, "ticks of overheating");
  expect_from(s.scan_count, 0, s.ticks, "scans");
  expect_from(s.mining_ticks, 0, s.ticks, "ticks of mining");
  expect_from(s.pirate_encounters, 0, 2 * std::int64_t{s.ticks}, "encounters with pirates");
}

void check_ship(const Program& p, const State& s) {
  const Config& c = p.config;
  expect_from(s.selected, -1, s.num_asteroids[s.node] - 1, "the selected asteroid");
  expect_from(s.escape_buff, 0, c.escape_buff_ticks, "ticks of escape");
  for (const std::uint16_t ticks : s.stabilize_buff)
    expect_from(ticks, 0, c.stabilize_buff_ticks, "ticks of a stabilizer");
  expect_from(s.repair_kits, 0, std::max(c.repair_kits_cap, 3), "repair kits");
  expect_from(s.stabilizers, 0, std::max(c.stabilizers_cap, 2), "stabilizers");
  expect_from(s.decoys, 0, std::max(c.decoys_cap, 1), "decoys");
  expect_one(s.fuel, 0, 1000, "fuel");
  for (const double share : {s.hull, s.heat, s.tool, s.alert}) expect_one(share, 0, 100, "hull, heat, tool or alert");
  expect_one(s.cargo_total, 0, 200 + kSlack, "cargo");
  const Before& b = s.before;
  for (const double x : {s.credits, s.total_spend, s.value_lost, s.util_sum, s.util_count, s.cargo_value, s.reward,
                         s.reward_sum, b.credits, b.fuel, b.hull, b.tool, b.lost, b.value})
    expect_one(x, -kLargest, kLargest, "a sum");
  expect_one(static_cast<double>(s.credits_shown), 0, 1, "shown credits");
}

void check_market(const Program& p, const State& s) {
  constexpr std::size_t kLanes = 8;
  expect_within(s.cargo, kLanes, 0, 200 + kSlack, "cargo");
  for (const auto* prices : {s.price, s.prev_price}) expect_within(prices, kLanes, 0, 10000 + kSlack, "a price");
  for (int c = 0; c < kGoods; ++c) {
    expect_within(s.period + c, 1, 180, 380, "period of a price");
    expect_within(s.amp + c, 1, 0, p.base[c], "amplitude of a price");
  }
  expect_within(s.period + kGoods, kLanes - kGoods, 1, 1, "period of an unused price");
  expect_within(s.amp + kGoods, kLanes - kGoods, 0, 0, "amplitude of an unused price");
  expect_within(s.phase, kLanes, 0, kTwoPi + kSlack, "phase of a price");
  expect_within(s.stock, kLanes, 0, kLargest, "stock");
  expect_within(s.sales, kLanes, 0, kLargest, "sales");
}

}  // namespace

void Prospector::check_state(const Program& p, const WorldHeader&, std::byte* state, const Rows<Obs>&) {
  const State& s = *reinterpret_cast<const State*>(state);
  check_graph(p, s);
  check_fields(s);
  check_clock(p, s);
  check_ship(p, s);
  check_market(p, s);
}

}  // namespace gridmill::prospector
