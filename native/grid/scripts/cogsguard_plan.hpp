// What an agent of CogsGuard wants now, and the way there.
#pragma once

#include <cstdint>

#include "grid/scripts/cogsguard_paths.hpp"

namespace gridmill::grid::cogsguard {

constexpr int kStepEnergy = 4;  // what a step or a use takes
constexpr int kSafety = 10;     // hp to have left when home again

// All that one decision looks at.
struct Decision {
  const Ids& ids;
  const Row& row;
  Memory& memory;
  Place here;
  std::uint64_t draw;
  int cargo = 0;    // all elements together
  int poorest = 0;  // the least that the store has of an element
};

Gear gear_for(Decision& turn);
Goal choose_goal(Decision& turn, Gear gear);
// Puts the way to the best target of the memory's goal into the memory; false if there is none.
bool plan(Decision& turn, Gear gear, const Bits& agents);

}  // namespace gridmill::grid::cogsguard
