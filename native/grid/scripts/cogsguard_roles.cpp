// Who does what: the gear an agent should wear, and what it does next with what it has.
#include <algorithm>

#include "grid/scripts/cogsguard_plan.hpp"

namespace gridmill::grid::cogsguard {
namespace {

// By the agent's number, which its own cell shows: half mine, the others fight.
constexpr Gear kRoles[] = {aligner, miner, miner, aligner, scrambler, miner, aligner, miner};
constexpr Gear kConverted[] = {aligner, scrambler, aligner, aligner, scrambler, aligner, aligner, scrambler};
constexpr int kFull = 40, kByHand = 4, kHeartCost = 10;
constexpr int kNearHub = 15;                  // a junction of the clips this near acts on most of the compound
constexpr std::uint32_t kScrambleFrom = 800;  // until then every heart is worth more in a neutral junction
constexpr std::uint32_t kOpening = 60;        // ticks in which the hub's first hearts are shared
constexpr int kFirstHearts = 2, kFewHearts = 6, kMostHearts = 10;
constexpr int kRich = 250, kRicher = 50, kPoor = 10;  // of the scarcest element: when miners fight, and mine again

// Carbon, oxygen, germanium, silicon.
constexpr int kGearCosts[kGears][kElements] = {{3, 1, 1, 1}, {1, 3, 1, 1}, {1, 1, 3, 1}, {1, 1, 1, 3}};

bool affordable(const Row& row, Gear gear) {
  for (std::size_t e = 0; e < kElements; ++e)
    if (row.store[e] < kGearCosts[gear][e]) return false;
  return row.hp > 0;
}

int hearts_to_have(const Decision& turn) {
  const Site* place = turn.memory.nearest(hub, turn.here);
  return turn.poorest / kHeartCost + (place ? place->stock : 0);
}

// Whether hp lasts only just until the agent stands where its team heals. Ways are about half as long again as they
// would be without walls.
bool must_retreat(const Decision& turn) {
  const Memory& m = turn.memory;
  if (m.ground.home.get(turn.here)) return false;
  int nearest = kSide, enemies = 0;
  for (std::uint32_t i = 0; i < m.num_sites; ++i) {
    const Site& site = m.sites[i];
    if (site.kind != junction && site.kind != hub) continue;
    const int far = chebyshev(turn.here, site.place);
    if (site.owner == ours) nearest = std::min(nearest, far - kReach);
    if (site.owner == theirs && far <= kReach) ++enemies;
  }
  if (nearest == kSide) return turn.row.hp < 2 * kSafety;
  const int steps = nearest + nearest / 2;
  const int late = std::max(0, steps * kStepEnergy - turn.row.energy) / std::max(1, turn.row.solar);
  return turn.row.hp <= std::max(steps, late) * (1 + enemies) + kSafety;
}

// The clips act on the compound, where aligners cannot get influence then.
bool threatened(const Decision& turn) {
  const Memory& m = turn.memory;
  const Site* home = m.nearest(hub, turn.here);
  for (std::uint32_t i = 0; i < m.num_sites; ++i) {
    const Site& site = m.sites[i];
    if (home && site.owner == theirs && site.kind == junction && chebyshev(site.place, home->place) <= kNearHub)
      return true;
  }
  return false;
}

int hearts_wanted(const Decision& turn) {
  if (turn.memory.tick < kOpening) return kFirstHearts;
  return std::clamp(turn.poorest / kHeartCost, kFewHearts, kMostHearts);
}

Goal fight(const Decision& turn, Goal use) {
  const Memory& m = turn.memory;
  const int hearts = turn.row.hearts;
  const bool some = hearts_to_have(turn) > 0;
  if (hearts == 0) return some ? get_heart : patrol;
  if (m.goal == get_heart && some && hearts < hearts_wanted(turn)) return get_heart;
  return use;
}

}  // namespace

Gear gear_for(Decision& turn) {
  const auto number = static_cast<std::size_t>(turn.row.id % 8);
  Gear role = kRoles[number];
  if (role == scrambler && turn.memory.tick < kScrambleFrom && !threatened(turn)) role = aligner;
  if (role != miner) return role;
  const int rank = turn.row.id % 4;
  if (turn.poorest >= kRich + kRicher * rank) turn.memory.converted = 1;
  if (turn.poorest < kPoor && turn.row.hearts == 0) turn.memory.converted = 0;
  return turn.memory.converted ? kConverted[number] : role;
}

Goal choose_goal(Decision& turn, Gear gear) {
  const Memory& m = turn.memory;
  if (must_retreat(turn)) return retreat;
  const int room = turn.row.gear == miner ? kFull : kByHand;
  if (turn.row.gear != gear) {
    if (turn.row.gear == miner && turn.cargo > 0) return deposit;
    if (affordable(turn.row, gear)) return get_gear;
  }
  if (turn.row.gear == aligner) return fight(turn, align);
  if (turn.row.gear == scrambler) return fight(turn, scramble);
  if (turn.cargo >= room || (m.goal == deposit && turn.cargo > 0)) return deposit;
  return mine;
}

}  // namespace gridmill::grid::cogsguard
