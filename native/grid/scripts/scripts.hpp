// The scripts of grid games by name. A script is a file in this folder and a line in scripts.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/script.hpp"
#include "grid/program.hpp"

namespace gridmill::grid {

using GridScript = Script<std::uint8_t>;

// Those that can play a game, in the order of the table.
std::vector<std::string> script_names(const Vocabulary& vocabulary, const Program& program);
// nullptr: there is none of this name, or it cannot play this game.
std::unique_ptr<GridScript> make_script(const std::string& name, const Vocabulary& vocabulary, const Program& program);

}  // namespace gridmill::grid
