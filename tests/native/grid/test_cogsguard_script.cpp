// The CogsGuard script: its search against a plain reference, what it remembers, and that no row can harm it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "core/random.hpp"
#include "core/snapshot.hpp"
#include "core/tokens.hpp"
#include "grid/program.hpp"
#include "grid/scripts/cogsguard.hpp"
#include "grid/scripts/cogsguard_plan.hpp"

using namespace gridmill;
using namespace gridmill::grid;
using namespace gridmill::grid::cogsguard;

namespace {

constexpr int kTokens = 200, kMiddle = 5;

struct Dice {
  explicit Dice(std::uint64_t seed) : stream({seed, 0, 0}, 0, 5) {}
  int below(int n) { return static_cast<int>(stream.below(at++, static_cast<std::uint32_t>(n))); }
  Stream stream;
  std::uint64_t at = 0;
};

Vocabulary vocabulary() {
  Vocabulary v;
  for (const char* name : {"agent:group",
                           "agent:id",
                           "collective",
                           "episode_progress",
                           "inv:aligner",
                           "inv:carbon",
                           "inv:collective:carbon",
                           "inv:collective:carbon:p1",
                           "inv:collective:germanium",
                           "inv:collective:germanium:p1",
                           "inv:collective:oxygen",
                           "inv:collective:oxygen:p1",
                           "inv:collective:silicon",
                           "inv:collective:silicon:p1",
                           "inv:energy",
                           "inv:germanium",
                           "inv:heart",
                           "inv:hp",
                           "inv:hp:p1",
                           "inv:influence",
                           "inv:miner",
                           "inv:oxygen",
                           "inv:scout",
                           "inv:scrambler",
                           "inv:silicon",
                           "inv:solar",
                           "last_action",
                           "last_reward",
                           "lp:east",
                           "lp:north",
                           "lp:south",
                           "lp:west",
                           "tag",
                           "vibe"})
    v.features.push_back({name});
  v.tags = {"collective:cogs",
            "type:agent",
            "type:c:aligner",
            "type:c:hub",
            "type:c:miner",
            "type:c:scout",
            "type:c:scrambler",
            "type:carbon_extractor",
            "type:germanium_extractor",
            "type:junction",
            "type:oxygen_extractor",
            "type:silicon_extractor",
            "type:wall"};
  for (const char* name : {"noop", "move_north", "move_south", "move_west", "move_east", "change_vibe_default"})
    v.actions.push_back({name, ActionKind::noop});
  return v;
}

Program program() {
  Program p;
  p.num_agents = 8;
  p.config.moves = 4;
  p.config.observation.local_position = true;
  p.config.resources = {"hp",     "energy",  "heart",     "influence", "solar",     "carbon",
                        "oxygen", "silicon", "germanium", "aligner",   "scrambler", "miner"};
  for (const char* name : {"c:hub", "junction", "c:aligner", "c:scrambler", "c:miner"})
    p.config.objects.emplace_back(name, ObjectType{});
  for (const std::string name : {"carbon", "oxygen", "germanium", "silicon"}) {
    p.config.objects.emplace_back(name + "_extractor", ObjectType{});
    p.config.observation.values.emplace_back().name = "inv:collective:" + name;
  }
  return p;
}

// A row of tokens as the core would write it, for a few things in view.
class TokenRow {
 public:
  TokenRow(const Vocabulary& v, int south, int east) : v_(v), bytes_(kTokens * kTokenBytes, kNoToken) {
    if (south != 0) put(kGlobalLocation, south < 0 ? "lp:north" : "lp:south", std::abs(south));
    if (east != 0) put(kGlobalLocation, east < 0 ? "lp:west" : "lp:east", std::abs(east));
    own("collective", 1).own("inv:hp", 100).own("inv:energy", 20).own("inv:solar", 3);
  }
  TokenRow& own(const char* feature, int value) { return at(0, 0, feature, value); }
  TokenRow& thing(int row, int column, const char* tag, int team = -1, const char* holds = nullptr, int amount = 0) {
    if (team >= 0) at(row, column, "collective", team);
    if (holds) at(row, column, holds, amount);
    const auto found = std::find(v_.tags.begin(), v_.tags.end(), tag);
    return at(row, column, "tag", static_cast<int>(found - v_.tags.begin()));
  }
  const std::uint8_t* data() const { return bytes_.data(); }

