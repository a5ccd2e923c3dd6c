// From a goal to a target and a way: every site that would do has a penalty beside the cost of getting there, and the
// search ends when nothing cheaper can come.
#include "grid/scripts/cogsguard_plan.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <optional>

namespace gridmill::grid::cogsguard {
namespace {

// Costs and penalties count half steps at home.
constexpr int kMostSurplus = 400;     // of an element beyond the scarcest; half of it is the penalty for mining it
constexpr int kNotPreferred = 10;     // of an element that is another miner's first choice
constexpr int kSmallStock = 10;       // of an extractor that does not fill a miner
constexpr int kMateNearer = 30;       // of a junction that another agent will reach first
constexpr int kChange = 6;            // of any target but the last one
constexpr int kExplore = 10;          // of cells nobody saw, beside junctions nobody looked after
constexpr int kExploreForMine = 60;   // what is looked for may lie far behind what is seen there
constexpr std::uint32_t kFresh = 60;  // ticks in which a junction need not be looked at again
constexpr int kInfluence = 20;        // of an aligner at home
constexpr int kFullEnergy = 20;       // at home

// Eight directions of 64 units, for the part of the map an agent prefers.
constexpr int kCompassRows[] = {-64, 64, 0, 0, -45, 45, 45, -45}, kCompassColumns[] = {0, 0, -64, 64, -45, 45, -45, 45};

class Planner {
 public:
  Planner(Decision& turn, Gear gear, const Bits& agents)
      : t_(turn),
        m_(turn.memory),
        gear_(gear),
        ground_(survey(turn.memory)),
        search_(turn.memory, ground_, agents, costs_of(turn)),
        hub_(turn.memory.nearest(hub, turn.here)) {
    if (m_.has_target) kept_ = m_.target;
  }

  bool run(Goal goal) {
    goal_ = goal;
    collect();
    if (count_ == 0 && goal != patrol && goal != retreat) return false;
    look();
    if (best_ == INT_MAX) return false;
    keep();
    return true;
  }

 private:
  static StepCosts costs_of(const Decision& turn) {
    StepCosts costs;
    costs.away = turn.row.solar > 1 ? 3 : 5;
    costs.danger_more = turn.row.gear == aligner ? 8 : 4;
    return costs;
  }

  // ---- what would do

  void collect() {
    count_ = 0;
    oldest_ = 0;
    beside_ = {};
    targets_ = {};
    for (std::uint32_t i = 0; i < m_.num_sites; ++i) {
      const Site& site = m_.sites[i];
      if (site.avoid_until > m_.tick || !serves(site)) continue;
      ++count_;
      oldest_ = std::max(oldest_, static_cast<int>(m_.tick - site.seen));
      targets_.set(site.place);
      site_at_[static_cast<std::size_t>(site.place.cell())] = static_cast<std::uint16_t>(i);
      for (int d = 0; d < 4; ++d) beside_.set(moved(site.place, kDirectionRows[d], kDirectionColumns[d]));
    }
  }

  bool serves(const Site& site) const {
    const bool neutral = site.kind == junction && site.owner == nobody,
               foe = site.kind == junction && site.owner == theirs;
    const bool friendly = (site.kind == junction || site.kind == hub) && site.owner == ours;
    switch (goal_) {
      case get_gear:
        return site.kind == static_cast<int>(station) + static_cast<int>(gear_);
      case get_heart:
        return site.kind == hub;
      case deposit:
        return friendly;
      case mine:
        return site.kind >= extractor;
      case align:
        return neutral;
      case scramble:
        return foe;
      case patrol:
        return site.kind == junction && m_.tick - site.seen >= kFresh;
      default:
        return false;
    }
  }

  int penalty_of(const Site& site) const {
    if (goal_ == mine) return of_extractor(site);
    if (goal_ == align || goal_ == scramble) return of_junction(site);
    return goal_ == patrol ? of_visit(site) : 0;
  }

  int of_extractor(const Site& site) const {
    const auto element = static_cast<std::size_t>(site.kind - extractor);
    const int surplus = t_.row.store[element] + t_.row.cargo[element] - t_.poorest;
    int back = 1000;
    for (std::uint32_t i = 0; i < m_.num_sites; ++i) {
      const Site& other = m_.sites[i];
      if ((other.kind == junction || other.kind == hub) && other.owner == ours)
        back = std::min(back, manhattan(site.place, other.place));
    }
    const int preferred = static_cast<int>(element) == t_.row.id / 2 % kElements ? 0 : kNotPreferred;
    return std::min(surplus, kMostSurplus) / 2 + 2 * back + preferred + (site.stock < 40 ? kSmallStock : 0);
  }

  int of_junction(const Site& site) const { return sector(site.place) + mates_nearer(site.place); }

  int of_visit(const Site& site) const {
    const int age = static_cast<int>(m_.tick - site.seen);
    return sector(site.place) + (oldest_ - age) / 2 + mates_nearer(site.place);
  }

  // How far a place lies from the part of the map that is the agent's own.
  int sector(Place place) const {
    if (!hub_) return 0;
    const int r = offset(hub_->place.row, place.row), c = offset(hub_->place.column, place.column);
    const int number = t_.row.id % 8;
    const int along = (r * kCompassRows[number] + c * kCompassColumns[number]) / 64;
    const int length = std::max(std::abs(r), std::abs(c)) + std::min(std::abs(r), std::abs(c)) / 2;
    return std::max(0, length - along) / 2;
  }

