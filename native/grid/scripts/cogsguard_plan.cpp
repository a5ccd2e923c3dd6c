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

// The smallest part of the map, joined at its edges, that has some places in it; rows and columns count from a middle.
class Box {
 public:
  explicit Box(Place middle) : middle_(middle) {}
  void include(Place place) {
    rows_.include(offset(middle_.row, place.row));
    columns_.include(offset(middle_.column, place.column));
  }
  // Steps from a place to the nearest that is at most `around` rows and columns outside; fewer if there is none.
  int steps_to(Place from, int around = 0) const {
    return rows_.steps_to(offset(middle_.row, from.row), around) +
           columns_.steps_to(offset(middle_.column, from.column), around);
  }

 private:
  struct Range {
    int first = kSide, last = -kSide;
    void include(int at) {
      first = std::min(first, at);
      last = std::max(last, at);
    }
    int steps_to(int at, int around) const {
      if (first <= at && at <= last) return 0;
      return std::max(0, std::min((first - at) & (kSide - 1), (at - last) & (kSide - 1)) - around);
    }
  };
  Place middle_;
  Range rows_, columns_;
};

class Planner {
 public:
  Planner(Decision& turn, Gear gear, const Bits& agents)
      : t_(turn),
        m_(turn.memory),
        gear_(gear),
        ground_(turn.memory.ground),
        costs_(costs_of(turn)),
        search_(turn.memory, agents, costs_),
        hub_(turn.memory.nearest(hub, turn.here)),
        bases_(turn.here) {
    if (m_.has_target) kept_ = m_.target;
    for (std::uint32_t i = 0; i < m_.num_sites; ++i)
      if (friendly(m_.sites[i])) bases_.include(m_.sites[i].place);
  }

  bool run(Goal goal) {
    goal_ = goal;
    collect();
    if (goal == mine && !any_) return false;
    // Nothing that scores more than the way so far can be better; if that is out of reach by now, anything may be.
    const int score = score_of_way();
    if (!look(score) && (score == INT_MAX || !look(INT_MAX))) return false;
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
    sides_ = 0;
    any_ = false;
    oldest_ = 0;
    beside_ = {};
    targets_ = {};
    for (std::uint32_t i = 0; i < m_.num_sites; ++i) {
      const Site& site = m_.sites[i];
      if (site.avoid_until > m_.tick || !serves(site)) continue;
      oldest_ = std::max(oldest_, static_cast<int>(m_.tick - site.seen));
      any_ = true;
      targets_.set(site.place);
      site_at_[static_cast<std::size_t>(site.place.cell())] = static_cast<std::uint16_t>(i);
      for (int d = 0; d < 4; ++d) add_side(moved(site.place, kDirectionRows[d], kDirectionColumns[d]));
    }
  }

  // A cell from which a target can be used: an aligner has no influence where the clips act.
  void add_side(Place place) {
    if (m_.blocked.get(place) || beside_.get(place) || (goal_ == align && ground_.danger.get(place))) return;
    beside_.set(place);
    ++sides_;
  }

  static bool friendly(const Site& site) { return (site.kind == junction || site.kind == hub) && site.owner == ours; }

