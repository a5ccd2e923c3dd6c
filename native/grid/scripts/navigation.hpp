// Navigation: remembers the map, takes the nearest heart it knows of, and otherwise looks where it has not been.
#pragma once

#include <memory>

#include "core/script.hpp"
#include "grid/program.hpp"

namespace gridmill::grid {

// nullptr: the game has no machines, or one that wants something for what it gives.
std::unique_ptr<Script<std::uint8_t>> make_navigation_script(const Vocabulary& vocabulary, const Program& program);

}  // namespace gridmill::grid
