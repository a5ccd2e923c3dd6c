// Maps: compile_map() (compile.hpp) reads and checks a map once; draw_map() lays it out in a world at every reset, from
// the episode's own random stream. Everything that is drawn is connected: every agent and every object with a state of
// its own can be reached from every other, or the reset says that it found no such layout.
#pragma once

#include <vector>

#include "core/random.hpp"
#include "grid/maps/canvas.hpp"
#include "grid/program.hpp"
#include "grid/world.hpp"

namespace gridmill::grid {

// Agents a node wants somewhere in its rectangle, placed after all objects stand.
struct SpawnRequest {
  std::uint32_t top, left, height, width, count, groups, first_agent;
};

// Reused by every reset of one worker, so that a reset allocates nothing once it has grown.
struct MapScratch {
  std::vector<std::uint32_t> cells, queue, component;
  std::vector<SpawnRequest> requests;
  CanvasScratch canvas;
  void fit(const Program& program);
};

void draw_map(const Program& program, World& world, const Key& key, MapScratch& scratch);

}  // namespace gridmill::grid