 private:
  TokenRow& at(int row, int column, const char* feature, int value) {
    put(static_cast<std::uint8_t>((row + kMiddle) << 4 | (column + kMiddle)), feature, value);
    return *this;
  }
  void put(std::uint8_t location, const char* feature, int value) {
    bytes_[size_] = location;
    bytes_[size_ + 1] = v_.feature(feature);
    bytes_[size_ + 2] = static_cast<std::uint8_t>(value);
    size_ += kTokenBytes;
  }
  const Vocabulary& v_;
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
};

struct Agent {
  Agent() : script(make_cogsguard_script(words, made)), bytes(script->memory_bytes() / 8) {}
  int act(const std::uint8_t* row, std::uint64_t draw = 0) {
    return script->act(row, reinterpret_cast<std::byte*>(bytes.data()), draw);
  }
  Memory& memory() { return *reinterpret_cast<Memory*>(bytes.data()); }
  Vocabulary words = vocabulary();
  Program made = program();
  std::unique_ptr<Script<std::uint8_t>> script;
  std::vector<std::uint64_t> bytes;
};

// ---- the search

struct Country {
  std::unique_ptr<Memory> memory = std::make_unique<Memory>();
  Bits agents{};
  StepCosts costs;
};

Country random_country(std::uint64_t seed) {
  Dice dice(seed);
  Country c;
  const int walls = dice.below(60);
  for (int cell = 0; cell < kCells; ++cell) {
    if (dice.below(100) < 70) c.memory->known.set(place_of(cell));
    if (dice.below(100) < walls) c.memory->blocked.set(place_of(cell));
    if (dice.below(100) < 1) c.agents.set(place_of(cell));
  }
  for (int i = dice.below(12); i > 0; --i)
    c.memory->ground.home.set_around(place_of(dice.below(kCells)), kReach, kReach);
  for (int i = dice.below(6); i > 0; --i)
    c.memory->ground.danger.set_around(place_of(dice.below(kCells)), kReach, kReach);
  c.costs = {1 + dice.below(3), 2 + dice.below(5), dice.below(3), dice.below(20)};
  return c;
}

int plain_step_cost(const Country& c, Place place) {
  int cost = c.memory->ground.home.get(place) ? c.costs.home : c.costs.away;
  if (!c.memory->known.get(place)) cost += c.costs.unknown_more;
  if (c.memory->ground.danger.get(place)) cost += c.costs.danger_more;
  return std::min(cost, kMostCost);
}

// Every cell takes the best of its neighbours until nothing changes any more; forwards and backwards in turns, for ways
// lead both ways.
std::vector<int> plain_costs(const Country& c, Place start) {
  std::vector<int> cost(kCells, -1);
  cost[static_cast<std::size_t>(start.cell())] = 0;
  for (bool changed = true, back = false; changed; back = !back) {
    changed = false;
    for (int i = 0; i < kCells; ++i) {
      const int cell = back ? kCells - 1 - i : i;
      const Place place = place_of(cell);
      if (c.memory->blocked.get(place) || c.agents.get(place)) continue;
      for (int d = 0; d < 4; ++d) {
        const int near = cost[static_cast<std::size_t>(moved(place, kDirectionRows[d], kDirectionColumns[d]).cell())];
        int& own = cost[static_cast<std::size_t>(cell)];
        const int by_it = near + plain_step_cost(c, place);
        if (near < 0 || (own >= 0 && own <= by_it)) continue;
        own = by_it;
        changed = true;
      }
    }
  }
  return cost;
}

void expect_way(const Country& c, const Search& search, Place start, int cell) {
  std::vector<std::uint8_t> way(kCells);
  const int steps = search.way(cell, way.data(), kCells);
  Place at = start;
  int cost = 0, away = 0;
  for (int i = 0; i < steps; ++i) {
    at = moved(at, kDirectionRows[way[static_cast<std::size_t>(i)]],
               kDirectionColumns[way[static_cast<std::size_t>(i)]]);
    CHECK(!c.memory->blocked.get(at) && !c.agents.get(at));
    cost += plain_step_cost(c, at);
    away += c.memory->ground.home.get(at) ? 0 : 1;
  }
  CHECK_EQ(at.cell(), cell);
  CHECK_EQ(cost, search.cost(cell));
  CHECK_EQ(std::min(away, 255), search.away(cell));
}

}  // namespace

