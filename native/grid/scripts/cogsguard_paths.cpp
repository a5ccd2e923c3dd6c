// The search: a queue for each cost of a step, in a ring, and lists through the cells instead of memory to allocate.
#include "grid/scripts/cogsguard_paths.hpp"

#include <algorithm>

namespace gridmill::grid::cogsguard {
namespace {
constexpr std::uint16_t kNone = 0xFFFF;
constexpr int kNoDirection = 4;
}  // namespace

Ground survey(const Memory& memory) {
  Ground ground{};
  for (std::uint32_t i = 0; i < memory.num_sites; ++i) {
    const Site& site = memory.sites[i];
    if (site.kind != junction && site.kind != hub) continue;
    if (site.owner == ours) ground.home.set_around(site.place, kReach, kReach);
    if (site.owner == theirs) ground.danger.set_around(site.place, kReach, kReach);
  }
  return ground;
}

Search::Search(const Memory& memory, const Ground& ground, const Bits& agents, const StepCosts& costs)
    : memory_(memory), ground_(ground), agents_(agents), costs_(costs) {}

void Search::begin(Place start) {
  for (int row = 0; row < kSide; ++row)
    for (int word = 0; word < 2; ++word)
      closed_.words[row][word] = memory_.blocked.words[row][word] | agents_.words[row][word];
  first_.fill(kNone);
  last_.fill(kNone);
  now_ = 0;
  waiting_ = 0;
  start_ = start.cell();
  queue(start_, 0, kNoDirection, 0);
}

int Search::step_cost(int cell, bool home) const {
  int cost = home ? costs_.home : costs_.away;
  if (!memory_.known.get(cell)) cost += costs_.unknown_more;
  if (ground_.danger.get(cell)) cost += costs_.danger_more;
  return std::min(cost, kMostCost);
}

void Search::queue(int cell, int cost, int direction, int away) {
  const auto c = static_cast<std::size_t>(cell);
  const auto tail = static_cast<std::size_t>(cost & kMostCost);
  closed_.set(place_of(cell));
  cost_[c] = static_cast<std::uint16_t>(cost);
  from_[c] = static_cast<std::uint8_t>(direction);
  away_[c] = static_cast<std::uint8_t>(std::min(away, 255));
  link_[c] = kNone;
  if (first_[tail] == kNone) first_[tail] = static_cast<std::uint16_t>(cell);
  else link_[last_[tail]] = static_cast<std::uint16_t>(cell);
  last_[tail] = static_cast<std::uint16_t>(cell);
  ++waiting_;
}

int Search::next() {
  if (waiting_ == 0) return -1;
  while (first_[static_cast<std::size_t>(now_ & kMostCost)] == kNone) ++now_;
  auto& head = first_[static_cast<std::size_t>(now_ & kMostCost)];
  const int cell = head;
  head = link_[static_cast<std::size_t>(cell)];
  --waiting_;
  const Place place = place_of(cell);
  for (int d = 0; d < 4; ++d) {
    const int to = moved(place, kDirectionRows[d], kDirectionColumns[d]).cell();
    if (closed_.get(to)) continue;
    const bool home = ground_.home.get(to);
    queue(to, now_ + step_cost(to, home), d, away(cell) + (home ? 0 : 1));
  }
  return cell;
}

int Search::way(int cell, std::uint8_t* directions, int most) const {
  int steps = 0;
  for (int at = cell; at != start_; ++steps) {
    const int d = from_[static_cast<std::size_t>(at)];
    at = moved(place_of(at), -kDirectionRows[d], -kDirectionColumns[d]).cell();
  }
  int left = steps;
  for (int at = cell; at != start_;) {
    const int d = from_[static_cast<std::size_t>(at)];
    if (--left < most) directions[left] = static_cast<std::uint8_t>(d);
    at = moved(place_of(at), -kDirectionRows[d], -kDirectionColumns[d]).cell();
  }
  return steps;
}

}  // namespace gridmill::grid::cogsguard
