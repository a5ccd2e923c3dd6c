// Who stands where: moving, exchanging, removing and adding what occupies a cell, with the grid and the bitmap kept in
// step. Cells are given as row and column; all are inside the map.
#pragma once

#include "grid/world.hpp"

namespace gridmill::grid {

// Puts an object (or a piece of terrain) from one cell into another, empty one.
void relocate(World& w, std::uint16_t code, std::uint32_t row, std::uint32_t column, std::uint32_t new_row,
              std::uint32_t new_column);
void relocate_object(World& w, std::uint32_t object, std::uint32_t row, std::uint32_t column);
// An object changes places with what stands in another cell.
void swap_places(World& w, std::uint32_t object, std::uint32_t row, std::uint32_t column);
bool inside_map(const Program& p, std::int64_t row, std::int64_t column);
bool is_free(const Program& p, const World& w, std::int64_t row, std::int64_t column);
// The first empty cell from one on, row by row and from the last to the first; cells are numbered row * width + column.
// -1: there is none.
std::int64_t first_empty(const Program& p, const World& w, std::uint32_t start);
// An object as its type begins, in an empty cell.
void place_object(const Program& p, World& w, std::uint32_t object, std::uint16_t type, std::uint32_t row,
                  std::uint32_t column);
void place_terrain(const Program& p, World& w, std::uint16_t type, std::uint32_t row, std::uint32_t column);
void remove_object(const Program& p, World& w, std::uint32_t object, std::uint32_t tick);
// A place for one more object with a state, or -1.
std::int32_t unused_object(const Program& p, const World& w, std::uint32_t tick);
// A new object in an empty cell; one with a state takes the unused place `object`.
void add_object(const Program& p, World& w, std::int32_t object, std::uint16_t type, std::uint32_t row,
                std::uint32_t column, std::uint32_t tick);

}  // namespace gridmill::grid