TEST(cogsguard_search_finds_the_cheapest_ways) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Country c = random_country(seed);
    Dice dice(seed + 1000);
    const Place start = place_of(dice.below(kCells));
    const auto search = std::make_unique<Search>(*c.memory, c.agents, c.costs);
    search->begin(start);
    int settled = 0, last = 0;
    for (int cell = search->next(); cell >= 0; cell = search->next(), ++settled) {
      CHECK(search->cost(cell) >= last);
      last = search->cost(cell);
      search->expand(cell);
    }
    const std::vector<int> plain = plain_costs(c, start);
    for (int cell = 0; cell < kCells; ++cell)
      CHECK_EQ(search->reached(cell) ? search->cost(cell) : -1, plain[static_cast<std::size_t>(cell)]);
    CHECK_EQ(settled, static_cast<int>(kCells - std::count(plain.begin(), plain.end(), -1)));
    for (int i = 0; i < 50; ++i)
      if (const int cell = dice.below(kCells); search->reached(cell)) expect_way(c, *search, start, cell);
  }
}

// Cells farther than the limit are not waited for, and whatever is within it is found all the same.
TEST(cogsguard_search_within_a_limit_finds_all_that_is_near) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Country c = random_country(seed);
    Dice dice(seed + 2000);
    const Place start = place_of(dice.below(kCells));
    const int limit = dice.below(30);
    const auto whole = std::make_unique<Search>(*c.memory, c.agents, c.costs);
    const auto within = std::make_unique<Search>(*c.memory, c.agents, c.costs);
    whole->begin(start);
    within->begin(start, limit);
    for (int cell = whole->next(); cell >= 0; cell = whole->next()) whole->expand(cell);
    int settled = 0;
    for (int cell = within->next(); cell >= 0; cell = within->next()) {
      within->expand(cell);
      CHECK_EQ(within->cost(cell), whole->cost(cell));
      CHECK_EQ(within->away(cell), whole->away(cell));
      if (within->away(cell) <= limit) ++settled;
    }
    int near = 0;
    for (int cell = 0; cell < kCells; ++cell)
      if (whole->reached(cell) && whole->away(cell) <= limit) ++near;
    CHECK_EQ(settled, near);
  }
}

// ---- plans

namespace {

// Sites all over a country that is partly known.
std::unique_ptr<Memory> random_memory(Dice& dice) {
  auto memory = std::make_unique<Memory>();
  const int walls = dice.below(35), seen = 20 + dice.below(81);
  for (int cell = 0; cell < kCells; ++cell) {
    if (dice.below(100) < seen) memory->known.set(place_of(cell));
    if (dice.below(100) < walls) memory->blocked.set(place_of(cell));
  }
  memory->tick = 5000;
  for (int i = 1 + dice.below(60); i > 0; --i) {
    const Place place = place_of(dice.below(kCells));
    if (memory->find(place)) continue;
    const auto kind = static_cast<Kind>(hub + dice.below(num_kinds - hub));
    const auto seen_at = static_cast<std::uint32_t>(dice.below(5000));
    memory->sites[memory->num_sites++] = {place, kind, static_cast<Owner>(dice.below(3)), 50, 0, seen_at, 0};
    memory->blocked.set(place);
  }
  memory->ground = memory->survey();
  return memory;
}

}  // namespace

