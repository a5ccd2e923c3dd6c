// The settings of a grid game as trees, from the same fields() that decode it. A struct is {name: [type, default,
// meaning]}.
#pragma once

#include "core/value.hpp"

namespace gridmill::grid {

Value game_schema();   // of a game
Value kinds_schema();  // {kind: struct} of values, conditions, effects, maps, layers
Value parts_schema();  // {name: struct} of the structs inside of a game

}  // namespace gridmill::grid
