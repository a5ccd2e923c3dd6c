// The search for ways over what an agent remembers: from where it stands outwards, the cheapest cells first.
#pragma once

#include <array>
#include <cstdint>

#include "grid/scripts/cogsguard_memory.hpp"

namespace gridmill::grid::cogsguard {

constexpr int kDirectionRows[] = {-1, 1, 0, 0}, kDirectionColumns[] = {0, 0, -1, 1};  // as the moves
constexpr int kMostCost = 15;                                                         // of a step

// What a step onto a cell costs, by the ground it is.
struct StepCosts {
  int home = 2;          // where the own team gives energy
  int away = 3;          // elsewhere
  int unknown_more = 1;  // added where nobody looked yet
  int danger_more = 3;   // added where the clips act
};

// Where hub and junctions act, as far as the agent knows.
struct Ground {
  Bits home, danger;
};
Ground survey(const Memory& memory);

// Cells are settled in order of cost. What a step costs depends on the cell it leads to alone, so the first neighbour
// that is settled is the best way there, and every cell is queued once.
class Search {
 public:
  Search(const Memory& memory, const Ground& ground, const Bits& agents, const StepCosts& costs);
  void begin(Place start);
  int next();  // the next cell, or -1

  bool reached(int cell) const { return closed_.get(cell) && (cell == start_ || !barred(cell)); }
  int cost(int cell) const { return cost_[static_cast<std::size_t>(cell)]; }
  int away(int cell) const { return away_[static_cast<std::size_t>(cell)]; }  // steps outside home, at most 255
  // Directions from the start to a cell; how many there are. Only the first `most` are written.
  int way(int cell, std::uint8_t* directions, int most) const;

 private:
  bool barred(int cell) const { return memory_.blocked.get(cell) || agents_.get(cell); }
  int step_cost(int cell, bool home) const;
  void queue(int cell, int cost, int direction, int away);

  const Memory& memory_;
  const Ground& ground_;
  const Bits& agents_;
  StepCosts costs_;
  Bits closed_;  // queued before, or barred
  std::array<std::uint16_t, kCells> cost_, link_;
  std::array<std::uint8_t, kCells> from_, away_;
  std::array<std::uint16_t, kMostCost + 1> first_, last_;  // of the queue of each cost, modulo
  int now_ = 0, waiting_ = 0, start_ = 0;
};

}  // namespace gridmill::grid::cogsguard
