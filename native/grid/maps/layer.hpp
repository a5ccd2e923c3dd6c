// A layer of a canvas as it will be drawn: its own settings, with the names in them turned into cells.
#pragma once

#include <cstdint>
#include <vector>

#include "grid/maps/config.hpp"

namespace gridmill::grid {

// What a cell of a canvas holds: floor, wall, a place where an agent may start, or an object (kThing + its type).
using Cell = std::uint16_t;
constexpr Cell kFloor = 0, kWall = 1, kPad = 2, kThing = 3, kOutside = 0xFFFF;
constexpr bool is_open(Cell cell) { return cell == kFloor || cell == kPad; }
constexpr bool is_thing(Cell cell) { return cell >= kThing && cell != kOutside; }

struct CompiledLayer {
  LayerNode node;
  std::vector<CompiledLayer> parts;  // of area, zones, one_of and mirror
  std::vector<Cell> things;          // compound, buildings, objects: one per name, in order
  std::vector<std::uint32_t> up_to;  // one_of: item i is drawn if a number below 2^24 is below up_to[i]
  std::vector<std::uint32_t> quota;  // buildings: how many of the draws are of each type
};

}  // namespace gridmill::grid
