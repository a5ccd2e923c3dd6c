// Machines (converters): mines, generators, altars. A conversion consumes its inputs at the start and leaves its
// outputs `cooldown` ticks later; a machine starts by itself whenever it can. Agents bump into it to fetch and to hand
// over.
#pragma once

#include "grid/rules/rules.hpp"

namespace gridmill::grid {

// Starts a conversion if it is idle, has all inputs and does not already keep enough outputs.
void try_start(const Program& program, World& world, std::uint32_t object, std::uint32_t tick);
// Phase on_tick: outputs that are due appear, and the machine may start again in the same tick.
void advance_machines(const Program& program, World& world, std::uint32_t tick);
// One bump of the actor into the target: takes all outputs that fit, then gives inputs; true if a unit moved (or
// would).
bool use_machine(RuleContext& context);

}  // namespace gridmill::grid