// The way so far bounds the search for the next one, and must not change what is found: the plan of an agent that has
// its way, or has just stepped beside it, is that of one which forgot it.
TEST(cogsguard_plan_is_the_same_with_and_without_the_way_so_far) {
  const Vocabulary words = vocabulary();
  const Ids ids = ids_of(words, program());
  int bounded = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed + 3000);
    const auto memory = random_memory(dice);
    Row row;
    row.hp = 20 + dice.below(300);
    row.energy = dice.below(30);
    row.solar = dice.below(4);
    row.influence = dice.below(30);
    row.id = dice.below(8);
    row.gear = dice.below(kGears);
    memory->goal = static_cast<Goal>(retreat + dice.below(patrol));
    Decision turn{ids, row, *memory, place_of(dice.below(kCells)), 0};
    memory->blocked.clear(turn.here);
    const auto gear = static_cast<Gear>(row.gear);
    if (!plan(turn, gear, Bits{})) continue;
    const int d = dice.below(5);
    if (d < 4) turn.here = moved(turn.here, kDirectionRows[d], kDirectionColumns[d]);
    const auto forgetful = std::make_unique<Memory>(*memory);
    forgetful->num_steps = 0;
    forgetful->at_step = 0;
    forgetful->expected = moved(turn.here, 9, 9);
    Decision other{ids, row, *forgetful, turn.here, 0};
    const bool found = plan(turn, gear, Bits{});
    CHECK_EQ(plan(other, gear, Bits{}), found);
    CHECK_EQ(static_cast<int>(memory->num_steps), static_cast<int>(forgetful->num_steps));
    if (!found) continue;
    CHECK(std::memcmp(memory.get(), forgetful.get(), sizeof(Memory)) == 0);
    ++bounded;
  }
  CHECK(bounded > 30);
}

TEST(cogsguard_memory_that_cannot_be_is_refused) {
  Agent agent;
  agent.act(TokenRow(agent.words, 0, 0).thing(1, 0, "type:c:hub", 1, "inv:heart", 5).data());
  const auto check_it = [&] { agent.script->check_memory(reinterpret_cast<const std::byte*>(agent.bytes.data())); };
  check_it();
  CHECK(agent.memory().ground.home.get(place_of(11, 0)) && !agent.memory().ground.home.get(place_of(12, 0)));
  agent.memory().ground.home.set(place_of(60, 60));
  CHECK_EQ(check::message_of<BadState>(check_it), std::string("its map of the areas of hub and junctions is wrong"));
}

TEST(cogsguard_areas_of_bits_wrap_around) {
  for (const Place middle : {place_of(0, 0), place_of(64, 63), place_of(127, 70), place_of(30, 127)}) {
    Bits set{}, cleared;
    std::memset(&cleared, 0xFF, sizeof cleared);
    set.set_around(middle, 7, 10);
    cleared.clear_around(middle, 7, 10);
    for (int cell = 0; cell < kCells; ++cell) {
      const Place place = place_of(cell);
      const bool inside =
          std::abs(offset(middle.row, place.row)) <= 7 && std::abs(offset(middle.column, place.column)) <= 10;
      CHECK_EQ(set.get(place), inside);
      CHECK_EQ(cleared.get(place), !inside);
    }
  }
}

// ---- memory

