// Maps: compile_map() reads or checks a map once; draw_map() lays it out in a world at every reset, from the
// episode's own random stream. Ascii maps are fixed; scatter draws anew and guarantees a connected floor.
#pragma once

#include <vector>

#include "core/random.hpp"
#include "grid/program.hpp"
#include "grid/world.hpp"

namespace gridmill::grid {

// Reused by every reset of one worker, so that a reset allocates nothing once it has grown.
struct MapScratch {
  std::vector<std::uint32_t> cells, queue;
  std::vector<std::uint32_t> component;
  void fit(const Program& program);
};

void compile_map(Program& program);
void draw_map(const Program& program, World& world, const Key& key, MapScratch& scratch);

}  // namespace gridmill::grid
