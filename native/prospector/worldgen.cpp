// A new belt: nodes, edges and market in the order of their draws; asteroids when the ship comes near.
#include <cmath>
#include <cstring>

#include "prospector/state.hpp"

namespace gridmill::prospector {
namespace {

constexpr unsigned kDrawsPerAsteroid = 20;

// Edges wait here until their threats are worked out together.
struct Drawn {
  std::uint8_t u, v, slot_u, slot_v;
  float mean;  // of the threat
};
struct EdgeList {
  Drawn edge[kNodes * kSlots / 2];
  std::uint32_t first[kNodes * kSlots / 2], second[kNodes * kSlots / 2];
  std::size_t count = 0;
  std::uint32_t adjacent[kNodes] = {};
};

void draw_nodes(State& s) {
  s.node_count = s.rng.below(8, 33);
  std::memset(s.type, kCluster, sizeof s.type);
  s.type[0] = kStation;
  for (int n = 1; n < s.node_count; ++n) {
    const bool is_hazard = s.rng.uniform() < 0.25;
    s.hazard[n] = static_cast<float>(s.rng.uniform(0.05, 0.35));
    s.pirates[n] = static_cast<float>(s.rng.uniform(0.05, 0.30));
    if (!is_hazard) continue;
    s.type[n] = kHazard;
    s.hazard[n] = static_cast<float>(clamped(static_cast<double>(s.hazard[n]) + 0.25, 0, 1));
    s.pirates[n] = static_cast<float>(clamped(static_cast<double>(s.pirates[n]) + 0.12, 0, 1));
  }
}

void add_edge(const Program& p, State& s, EdgeList& list, int u, int v) {
  if ((list.adjacent[u] >> v & 1) != 0 || s.num_edges[u] == kSlots || s.num_edges[v] == kSlots) return;
  const auto time = static_cast<std::uint8_t>(s.rng.below(1, p.config.travel_time_max + 1));
  const auto fuel = static_cast<float>(s.rng.uniform(20.0, p.edge_fuel_high));
  const int ends[2] = {u, v};
  std::uint8_t slots[2];
  for (int i = 0; i < 2; ++i) {
    Edges& e = s.edges[ends[i]];
    slots[i] = s.num_edges[ends[i]]++;
    e.to[slots[i]] = static_cast<std::int8_t>(ends[1 - i]);
    e.time[slots[i]] = time;
    e.fuel[slots[i]] = fuel;
    list.adjacent[ends[i]] |= 1u << ends[1 - i];
  }
  const float hazard = 0.5f * (s.hazard[u] + s.hazard[v]), pirates = 0.5f * (s.pirates[u] + s.pirates[v]);
  list.edge[list.count] = {static_cast<std::uint8_t>(u), static_cast<std::uint8_t>(v), slots[0], slots[1],
                           hazard + pirates};
  list.first[list.count] = s.rng.next();
  list.second[list.count] = s.rng.next();
  ++list.count;
}

void set_threats(const Program& p, State& s, EdgeList& list) {
  double z[kNodes * kSlots / 2];
  const std::size_t padded = (list.count + 7) / 8 * 8;  // at most 96, which is a multiple of 8
  for (std::size_t i = list.count; i < padded; ++i) list.first[i] = list.second[i] = 0;
  p.kernels->normals(list.first, list.second, z, padded);
  for (std::size_t i = 0; i < list.count; ++i) {
    float noise;
    if (!rounds_surely(0.0 + 0.05 * z[i], 0.05 * kNormalError, noise))
      noise = static_cast<float>(0.0 + 0.05 * standard_normal(list.first[i], list.second[i]));
    const Drawn& e = list.edge[i];
    const float threat = e.mean + noise, kept = threat < 0.0f ? 0.0f : threat > 1.0f ? 1.0f : threat;
    s.edges[e.u].threat[e.slot_u] = s.edges[e.v].threat[e.slot_v] = kept;
  }
}

// Breadth first from the station; 31 where there is no way.
void measure_hops(State& s, const EdgeList& list) {
  std::memset(s.hops, kNodes - 1, sizeof s.hops);
  std::uint32_t reached = 1, frontier = 1;
  for (std::uint8_t hops = 0; frontier != 0; ++hops) {
    std::uint32_t next = 0;
    for (std::uint32_t rest = frontier; rest != 0; rest &= rest - 1) {
      const int node = __builtin_ctz(rest);
      s.hops[node] = hops;
      next |= list.adjacent[node];
    }
    frontier = next & ~reached;
    reached |= next;
  }
}

void skip_asteroids(State& s) {
  static constexpr Jump kSkip[17] = {jump(0),   jump(20),  jump(40),  jump(60),  jump(80),  jump(100),
                                     jump(120), jump(140), jump(160), jump(180), jump(200), jump(220),
                                     jump(240), jump(260), jump(280), jump(300), jump(320)};
  for (int n = 1; n < s.node_count; ++n) {
    s.num_asteroids[n] = static_cast<std::uint8_t>(s.rng.below(5, 17));
    s.asteroids_at[n] = s.rng.state;
    s.rng.state = kSkip[s.num_asteroids[n]](s.rng.state);
  }
}

void open_market(const Program& p, State& s) {
  for (int c = 0; c < kGoods; ++c) {
    s.stock[c] = static_cast<float>(s.rng.uniform(20.0, 120.0));
    s.phase[c] = static_cast<float>(s.rng.uniform(0.0, kTwoPi));
    s.period[c] = static_cast<float>(s.rng.uniform(180.0, 380.0));
    s.amp[c] = static_cast<float>(p.base[c] * s.rng.uniform(0.10, 0.30));
    const double cycle = static_cast<double>(s.amp[c]) * std::sin(static_cast<double>(s.phase[c]));
    s.price[c] = s.prev_price[c] = static_cast<float>(clamped(p.base[c] + cycle, p.low[c], p.high[c]));
  }
  for (int c = kGoods; c < 8; ++c) s.period[c] = 1;  // the unused lanes divide by it
}

// One asteroid from its own twenty draws, with the C library.
void exact_asteroid(Field& f, int slot, std::uint64_t rng) {
  Pcg32 draw{rng};
  const auto shares = [&](float (&out)[kGoods][kAsteroids]) {
    double part[kGoods], total = 0;
    for (double& x : part) {
      x = draw.exponential();
      total += x;
    }
    for (int c = 0; c < kGoods; ++c) out[c][slot] = static_cast<float>(part[c] / total);
  };
  shares(f.truth);
  f.richness[slot] = static_cast<float>(clamped(std::exp(draw.normal(-0.2, 0.65)), 0.2, 4.0));
  double a = 0, b = 0;
  for (int i = 0; i < 3; ++i) a += draw.exponential();
  for (int i = 0; i < 2; ++i) b += draw.exponential();
  f.stability[slot] = static_cast<float>(a / (a + b));
  f.noise[slot] = static_cast<float>(draw.uniform(0.04, 0.22));
  shares(f.estimate);
}

void survey(const Program& p, State& s, int node) {
  Field& f = s.fields[s.num_fields++];
  const int count = s.num_asteroids[node];
  s.place[node] = static_cast<std::uint8_t>(s.num_fields);
  show_edges(p, s, node, f);
  if (count == 0) return;
  std::uint32_t unsure =
      p.kernels->asteroids(s.asteroids_at[node], {f.truth, f.estimate, f.richness, f.stability, f.noise});
  for (unsure &= (1u << count) - 1; unsure != 0; unsure &= unsure - 1) {
    const auto slot = static_cast<unsigned>(__builtin_ctz(unsure));
    exact_asteroid(f, static_cast<int>(slot), jump(kDrawsPerAsteroid * slot)(s.asteroids_at[node]));
  }
  for (int slot = count; slot < kAsteroids; ++slot) {
    for (int c = 0; c < kGoods; ++c) f.truth[c][slot] = f.estimate[c][slot] = 0;
    f.richness[slot] = f.stability[slot] = f.noise[slot] = 0;
  }
  for (int slot = 0; slot < count; ++slot) {
    f.shown[slot][0] = 1;
    f.shown[slot][kShownStability] = 0.5f;
    f.shown[slot][kShownConfidence] = 0.10f;
    show_asteroid(f, slot);
  }
}

}  // namespace

void start_world(const Program& p, State& s) {
  const Pcg32 rng = s.rng;
  const std::int32_t action = s.action, dt = s.dt;
  const std::uint8_t invalid = s.invalid;
  std::memset(static_cast<void*>(s.fields), 0, static_cast<std::size_t>(s.num_fields) * sizeof(Field));
  std::memset(static_cast<void*>(&s), 0, offsetof(State, fields));
  s.rng = rng;
  s.action = action;
  s.dt = dt;
  s.invalid = invalid;

  s.fuel = 1000;
  s.hull = 100;
  s.tool = 100;
  s.time_remaining = p.config.time_max;
  s.repair_kits = 3;
  s.stabilizers = 2;
  s.decoys = 1;
  s.selected = -1;
  for (Edges& e : s.edges) {
    std::memset(e.to, -1, sizeof e.to);
    std::memset(e.time, 1, sizeof e.time);
  }
  draw_nodes(s);
  EdgeList list;
  for (int n = 1; n < s.node_count; ++n) add_edge(p, s, list, n, s.rng.below(0, n));
  for (int i = 0; i < s.node_count; ++i) {
    const int u = s.rng.below(0, s.node_count), v = s.rng.below(0, s.node_count);
    if (u != v) add_edge(p, s, list, u, v);
  }
  set_threats(p, s, list);
  measure_hops(s, list);
  skip_asteroids(s);
  open_market(p, s);
  arrive(p, s, 0);
}

void arrive(const Program& p, State& s, int node) {
  s.node = node;
  s.selected = -1;
  if (s.place[node] == 0) survey(p, s, node);
}

}  // namespace gridmill::prospector