TEST(cogsguard_script_remembers_what_it_saw) {
  Agent agent;
  const Vocabulary& v = agent.words;
  agent.act(TokenRow(v, 0, 0)
                .thing(-2, 1, "type:junction")
                .thing(3, 3, "type:carbon_extractor", -1, "inv:carbon", 70)
                .thing(0, -4, "type:wall")
                .data());
  agent.act(TokenRow(v, 20, -30).data());
  Memory& m = agent.memory();
  CHECK_EQ(m.num_sites, 2u);
  CHECK_EQ(static_cast<int>(m.find(place_of(-2, 1))->owner), static_cast<int>(nobody));
  CHECK_EQ(static_cast<int>(m.find(place_of(3, 3))->stock), 70);
  CHECK(m.blocked.get(place_of(0, -4)) && m.known.get(place_of(0, -4)));
  CHECK(m.known.get(place_of(25, -35)) && !m.known.get(place_of(26, -35)));
  // Seen again: the junction is the clips', the extractor is used up.
  agent.act(TokenRow(v, 1, 0).thing(-3, 1, "type:junction", 0).thing(-1, -4, "type:wall").data());
  CHECK_EQ(m.num_sites, 1u);
  CHECK_EQ(static_cast<int>(m.find(place_of(-2, 1))->owner), static_cast<int>(theirs));
  CHECK(!m.find(place_of(3, 3)) && !m.blocked.get(place_of(3, 3)));
}

TEST(cogsguard_script_expects_the_compound_around_a_hub) {
  Agent agent;
  agent.act(TokenRow(agent.words, 0, 0).thing(1, 0, "type:c:hub", 1, "inv:heart", 5).data());
  CHECK(agent.memory().find(place_of(9, 8)) != nullptr);  // an extractor in the corner, out of view
  CHECK(!agent.memory().find(place_of(5, 1)));            // the miner's station would be in view, and is not
}

TEST(cogsguard_script_does_not_trust_the_far_end_of_a_full_row) {
  Agent agent;
  std::vector<std::uint8_t> row(kTokens * kTokenBytes, agent.words.feature("vibe"));
  for (int t = 0; t < kTokens; ++t) row[static_cast<std::size_t>(t) * kTokenBytes] = kMiddle << 4 | (kMiddle + 3);
  agent.act(row.data());
  CHECK(agent.memory().known.get(place_of(2, 0)));
  CHECK(!agent.memory().known.get(place_of(3, 0)) && !agent.memory().known.get(place_of(-5, 5)));
}

// ---- any row

namespace {

void survive(int rounds) {
  Agent one, two;
  const int actions = static_cast<int>(one.words.actions.size());
  Dice dice(3);
  std::vector<std::uint8_t> row(kTokens * kTokenBytes);
  for (int round = 0; round < rounds; ++round) {
    const int names = static_cast<int>(one.words.features.size()), kind = dice.below(3);
    const int filled = dice.below(kTokens + 1);
    std::fill(row.begin(), row.end(), kNoToken);
    for (int t = 0; t < filled; ++t) {
      std::uint8_t* token = row.data() + static_cast<std::size_t>(t) * kTokenBytes;
      const int location = dice.below(4) == 0 ? kGlobalLocation : dice.below(11) << 4 | dice.below(11);
      token[0] = static_cast<std::uint8_t>(kind == 0 ? dice.below(256) : location);
      token[1] = static_cast<std::uint8_t>(kind == 0 ? dice.below(256) : dice.below(names));
      token[2] = static_cast<std::uint8_t>(kind == 2 ? dice.below(14) : dice.below(256));
    }
    const std::uint64_t draw = dice.stream.at(dice.at++);
    const int action = one.act(row.data(), draw);
    CHECK(action >= 0 && action < actions);
    CHECK_EQ(two.act(row.data(), draw), action);
  }
  CHECK(one.bytes == two.bytes);
  CHECK(one.memory().num_sites <= static_cast<std::uint32_t>(kMostSites));
}

}  // namespace

TEST(cogsguard_script_survives_any_row_and_repeats_itself) { survive(500); }

TEST(long_cogsguard_script_survives_any_row_and_repeats_itself) { survive(20'000); }
