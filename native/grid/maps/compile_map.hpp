// What compile_map.cpp and compile_layers.cpp share: names of types, sizes, and how much a map can hold at most.
#pragma once

#include <string>
#include <vector>

#include "grid/program.hpp"

namespace gridmill::grid {

struct Size {
  std::int32_t height, width;
};

// Upper bounds: a map that is drawn may have fewer.
struct Stock {
  std::vector<std::uint64_t> placed;  // per type
  std::uint64_t all = 0, with_state = 0, pads = 0;
};
Stock no_stock(const Program& program);
void add(Stock& to, const Stock& more, std::uint64_t times);

// How many places of a map of instances have this part.
std::uint64_t times_of_part(const CompiledMap& map, std::size_t part);

// The object type of this name; refuses an unknown one.

// Layers checked against the size of the area they will be given at least.
std::vector<CompiledLayer> compile_layers(const Program& program, const std::vector<LayerNode>& layers, Size size,
                                          const std::string& path);
// What layers can put on their area beside walls.
Stock stock_of(const Program& program, const std::vector<CompiledLayer>& layers);

}  // namespace gridmill::grid
