// The scripted agent of CogsGuard: mines, buys gear, fetches hearts, aligns and scrambles junctions, by what its own
// row shows and what it remembers of earlier rows.
#pragma once

#include <memory>

#include "core/script.hpp"

namespace gridmill::grid {

struct Program;
struct Vocabulary;

// nullptr: the game is not CogsGuard, or shows too little of it.
std::unique_ptr<Script<std::uint8_t>> make_cogsguard_script(const Vocabulary& vocabulary, const Program& program);

}  // namespace gridmill::grid
