// The words of a grid game as trees, from the same fields() that decode it: {name: [type, default, meaning]}.
#pragma once

#include "core/value.hpp"

namespace gridmill::grid {

Value game_schema();   // of a game
Value kinds_schema();  // of everything told apart by its kind: values, conditions, effects, maps, layers
Value parts_schema();  // of the structs inside of a game

}  // namespace gridmill::grid
