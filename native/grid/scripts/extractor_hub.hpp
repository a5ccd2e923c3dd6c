// Extractor hub: reads the recipe in the rules, gathers what it takes, and makes and stores products together.
//
// The first agent is the maker: it walks between assembler and chest and carries nothing but products, as whoever
// stores one stores all it has. The others gather, each first in a direction of its own, and then stand around the
// assembler with the recipe's vibe until what they brought is used up. Whoever waits in vain, or is alone, makes and
// stores itself.
#pragma once

#include <memory>

#include "core/script.hpp"
#include "grid/program.hpp"

namespace gridmill::grid {

// nullptr: the game has no such recipe.
std::unique_ptr<Script<std::uint8_t>> make_extractor_hub_script(const Vocabulary& vocabulary, const Program& program);

}  // namespace gridmill::grid