  // Another agent in view with the same gear that is nearer will go there.
  int mates_nearer(Place place) const {
    const int mine = manhattan(t_.here, place);
    for (int i = 0; i < t_.row.num_things; ++i) {
      const Thing& thing = t_.row.things[static_cast<std::size_t>(i)];
      if (thing.kind != other_agent || thing.gear != t_.row.gear) continue;
      if (manhattan(moved(t_.here, thing.row, thing.column), place) < mine) return kMateNearer;
    }
    return 0;
  }

  // ---- what can be reached

  // Ticks that a number of steps outside home takes.
  int ticks(int steps) const {
    const int energy = ground_.home.get(t_.here) ? kFullEnergy : t_.row.energy, solar = std::max(1, t_.row.solar);
    if (solar >= kStepEnergy) return steps;
    const int free = energy < kStepEnergy ? 0 : (energy - kStepEnergy) / (kStepEnergy - solar) + 1;
    return steps <= free ? steps : free + ((steps - free) * kStepEnergy + solar - 1) / solar;
  }

  bool in_reach(int cell) const {
    const int away = search_.away(cell);
    const bool home = ground_.home.get(t_.here);
    if (away == 0) return true;
    if (goal_ == align) {
      const int influence = home ? kInfluence : t_.row.influence;
      if (ticks(away) >= influence) return false;
    }
    return goal_ == deposit || goal_ == retreat || ticks(2 * away) + kSafety <= t_.row.hp;
  }

  void look() {
    best_ = INT_MAX;
    const bool explores = goal_ == patrol || goal_ == mine;
    const int farther = goal_ == mine ? kExploreForMine : kExplore;
    search_.begin(t_.here);
    for (int cell = search_.next(); cell >= 0; cell = search_.next()) {
      const int cost = search_.cost(cell);
      if (cost >= best_) break;
      if (goal_ == retreat) {
        if (ground_.home.get(cell)) offer(cell, cost, -1);
        continue;
      }
      if (beside_.get(cell)) look_beside(cell, cost);
      if (explores && !m_.known.get(cell) && in_reach(cell)) offer(cell, cost + sector(place_of(cell)) + farther, -1);
    }
  }

  void look_beside(int cell, int cost) {
    if (!in_reach(cell)) return;
    if (goal_ == align && ground_.danger.get(cell)) return;
    const Place place = place_of(cell);
    for (int d = 0; d < 4; ++d) {
      const Place there = moved(place, kDirectionRows[d], kDirectionColumns[d]);
      if (!targets_.get(there)) continue;
      const int site = site_at_[static_cast<std::size_t>(there.cell())];
      const bool kept = kept_ && *kept_ == there;
      offer(cell, cost + penalty_of(m_.sites[site]) + (kept ? 0 : kChange), site);
    }
  }

  void offer(int cell, int score, int site) {
    if (score >= best_) return;
    best_ = score;
    best_cell_ = cell;
    best_site_ = site;
  }

  // ---- the way

  void keep() {
    std::array<std::uint8_t, kMostSteps + 1> way;
    int steps = search_.way(best_cell_, way.data(), kMostSteps);
    m_.has_target = best_site_ >= 0;
    if (m_.has_target) {
      m_.target = m_.sites[best_site_].place;
      if (goal_ != patrol && steps < kMostSteps) way[static_cast<std::size_t>(steps++)] = towards(place_of(best_cell_));
    }
    steps = std::min(steps, kMostSteps);
    std::fill(std::begin(m_.steps), std::end(m_.steps), std::uint8_t{0});
    for (int i = 0; i < steps; ++i)
      m_.steps[i / 4] = static_cast<std::uint8_t>(m_.steps[i / 4] | way[static_cast<std::size_t>(i)] << (i % 4 * 2));
    m_.num_steps = static_cast<std::uint8_t>(steps);
    m_.at_step = 0;
    m_.expected = t_.here;
    m_.planned = m_.tick;
  }

  std::uint8_t towards(Place from) const {
    for (int d = 0; d < 4; ++d)
      if (moved(from, kDirectionRows[d], kDirectionColumns[d]) == m_.target) return static_cast<std::uint8_t>(d);
    return 0;
  }

  Decision& t_;
  Memory& m_;
  Gear gear_;
  Ground ground_;
  Search search_;
  const Site* hub_;
  Goal goal_ = rest;
  int count_ = 0, oldest_ = 0, best_ = INT_MAX, best_cell_ = 0, best_site_ = -1;
  std::optional<Place> kept_;  // the target so far
  Bits targets_, beside_;
  std::array<std::uint16_t, kCells> site_at_;  // of targets
};

}  // namespace

bool plan(Decision& turn, Gear gear, const Bits& agents) {
  Planner planner(turn, gear, agents);
  Memory& m = turn.memory;
  m.has_target = 0;
  m.num_steps = 0;
  m.at_step = 0;
  if (planner.run(m.goal)) return true;
  return m.goal != patrol && m.goal != retreat && planner.run(patrol);
}

}  // namespace gridmill::grid::cogsguard