  bool serves(const Site& site) const {
    const bool neutral = site.kind == junction && site.owner == nobody,
               foe = site.kind == junction && site.owner == theirs;
    switch (goal_) {
      case get_gear:
        return site.kind == static_cast<int>(station) + static_cast<int>(gear_);
      case get_heart:
        return site.kind == hub;
      case deposit:
        return friendly(site);
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
      if (friendly(other)) back = std::min(back, manhattan(site.place, other.place));
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

  bool in_reach(int away) const {
    const bool home = ground_.home.get(t_.here);
    if (away == 0) return true;
    if (goal_ == align) {
      const int influence = home ? kInfluence : t_.row.influence;
      if (ticks(away) >= influence) return false;
    }
    return goal_ == deposit || goal_ == retreat || ticks(2 * away) + kSafety <= t_.row.hp;
  }

  // The most steps outside home that are in reach: whatever takes fewer is, too.
  int reach() const {
    int most = 0;
    for (int more = (kMostAway + 1) / 2; more > 0; more /= 2)
      if (in_reach(most + more)) most += more;
    return most;
  }

  // Whether there is a cell to go to with a score of at most `most`.
  bool look(int most) {
    best_ = most == INT_MAX ? INT_MAX : most + 1;
    best_cell_ = -1;
    const bool explores = goal_ == patrol || goal_ == mine;
    const int most_away = reach();
    int left = sides_;
    search_.begin(t_.here, most_away);
    while (left > 0 || explores || goal_ == retreat) {
      const int cell = search_.next();
      if (cell < 0 || search_.cost(cell) >= best_) break;
      const bool side = beside_.get(cell);
      if (side) --left;
      if (search_.cost(cell) + least_more(cell) >= best_) continue;
      search_.expand(cell);
      if (search_.away(cell) > most_away) continue;
      if (side) look_beside(cell);
      if (is_end(cell)) offer(cell, search_.cost(cell) + penalty_of_end(cell), -1);
    }
    return best_cell_ >= 0;
  }

  // Cells to go to for themselves: home, or what nobody has seen.
  bool is_end(int cell) const {
    if (goal_ == retreat) return ground_.home.get(cell);
    return (goal_ == patrol || goal_ == mine) && !m_.known.get(cell);
  }
  int penalty_of_end(int cell) const { return goal_ == retreat ? 0 : sector(place_of(cell)) + farther(); }
  int farther() const { return goal_ == mine ? kExploreForMine : kExplore; }

  // What a way that leads through this cell costs beyond it, at the least, penalties included. It falls by no more with
  // a step than the step costs, so cells that are left out for it change nothing about the others: not even which of
  // two ways of equal cost is taken.
  int least_more(int cell) const {
    if (goal_ == retreat) return std::max(0, bases_.steps_to(place_of(cell), kReach) - 1) * costs_.away;
    if (goal_ == mine) return std::min(2 * bases_.steps_to(place_of(cell)) - 2, kExploreForMine);
    return 0;
  }

  // The score of the way so far, gone on from where the agent is or from beside it; INT_MAX if it does not lead to
  // anything that would do.
  int score_of_way() const {
    if (manhattan(t_.here, m_.expected) > 1) return INT_MAX;
    const bool aims = kept_ && targets_.get(*kept_);
    int cost = 0;
    Place at = m_.expected;
    for (int i = m_.at_step; i <= m_.num_steps; ++i) {
      if (at != t_.here) {
        if (search_.barred(at.cell())) return INT_MAX;
        cost += search_.step_cost(at.cell());
      }
      if (aims && beside_.get(at) && manhattan(at, *kept_) == 1)
        return cost + penalty_of(m_.sites[site_at_[static_cast<std::size_t>(kept_->cell())]]);
      if (!aims && is_end(at.cell())) return cost + penalty_of_end(at.cell());
      if (i < m_.num_steps) at = moved(at, kDirectionRows[m_.step(i)], kDirectionColumns[m_.step(i)]);
    }
    return INT_MAX;
  }

  void look_beside(int cell) {
    const Place place = place_of(cell);
    for (int d = 0; d < 4; ++d) {
      const Place there = moved(place, kDirectionRows[d], kDirectionColumns[d]);
      if (!targets_.get(there)) continue;
      const int site = site_at_[static_cast<std::size_t>(there.cell())];
      const bool kept = kept_ && *kept_ == there;
      offer(cell, search_.cost(cell) + penalty_of(m_.sites[site]) + (kept ? 0 : kChange), site);
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
  const Ground& ground_;
  StepCosts costs_;
  Search search_;
  const Site* hub_;
  Box bases_;  // around the own hub and junctions
  Goal goal_ = rest;
  bool any_ = false;  // targets
  int sides_ = 0, oldest_ = 0, best_ = INT_MAX, best_cell_ = 0, best_site_ = -1;
  std::optional<Place> kept_;  // the target so far
  Bits targets_, beside_;
  std::array<std::uint16_t, kCells> site_at_;  // of targets
};

}  // namespace

bool plan(Decision& turn, Gear gear, const Bits& agents) {
  Planner planner(turn, gear, agents);
  Memory& m = turn.memory;
  if (planner.run(m.goal)) return true;
  if (m.goal != patrol && m.goal != retreat && planner.run(patrol)) return true;
  m.has_target = 0;
  m.num_steps = 0;
  m.at_step = 0;
  return false;
}

}  // namespace gridmill::grid::cogsguard
