// How a search begins, and the way it found.
#include "grid/scripts/cogsguard_paths.hpp"

namespace gridmill::grid::cogsguard {

Search::Search(const Memory& memory, const Bits& agents, const StepCosts& costs) : memory_(memory), agents_(agents) {
  for (std::size_t ground = 0; ground < step_cost_.size(); ++ground) {
    int cost = ground & 4 ? costs.home : costs.away;
    if (!(ground & 2)) cost += costs.unknown_more;
    if (ground & 1) cost += costs.danger_more;
    step_cost_[ground] = static_cast<std::uint8_t>(std::min(cost, kMostCost));
  }
}

void Search::begin(Place start, int most_away) {
  for (std::size_t row = 0; row < kSide; ++row)
    for (std::size_t word = 0; word < 2; ++word) {
      lines_[row].closed[word] = memory_.blocked.words[row][word] | agents_.words[row][word];
      lines_[row].home[word] = memory_.ground.home.words[row][word];
      lines_[row].known[word] = memory_.known.words[row][word];
      lines_[row].danger[word] = memory_.ground.danger.words[row][word];
    }
  filled_ = 0;
  now_ = 0;
  near_ = 0;
  most_away_ = most_away;
  start_ = start.cell();
  lines_[start.row].closed[start.column >> 6] |= std::uint64_t{1} << (start.column & 63);
  queue(start_, 0, 0, 0);
}

int Search::way(int cell, std::uint8_t* directions, int most) const {
  int steps = 0;
  for (int at = cell; at != start_; ++steps) {
    const int d = node(at).from;
    at = moved(place_of(at), -kDirectionRows[d], -kDirectionColumns[d]).cell();
  }
  int left = steps;
  for (int at = cell; at != start_;) {
    const int d = node(at).from;
    if (--left < most) directions[left] = static_cast<std::uint8_t>(d);
    at = moved(place_of(at), -kDirectionRows[d], -kDirectionColumns[d]).cell();
  }
  return steps;
}

}  // namespace gridmill::grid::cogsguard
