// The arena's script, mine -> generator -> altar: it walks to the nearest machine in its window that gives something,
// or takes something it holds, and straight on where it sees none. Of the world it knows its row, and which way it
// walked.
#pragma once

#include <cstdint>
#include <memory>

#include "core/script.hpp"
#include "grid/program.hpp"

namespace gridmill::grid {

// nullptr: no machine on the map makes hearts, or agents do not walk and see in all eight directions.
std::unique_ptr<Script<std::uint8_t>> make_arena_script(const Vocabulary& vocabulary, const Program& program);

}  // namespace gridmill::grid
