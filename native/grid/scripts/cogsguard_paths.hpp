// The search for ways over what an agent remembers: from where it stands outwards, the cheapest cells first.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "grid/scripts/cogsguard_memory.hpp"

namespace gridmill::grid::cogsguard {

constexpr int kDirectionRows[] = {-1, 1, 0, 0}, kDirectionColumns[] = {0, 0, -1, 1};  // as the moves
constexpr int kMostCost = 15;                                                         // of a step
constexpr int kMostAway = 255;  // steps outside home are not counted any further

// What a step onto a cell costs, by the ground it is.
struct StepCosts {
  int home = 2;          // where the own team gives energy
  int away = 3;          // elsewhere
  int unknown_more = 1;  // added where nobody looked yet
  int danger_more = 3;   // added where the clips act
};

// Cells are settled in order of cost. What a step costs depends on the cell it leads to alone, so the first neighbour
// that is settled is the best way there, and every cell is queued once.
class Search {
 public:
  Search(const Memory& memory, const Bits& agents, const StepCosts& costs);
  // Cells farther away than `most_away` steps outside home are settled, too, but not waited for.
  void begin(Place start, int most_away = kMostAway);
  // The next cell; -1 if none is left, or none that leads to cells within most_away.
  int next();
  // Goes on from a cell that next() gave; whoever leaves that out does without the cells behind it.
  void expand(int cell);

  bool barred(int cell) const { return memory_.blocked.get(cell) || agents_.get(cell); }
  int step_cost(int cell) const {
    const int home = memory_.ground.home.get(cell), known = memory_.known.get(cell);
    return step_cost_[static_cast<std::size_t>(4 * home + 2 * known + memory_.ground.danger.get(cell))];
  }
  bool reached(int cell) const { return bit(of(cell).closed, cell) && (cell == start_ || !barred(cell)); }
  int cost(int cell) const { return node(cell).cost; }
  int away(int cell) const { return node(cell).away; }  // steps outside home, at most kMostAway
  // Directions from the start to a cell; how many there are. Only the first `most` are written.
  int way(int cell, std::uint8_t* directions, int most) const;

 private:
  static constexpr std::uint16_t kNone = 0xFFFF;
  using Row = std::array<std::uint64_t, 2>;
  // All that is asked of a row of cells, side by side.
  struct alignas(64) Line {
    Row closed;  // queued before, or barred
    Row home, known, danger;
  };

  struct alignas(8) Node {
    std::uint16_t cost, next;  // next: in its queue
    std::uint8_t from, away;   // from: the direction of the step onto it
  };

  static std::uint64_t bit(const Row& row, int cell) { return row[cell >> 6 & 1] >> (cell & 63) & 1; }
  const Line& of(int cell) const { return lines_[static_cast<std::size_t>(cell / kSide)]; }
  Line& of(int cell) { return lines_[static_cast<std::size_t>(cell / kSide)]; }
  const Node& node(int cell) const { return nodes_[static_cast<std::size_t>(cell)]; }
  void queue(int cell, int cost, int direction, int away);
  void reach(Line& line, int cell, int direction, int away);

  const Memory& memory_;
  const Bits& agents_;
  std::array<std::uint8_t, 8> step_cost_;  // by what the cell is: home 4, known 2, danger 1
  std::array<Line, kSide> lines_;
  std::array<Node, kCells> nodes_;
  std::array<std::uint16_t, kMostCost + 1> first_, last_;  // of the queue of each cost, modulo
  std::uint32_t filled_ = 0;                               // bit i: queue i has cells
  int now_ = 0, near_ = 0, most_away_ = 0, start_ = 0;     // near_: cells that wait within most_away_
};

inline void Search::queue(int cell, int cost, int direction, int away) {
  const auto tail = static_cast<std::uint32_t>(cost & kMostCost);
  const auto number = static_cast<std::uint16_t>(cell);
  nodes_[static_cast<std::size_t>(cell)] = {static_cast<std::uint16_t>(cost), kNone,
                                            static_cast<std::uint8_t>(direction), static_cast<std::uint8_t>(away)};
  (filled_ >> tail & 1 ? nodes_[last_[tail]].next : first_[tail]) = number;
  last_[tail] = number;
  filled_ |= 1u << tail;
  near_ += away <= most_away_;
}

inline void Search::reach(Line& line, int cell, int direction, int away) {
  const auto word = static_cast<std::size_t>(cell >> 6 & 1);
  line.closed[word] |= std::uint64_t{1} << (cell & 63);
  const auto home = static_cast<std::uint32_t>(line.home[word] >> (cell & 63) & 1);
  const auto ground = 4 * home + 2 * (line.known[word] >> (cell & 63) & 1) + (line.danger[word] >> (cell & 63) & 1);
  const int farther = away + (home == 0 && away < kMostAway);
  queue(cell, now_ + step_cost_[ground], direction, farther);
}

inline int Search::next() {
  if (near_ == 0) return -1;
  // The next cost that waits: queues are a ring.
  const auto turn = static_cast<std::uint32_t>(now_ & kMostCost);
  now_ += std::countr_zero((filled_ | filled_ << (kMostCost + 1)) >> turn);
  const auto head = static_cast<std::size_t>(now_ & kMostCost);
  const int cell = first_[head];
  const Node& settled = node(cell);
  first_[head] = settled.next;
  filled_ &= ~(static_cast<std::uint32_t>(settled.next == kNone) << head);
  near_ -= settled.away <= most_away_;
  return cell;
}

inline void Search::expand(int cell) {
  const int north = (cell - kSide) & (kCells - 1), south = (cell + kSide) & (kCells - 1);
  const int row = cell & ~(kSide - 1), west = row | ((cell - 1) & (kSide - 1)), east = row | ((cell + 1) & (kSide - 1));
  const bool open[] = {!bit(of(north).closed, north), !bit(of(south).closed, south), !bit(of(cell).closed, west),
                       !bit(of(cell).closed, east)};
  const int away = this->away(cell);
  if (open[0]) reach(of(north), north, 0, away);
  if (open[1]) reach(of(south), south, 1, away);
  if (open[2]) reach(of(cell), west, 2, away);
  if (open[3]) reach(of(cell), east, 3, away);
}

}  // namespace gridmill::grid::cogsguard
