// Prospector: names of actions, and a world as a tree of numbers. Python has the names of the actions too
// (src/gridmill/prospector/actions.py); tests/viewer/test_engine.py holds the two equal.
#include "wasm/show.hpp"

namespace gridmill::wasm {

using prospector::ProspectorBatch;
using prospector::State;

namespace {

constexpr const char* kGoodNames[prospector::kGoods] = {"iron", "nickel",        "water_ice",
                                                        "pge",  "rare_isotopes", "volatiles"};

template <class T>
Value by_good(const T* six) {
  Value::Dict out;
  for (int i = 0; i < prospector::kGoods; ++i) out.push_back({kGoodNames[i], number(six[i])});
  return {std::move(out)};
}

// What has been seen of an asteroid from close, and what it really is.
Value asteroid(const State& state, const prospector::Field& field, int slot) {
  float truth[prospector::kGoods], estimate[prospector::kGoods];
  for (int good = 0; good < prospector::kGoods; ++good) {
    truth[good] = field.truth[good][slot];
    estimate[good] = field.estimate[good][slot];
  }
  const float* shown = field.shown[slot];
  return {Value::Dict{{"richness", number(field.richness[slot])},
                      {"stability", number(field.stability[slot])},
                      {"noise", number(field.noise[slot])},
                      {"composition", by_good(truth)},
                      {"estimate", by_good(estimate)},
                      {"depletion", number(shown[prospector::kShownDepletion])},
                      {"confidence", number(shown[prospector::kShownConfidence])},
                      {"stabilized", number(state.stabilize_buff[slot])}}};
}

Value sector(const State& state, int node) {
  constexpr const char* kTypes[] = {"station", "cluster", "hazard"};
  const bool seen = state.place[node] != 0;
  Value::List asteroids;
  if (seen)
    for (int slot = 0; slot < state.num_asteroids[node]; ++slot)
      asteroids.push_back(asteroid(state, state.fields[state.place[node] - 1], slot));
  return {Value::Dict{{"id", number(node)},
                      {"type", {std::string(kTypes[std::min<int>(state.type[node], 2)])}},
                      {"hazard", number(state.hazard[node])},
                      {"pirates", number(state.pirates[node])},
                      {"hops", number(state.hops[node])},
                      {"seen", {seen}},
                      {"numAsteroids", number(state.num_asteroids[node])},
                      {"asteroids", {std::move(asteroids)}}}};
}

void add_links(const State& state, int node, Value::List& links) {
  const prospector::Edges& edges = state.edges[node];
  for (int slot = 0; slot < prospector::kSlots && edges.to[slot] >= 0; ++slot)
    links.push_back({Value::Dict{{"from", number(node)},
                                 {"slot", number(slot)},
                                 {"to", number(edges.to[slot])},
                                 {"time", number(edges.time[slot])},
                                 {"fuel", number(edges.fuel[slot])},
                                 {"threat", number(edges.threat[slot])}}});
}

Value ship(const State& s) {
  return {Value::Dict{{"sector", number(s.node)},
                      {"selected", number(s.selected)},
                      {"fuel", number(s.fuel)},
                      {"hull", number(s.hull)},
                      {"heat", number(s.heat)},
                      {"tool", number(s.tool)},
                      {"alert", number(s.alert)},
                      {"credits", number(s.credits)},
                      {"totalSpend", number(s.total_spend)},
                      {"valueLost", number(s.value_lost)},
                      {"cargoValue", number(s.cargo_value)},
                      {"cargoTotal", number(s.cargo_total)},
                      {"escapeBuff", number(s.escape_buff)},
                      {"repairKits", number(s.repair_kits)},
                      {"stabilizers", number(s.stabilizers)},
                      {"decoys", number(s.decoys)},
                      {"timeRemaining", number(s.time_remaining)},
                      {"ticks", number(s.ticks)},
                      {"overheatTicks", number(s.overheat_ticks)},
                      {"pirateEncounters", number(s.pirate_encounters)},
                      {"scanCount", number(s.scan_count)},
                      {"miningTicks", number(s.mining_ticks)}}};
}

// Wherever the bytes of a state come from, nothing is read outside of it.
int nodes_of(const State& s) { return std::clamp(s.node_count, 0, prospector::kNodes); }

}  // namespace

std::vector<std::string> action_names(const ProspectorBatch&) {
  std::vector<std::string> names;
  for (int slot = 0; slot < prospector::kSlots; ++slot) names.push_back("travel_" + std::to_string(slot));
  for (const char* name : {"hold", "emergency_burn", "wide_scan", "focused_scan", "deep_scan", "threat_listen"})
    names.emplace_back(name);
  for (int slot = 0; slot < prospector::kAsteroids; ++slot) names.push_back("select_" + std::to_string(slot));
  for (const char* name : {"mine_conservative", "mine_standard", "mine_aggressive", "stabilize", "refine",
                           "active_cooldown", "tool_maintenance", "hull_patch"})
    names.emplace_back(name);
  for (const char* good : kGoodNames) names.push_back(std::string("jettison_") + good);
  names.emplace_back("dock");
  for (const char* good : kGoodNames)
    for (const char* share : {"25", "50", "100"}) names.push_back(std::string("sell_") + good + "_" + share);
  for (const char* name : {"buy_fuel_small", "buy_fuel_medium", "buy_fuel_large", "buy_repair_kit", "buy_stabilizer",
                           "buy_decoy", "overhaul", "cash_out"})
    names.emplace_back(name);
  return names;
}

void describe(const ProspectorBatch& batch, Value::Dict& info) {
  const prospector::Program& program = batch.worlds().program(0);
  Value::List goods;
  for (const char* name : kGoodNames) goods.push_back({std::string(name)});
  info.push_back({"goods", {std::move(goods)}});
  info.push_back({"timeMax", number(program.config.time_max)});
  info.push_back({"basePrice", by_good(program.base)});
  info.push_back({"lowPrice", by_good(program.low)});
  info.push_back({"highPrice", by_good(program.high)});
}

void inspect(ProspectorBatch& batch, Value::Dict& out) {
  batch.look(0, [&](auto& tick) {
    const State& s = prospector::Prospector::state(tick);
    Value::List sectors, links;
    for (int node = 0; node < nodes_of(s); ++node) {
      sectors.push_back(sector(s, node));
      add_links(s, node, links);
    }
    out.push_back({"ship", ship(s)});
    out.push_back({"cargo", by_good(s.cargo)});
    out.push_back({"market",
                   {Value::Dict{{"price", by_good(s.price)},
                                {"previous", by_good(s.prev_price)},
                                {"stock", by_good(s.stock)},
                                {"sales", by_good(s.sales)}}}});
    out.push_back({"sectors", {std::move(sectors)}});
    out.push_back({"links", {std::move(links)}});
    out.push_back({"lastStep",
                   {Value::Dict{{"action", number(s.action)},
                                {"ticks", number(s.dt)},
                                {"invalid", {s.invalid != 0}},
                                {"reward", number(s.reward)}}}});
  });
}

}  // namespace gridmill::wasm
